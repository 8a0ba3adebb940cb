// A chart of BLEU by the length of the source sentence.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/train/metrics/bleu_by_length.h"
#include "heed/train/report/chart.h"

namespace heed {

/// BLEU over the middle of each bucket, as a line of this name.
Series length_series(const std::string& name, std::span<const LengthBucket> buckets);
/// A chart of such lines.
Chart length_chart(std::vector<Series> series);

}  // namespace heed
