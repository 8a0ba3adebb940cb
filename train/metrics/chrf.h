// Corpus chrF2 with sacreBLEU's defaults: overlap of character n-grams.
#pragma once

#include <span>
#include <string>

namespace heed {

/// chrF of sentences against one reference each, 0 to 100: n-grams of 1 to 6 code points without white space;
/// recall has twice the weight of precision (Popovic 2015). A usage error when the numbers of sentences
/// differ.
double corpus_chrf(std::span<const std::string> outputs, std::span<const std::string> references);

/// The settings in sacreBLEU's format.
std::string chrf_signature();

}  // namespace heed
