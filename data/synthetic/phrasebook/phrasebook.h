// The embedded default corpus: English and Italian sentences made by a grammar of ours.
#pragma once

#include <cstdint>
#include <vector>

#include "data/parallel_text.h"

namespace heed {

/// How much of the phrasebook to make.
struct PhrasebookOptions {
  int64_t count = 60000;  ///< pairs, in 1 .. 1,000,000
  uint64_t seed = 1;      ///< another seed, other sentences in another order
};

/// Pairs whose English sentences are all distinct, in a shuffled order. Each Italian sentence is the
/// translation that the grammar gives to its English one: "you" is tu, "you all" voi, "I" and "we" masculine;
/// pronouns agree with the noun they stand for. A pure function of its options, on every machine. Usage error
/// outside the bounds.
std::vector<Pair> phrasebook(const PhrasebookOptions& options = {});

}  // namespace heed
