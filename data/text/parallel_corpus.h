// Prepares a parallel corpus: removes repeats and long pairs, splits it reproducibly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/data/text/parallel_text.h"

namespace heed {

/// Removes each pair that is equal to an earlier one. Returns the number of pairs removed.
int64_t remove_repeats(std::vector<Pair>& pairs);

/// Removes pairs with a side of more than `max_words` blank-separated words. Returns the number of pairs
/// removed.
int64_t remove_longer(std::vector<Pair>& pairs, int64_t max_words);

/// How to prepare a corpus.
struct CorpusOptions {
  int64_t validation = 1000;  ///< pairs held out to choose the best checkpoint
  int64_t test = 1000;        ///< pairs held out for the final score
  int64_t max_words = 128;    ///< maximum words of a side; 0: no limit
  bool deduplicate = true;    ///< remove exact repeats before the split
  uint64_t seed = 1234;       ///< seed of the shuffle
};

/// Counts of pairs that were read and removed, in order of the steps.
struct CorpusReport {
  std::string format;             ///< see PairFile::format
  std::vector<SourceFile> files;  ///< all files that were read
  int64_t lines = 0;              ///< pairs read
  int64_t empty = 0;              ///< pairs skipped because a side was blank
  int64_t repeats = 0;            ///< pairs removed because they are equal to an earlier one
  int64_t longer = 0;             ///< pairs removed because a side was too long
  std::string first_empty;        ///< file:line of the first pair with a blank side
};

/// Training, validation and test pairs; disjoint if `deduplicate`.
struct ParallelCorpus {
  std::vector<Pair> train;       ///< all pairs that are not held out
  std::vector<Pair> validation;  ///< held out to choose the best checkpoint
  std::vector<Pair> test;        ///< held out for the final score
  CorpusReport report;           ///< what was read and removed
};

/// Cleans the pairs, shuffles them, and splits off the first `validation`, then `test` pairs. A pure function
/// of its arguments, on every machine. Fault::data when no training pair is left.
ParallelCorpus make_corpus(PairFile file, const CorpusOptions& options = {});

/// A corpus whose test set is all pairs, in the order of the file and with their repeats; it trains on none.
ParallelCorpus whole_as_test(PairFile file);

/// The report as one line, for terminals and logs.
std::string to_string(const CorpusReport& report);

}  // namespace heed
