// Corpus chrF2 as sacreBLEU computes it by default: overlap of character n-grams.
#pragma once

#include <span>
#include <string>

namespace heed {

/// chrF of sentences against one reference each, 0 to 100: n-grams of 1 to 6 code points, white space left
/// out, recall weighing twice as much as precision (Popovic 2015). A usage Error when the numbers of
/// sentences differ.
double corpus_chrf(std::span<const std::string> outputs, std::span<const std::string> references);

/// What was computed, in the manner of sacreBLEU.
std::string chrf_signature();

}  // namespace heed
