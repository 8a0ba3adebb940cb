// Draws BLEU by the length of the source sentence.
#include "heed/train/report/length_chart.h"

#include <utility>

namespace heed {

Series length_series(const std::string& name, std::span<const LengthBucket> buckets) {
  Series out{.name = name};
  for (const LengthBucket& one : buckets) {
    out.x.push_back(static_cast<double>(one.from + one.to) / 2);
    out.y.push_back(one.bleu);
  }
  return out;
}

Chart length_chart(std::vector<Series> series) {
  return {.title = "BLEU by length of the source",
          .series = std::move(series),
          .x_label = "words of the source",
          .max_y = 100};
}

}  // namespace heed
