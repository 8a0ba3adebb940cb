// Cleaning and splitting of sentence pairs.
#include "heed/data/text/parallel_corpus.h"

#include <set>

#include "heed/tests/data/scratch.h"

using namespace heed;

namespace {

PairFile numbered(int64_t count) {
  PairFile file;
  for (int64_t i = 0; i < count; ++i) file.pairs.push_back({text("s", i), text("t", i)});
  file.lines = count;
  return file;
}

}  // namespace

TEST_CASE("corpus: exact repeats go, the first stays") {
  std::vector<Pair> pairs = {{"a", "b"}, {"a", "c"}, {"a", "b"}, {"a\tb", "c"}, {"a", "b\tc"}, {"a", "c"}};
  CHECK(remove_repeats(pairs) == 2);
  CHECK(pairs == std::vector<Pair>{{"a", "b"}, {"a", "c"}, {"a\tb", "c"}, {"a", "b\tc"}});
}

TEST_CASE("corpus: a pair with a long side goes") {
  std::vector<Pair> pairs = {{"a b c", "d"}, {"a", "b c d"}, {"a b", "c d"}};
  CHECK(remove_longer(pairs, 2) == 2);
  CHECK(pairs == std::vector<Pair>{{"a b", "c d"}});
  refusal(Fault::usage, [&] { remove_longer(pairs, 0); });
}

TEST_CASE("corpus: the split is a partition that depends on the seed alone") {
  const CorpusOptions options = {.validation = 10, .test = 20, .seed = 7};
  const ParallelCorpus corpus = make_corpus(numbered(100), options);
  CHECK(corpus.validation.size() == 10);
  CHECK(corpus.test.size() == 20);
  CHECK(corpus.train.size() == 70);
  std::set<std::string> all;
  for (const auto* part : {&corpus.train, &corpus.validation, &corpus.test}) {
    for (const Pair& pair : *part) all.insert(pair.source);
  }
  CHECK(all.size() == 100);
  CHECK(make_corpus(numbered(100), options).validation == corpus.validation);
  CHECK(make_corpus(numbered(100), {.validation = 10, .test = 20, .seed = 8}).validation !=
        corpus.validation);
  // These are held out for ever: a change here would leak test pairs into the training of old runs.
  CHECK(corpus.validation[0].source == "s34");
  CHECK(corpus.test[0].source == "s24");
  CHECK(corpus.train[0].source == "s23");
}

TEST_CASE("corpus: nothing to train on is refused with the numbers") {
  const std::string text =
      refusal(Fault::data, [] { make_corpus(numbered(30), {.validation = 10, .test = 20}); });
  CHECK_THAT(text, containing("30 pairs"));
  CHECK_THAT(text, containing("10 + 20"));
  refusal(Fault::usage, [] { make_corpus(numbered(30), {.validation = -1}); });
}

TEST_CASE("corpus: the report counts what went") {
  PairFile file = numbered(5);
  file.pairs.push_back(file.pairs[0]);
  file.pairs.push_back({"one two three", "x"});
  file.lines = 8;
  file.empty = 1;
  file.first_empty = "c.tsv:4";
  file.format = "tsv";
  const ParallelCorpus corpus = make_corpus(file, {.validation = 1, .test = 1, .max_words = 2});
  CHECK(corpus.train.size() == 3);
  CHECK(to_string(corpus.report) ==
        "tsv, 8 lines, 1 with an empty side (first: c.tsv:4), 1 repeats, 1 too long");
}

TEST_CASE("corpus: the Europarl sample") {
  const Path path = real_data("europarl-sample.en-it.tsv.gz");
  if (path.empty()) return;
  const ParallelCorpus corpus = make_corpus(read_pairs(path));
  CHECK(corpus.report.lines == 59524);
  CHECK(corpus.report.empty == 0);
  CHECK(corpus.report.repeats == 2656);
  CHECK(corpus.report.longer == 0);
  CHECK(corpus.train.size() + corpus.validation.size() + corpus.test.size() == 56868);
  CHECK(corpus.train.size() == 54868);
  CHECK(corpus.report.files[0].sha256 == "86169604718eb84cade2764131e759c8ea5dd4698ade6d9665b43bb4aa199c8f");
  std::set<std::pair<std::string, std::string>> held;
  for (const auto* part : {&corpus.validation, &corpus.test}) {
    for (const Pair& pair : *part) held.insert({pair.source, pair.target});
  }
  CHECK(held.size() == 2000);
  const auto leaked = std::count_if(corpus.train.begin(), corpus.train.end(), [&](const Pair& pair) {
    return held.contains({pair.source, pair.target});
  });
  CHECK(leaked == 0);
}
