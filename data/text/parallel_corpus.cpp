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

constexpr uint64_t split_stream = 0;

CorpusReport report_of(const PairFile& file) {
  return {.format = file.format,
          .files = file.files,
          .lines = file.lines,
          .empty = file.empty,
          .first_empty = file.first_empty};
}

}  // namespace

int64_t remove_repeats(std::vector<Pair>& pairs) {
  // The key is unambiguous: the length comes first, since sides may contain tabs.
  std::unordered_set<std::string> seen;
  seen.reserve(pairs.size());
  return static_cast<int64_t>(std::erase_if(pairs, [&](const Pair& pair) {
    return !seen.insert(text(pair.source.size(), "\t", pair.source, "\t", pair.target)).second;
  }));
}

int64_t remove_longer(std::vector<Pair>& pairs, int64_t words) {
  if (words < 1) fail("corpus: the longest pair cannot have ", words, " words. Give at least 1.");
  return static_cast<int64_t>(std::erase_if(pairs, [&](const Pair& pair) {
    return blank_separated_words(pair.source) > words || blank_separated_words(pair.target) > words;
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

  const auto held_out = options.validation + options.test;
  if (static_cast<int64_t>(pairs.size()) <= held_out) {
    const std::string where =
        report.files.empty() ? "corpus" : text(report.files.front().path, ":", report.lines);
    fail(Fault::data, where, ": ", pairs.size(), " pairs are left of ", report.lines, " lines (",
         report.empty, " with an empty side, ", report.repeats, " repeats, ", report.longer,
         " too long), and ", options.validation, " + ", options.test,
         " are to be held out: none is left to train on. Hold out fewer, or bring more pairs.");
  }
  shuffle(std::span(pairs), options.seed, split_stream);
  const auto move_to = [&](int64_t begin, int64_t end) {
    return std::vector<Pair>(std::make_move_iterator(pairs.begin() + begin),
                             std::make_move_iterator(pairs.begin() + end));
  };
  corpus.validation = move_to(0, options.validation);
  corpus.test = move_to(options.validation, held_out);
  corpus.train = move_to(held_out, static_cast<int64_t>(pairs.size()));
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
