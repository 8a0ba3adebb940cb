// Synthetic English-Italian sentence pairs from a grammar: the default corpus of translation.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/data/text/parallel_text.h"

namespace heed {

/// Size and seed of the phrasebook.
struct PhrasebookOptions {
  int64_t count = 60000;  ///< pairs, in 1 .. 1,000,000
  uint64_t seed = 1;      ///< another seed gives other sentences in another order
};

/// Pairs with distinct English sentences in random order. Each Italian sentence is the grammar's translation:
/// "you" is tu, "you all" voi, "I" and "we" masculine; pronouns agree with their noun. Equal options give
/// equal pairs, on every machine. Fault::usage for a count outside its bounds.
std::vector<Pair> phrasebook(const PhrasebookOptions& options = {});

}  // namespace heed
