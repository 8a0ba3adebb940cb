// A parallel corpus made ready: repeats and long pairs removed, split once and for all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/parallel_text.h"

namespace heed {

/// Removes pairs that occurred before, both sides being equal; the first stays. Returns how many went.
int64_t remove_repeats(std::vector<Pair>& pairs);

/// Removes pairs of which a side has more than `words` blank-separated words. Returns how many went.
int64_t remove_longer(std::vector<Pair>& pairs, int64_t words);

/// How a corpus is made ready.
struct CorpusOptions {
  int64_t validation = 1000;  ///< pairs held out to choose the best checkpoint
  int64_t test = 1000;        ///< pairs held out for the final score
  int64_t longest = 128;      ///< words a side at most; 0 keeps all
  bool distinct = true;       ///< exact repeats go before anything is held out
  uint64_t seed = 1234;       ///< of the one shuffle
};

/// What became of the pairs, in the order it happened.
struct CorpusReport {
  std::string format;
  std::vector<SourceFile> files;
  int64_t lines = 0, empty = 0, repeats = 0, longer = 0;
  std::string first_empty;  ///< file:line
};

/// Training, validation and test pairs that have no pair in common (when `distinct`).
struct ParallelCorpus {
  std::vector<Pair> train, validation, test;
  CorpusReport report;
};

/// Cleans the pairs, shuffles them once, and holds out the first `validation` and the next `test`. A pure
/// function of its arguments, on every machine. Fault::data when no pair is left to train on.
ParallelCorpus make_corpus(PairFile file, const CorpusOptions& options = {});

/// The report as one line, for terminals and logs.
std::string to_string(const CorpusReport& report);

}  // namespace heed
