// Cleans and splits sentence pairs.
#include "heed/data/text/parallel_corpus.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_set>

#include "heed/data/batching/shuffle.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr uint64_t split_stream = 0;  // random stream of the shuffle

/// The part of a report that the reader of the file knows.
CorpusReport report_of(const PairFile& file) {
  return {.format = file.format,
          .files = file.files,
          .lines = file.lines,
          .empty = file.empty,
          .first_empty = file.first_empty};
}

}  // namespace

int64_t remove_repeats(std::vector<Pair>& pairs) {
  // Sides may contain tabs; the source's length in front makes the key unambiguous.
  std::unordered_set<std::string> seen;
  seen.reserve(pairs.size());
  return static_cast<int64_t>(std::erase_if(pairs, [&](const Pair& pair) {
    return !seen.insert(text(pair.source.size(), "\t", pair.source, "\t", pair.target)).second;
  }));
}

int64_t remove_longer(std::vector<Pair>& pairs, int64_t max_words) {
  if (max_words < 1) fail("corpus: the longest pair cannot have ", max_words, " words. Give at least 1.");
  return static_cast<int64_t>(std::erase_if(pairs, [&](const Pair& pair) {
    return blank_separated_words(pair.source) > max_words || blank_separated_words(pair.target) > max_words;
  }));
}

ParallelCorpus whole_as_test(PairFile file) {
  ParallelCorpus corpus;
  corpus.report = report_of(file);
  corpus.test = std::move(file.pairs);
  return corpus;
}

ParallelCorpus make_corpus(PairFile file, const CorpusOptions& options) {
  if (options.validation < 0 || options.test < 0 || options.max_words < 0) {
    fail("corpus: validation = ", options.validation, ", test = ", options.test,
         ", max_words = ", options.max_words, "; none may be negative.");
  }
  ParallelCorpus corpus;
  CorpusReport& report = corpus.report = report_of(file);
  std::vector<Pair>& pairs = file.pairs;
  if (options.deduplicate) report.repeats = remove_repeats(pairs);
  if (options.max_words > 0) report.longer = remove_longer(pairs, options.max_words);

  const auto num_held_out = options.validation + options.test;
  if (static_cast<int64_t>(pairs.size()) <= num_held_out) {
    const std::string where =
        report.files.empty() ? "corpus" : text(report.files.front().path, ":", report.lines);
    fail(Fault::data, where, ": ", pairs.size(), " pairs are left of ", report.lines, " lines (",
         report.empty, " with an empty side, ", report.repeats, " repeats, ", report.longer,
         " too long), and ", options.validation, " + ", options.test,
         " are to be held out: none is left to train on. Hold out fewer, or bring more pairs.");
  }
  shuffle(std::span(pairs), options.seed, split_stream);
  const auto take_pairs = [&](int64_t begin, int64_t end) {
    return std::vector<Pair>(std::make_move_iterator(pairs.begin() + begin),
                             std::make_move_iterator(pairs.begin() + end));
  };
  corpus.validation = take_pairs(0, options.validation);
  corpus.test = take_pairs(options.validation, num_held_out);
  corpus.train = take_pairs(num_held_out, static_cast<int64_t>(pairs.size()));
  return corpus;
}

std::string to_string(const CorpusReport& report) {
  std::string out = text(report.format, ", ", report.lines, " lines");
  if (report.empty > 0)
    out += text(", ", report.empty, " with an empty side (first: ", report.first_empty, ")");
  if (report.repeats > 0) out += text(", ", report.repeats, " repeats");
  if (report.longer > 0) out += text(", ", report.longer, " too long");
  return out;
}

}  // namespace heed
