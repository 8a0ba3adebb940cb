// Plans and padding of batches.
#include "heed/data/batching/padded_batches.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "heed/data/synthetic/phrasebook/phrasebook.h"
#include "heed/data/text/parallel_corpus.h"
#include "heed/data/tokenizers/sentencepiece.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/tests/data/scratch.h"

using namespace heed;

namespace {

using Ids = std::vector<int32_t>;

/// Pairs of lengths that vary as those of sentences do.
std::vector<EncodedPair> pairs(int64_t count) {
  std::vector<EncodedPair> out;
  for (int64_t i = 0; i < count; ++i) {
    const auto n = static_cast<uint64_t>(i);
    const int64_t source = 1 + counter_below(1, 0, n, 20);
    const int64_t target = std::max<int64_t>(1, source - 3 + counter_below(1, 1, n, 7));
    out.push_back({Ids(static_cast<size_t>(source), 5), Ids(static_cast<size_t>(target), 6)});
  }
  return out;
}

/// The fraction of padding among all ids of source and target_out in the batches of a plan.
double padding_share(const PairBatches& batches, const BatchPlan& plan) {
  int64_t used = 0, area = 0;
  for (const auto& indices : plan) {
    const PairBatch batch = batches.make(indices);
    for (const Rows* rows : {&batch.source, &batch.target_out}) {
      area += rows->rows * rows->columns;
      for (const int32_t length : rows->lengths) used += length;
    }
  }
  return 1.0 - static_cast<double>(used) / static_cast<double>(area);
}

/// Whether the plan holds each index exactly once.
bool complete(const BatchPlan& plan, int64_t count) {
  std::vector<int64_t> all;
  for (const auto& batch : plan) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < static_cast<int64_t>(all.size()); ++i) {
    if (all[static_cast<size_t>(i)] != i) return false;
  }
  return static_cast<int64_t>(all.size()) == count;
}

}  // namespace

TEST_CASE("batch: a batch is padded, framed and shifted") {
  const PairBatches batches({{{7, 8}, {9}}, {{4}, {5, 6, 7}}});
  const std::vector<int64_t> indices = {1, 0};
  const PairBatch batch = batches.make(indices);
  CHECK(batch.source.rows == 2);
  CHECK(batch.source.columns == 4);
  CHECK(batch.source.ids == Ids{2, 4, 3, 1, 2, 7, 8, 3});
  CHECK(batch.source.lengths == Ids{3, 4});
  CHECK(batch.target_in.columns == 4);
  CHECK(batch.target_in.ids == Ids{2, 5, 6, 7, 2, 9, 1, 1});
  CHECK(batch.target_in.lengths == Ids{4, 2});
  CHECK(batch.target_out.ids == Ids{5, 6, 7, 3, 9, 3, 1, 1});
  CHECK(batch.target_out.lengths == Ids{4, 2});
  CHECK(batch.target_tokens == 6);
}

TEST_CASE("batch: an empty side is a row of start and end") {
  const PairBatches batches(std::vector<EncodedPair>(1));
  const std::vector<int64_t> indices = {0};
  const PairBatch batch = batches.make(indices);
  CHECK(batch.source.ids == Ids{2, 3});
  CHECK(batch.target_in.ids == Ids{2});
  CHECK(batch.target_out.ids == Ids{3});
}

TEST_CASE("batch: fixed length and other special ids") {
  const PairBatches batches({{{7, 8}, {9}}}, {.tokens = 0,
                                              .sentences = 8,
                                              .buckets = false,
                                              .fixed_length = 5,
                                              .special = {.unknown = 3, .pad = 0, .start = 1, .end = 2}});
  const std::vector<int64_t> indices = {0};
  const PairBatch batch = batches.make(indices);
  CHECK(batch.source.ids == Ids{1, 7, 8, 2, 0});
  CHECK(batch.target_in.ids == Ids{1, 9, 0, 0, 0});
  CHECK(batch.target_out.ids == Ids{9, 2, 0, 0, 0});
}

TEST_CASE("batch: a source may have no start, as Marian's, whose translations start with padding") {
  const SpecialIds special{.unknown = 1, .pad = 9, .start = 9, .end = 0, .starts_source = false};
  const PairBatches batches({{{7, 8}, {4, 5, 6}}}, {.special = special});
  const PairBatch batch = batches.make(std::vector<int64_t>{0});
  CHECK(batch.source.ids == Ids{7, 8, 0});
  CHECK(batch.source.lengths == Ids{3});
  CHECK(batch.target_in.ids == Ids{9, 4, 5, 6});
  CHECK(batch.target_out.ids == Ids{4, 5, 6, 0});
}

TEST_CASE("batch: every epoch holds every pair once, in an order of its own") {
  for (const bool buckets : {true, false}) {
    const PairBatches batches(pairs(1000), {.tokens = 400, .buckets = buckets, .pool = 300, .seed = 3});
    const BatchPlan first = batches.epoch(0);
    CHECK(complete(first, 1000));
    CHECK(complete(batches.epoch(1), 1000));
    CHECK(complete(batches.in_order(), 1000));
    CHECK(batches.epoch(0) == first);
    CHECK(batches.epoch(1) != first);
    CHECK(PairBatches(pairs(1000), {.tokens = 400, .buckets = buckets, .pool = 300, .seed = 4}).epoch(0) !=
          first);
    CHECK(batches.in_order() == batches.in_order());
    refusal(Fault::usage, [&] { batches.epoch(-1); });
  }
}

TEST_CASE("batch: the bound on target tokens holds, padding included") {
  for (const bool buckets : {true, false}) {
    const PairBatches batches(pairs(2000), {.tokens = 256, .buckets = buckets});
    for (const auto& plan : {batches.epoch(0), batches.in_order()}) {
      for (const auto& indices : plan) {
        const PairBatch batch = batches.make(indices);
        CHECK(batch.target_out.rows * batch.target_out.columns <= 256);
        CHECK(batch.source.rows * batch.source.columns <= 512);
      }
    }
  }
  // A pair that is longer than a batch may be is alone.
  std::vector<EncodedPair> some = pairs(20);
  some[7].target.assign(500, 6);
  const PairBatches with_long(some, {.tokens = 256});
  const BatchPlan plan = with_long.epoch(0);
  CHECK(complete(plan, 20));
  CHECK(std::count(plan.begin(), plan.end(), std::vector<int64_t>{7}) == 1);
}

TEST_CASE("batch: a fixed number of sentences, the last batch smaller") {
  const PairBatches batches(pairs(30), {.tokens = 0, .sentences = 8, .buckets = false});
  const BatchPlan plan = batches.epoch(0);
  REQUIRE(plan.size() == 4);
  for (size_t i = 0; i < 3; ++i) CHECK(plan[i].size() == 8);
  CHECK(plan[3].size() == 6);
  CHECK(batches.in_order()[0] == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("batch: options that contradict each other are refused") {
  refusal(Fault::usage, [] { PairBatches({}, {.tokens = 4096, .sentences = 8}); });
  refusal(Fault::usage, [] { PairBatches({}, {.tokens = 0}); });
  refusal(Fault::usage, [] { PairBatches({}, {.pool = 0}); });
  refusal(Fault::usage, [] { PairBatches({}, {.fixed_length = 350}); });
  refusal(Fault::usage,
          [] { PairBatches({}, {.special = {.unknown = -1, .pad = -1, .start = -1, .end = -1}}); });
  CHECK_THAT(refusal(Fault::data,
                     [] {
                       PairBatches({{Ids(9, 5), Ids(2, 5)}}, {.buckets = false, .fixed_length = 10});
                     }),
             containing("pair 0 needs 11 source"));
  const PairBatches batches(pairs(3));
  refusal(Fault::usage, [&] { batches.make({}); });
  const std::vector<int64_t> beyond = {3};
  refusal(Fault::usage, [&] { batches.make(beyond); });
}

TEST_CASE("batch: no pairs, no batches") {
  const PairBatches batches({});
  CHECK(batches.epoch(0).empty());
  CHECK(batches.in_order().empty());
}

TEST_CASE("batch: under a tenth of the phrasebook is padding") {
  PairFile file;
  file.pairs = phrasebook({.count = 20000});
  const ParallelCorpus corpus = make_corpus(std::move(file));
  std::vector<EncodedPair> encoded;
  for (const Pair& pair : corpus.train) {
    encoded.push_back({Ids(word_pieces(pair.source).size(), 4), Ids(word_pieces(pair.target).size(), 4)});
  }
  const PairBatches batches(encoded, {.tokens = 1536});
  CHECK(padding_share(batches, batches.epoch(3)) < 0.10);
}

TEST_CASE("batch: under a tenth of the Europarl sample is padding") {
  const Path path = real_data("europarl-sample.en-it.tsv.gz");
  if (path.empty()) return;
  const ParallelCorpus corpus = make_corpus(read_pairs(path));
  const auto english = make_word_tokenizer(Vocabulary::train(sources(corpus.train)));
  const auto italian = make_word_tokenizer(Vocabulary::train(targets(corpus.train)));
  std::vector<EncodedPair> encoded;
  for (const Pair& pair : corpus.train) {
    encoded.push_back({english->encode(pair.source), italian->encode(pair.target)});
  }
  const PairBatches batches(encoded);
  const BatchPlan plan = batches.epoch(0);
  CHECK(complete(plan, batches.size()));
  CHECK(padding_share(batches, plan) < 0.10);
  CHECK(padding_share(batches, batches.in_order()) < 0.10);
  // Without buckets most would be padding.
  CHECK(padding_share(batches, PairBatches(encoded, {.buckets = false}).epoch(0)) > 0.25);
}

TEST_CASE("batch: few shapes pad the same batches further, by rows and wanted ids too, never by much") {
  for (int64_t n = 1; n < 3000; ++n) {
    const int64_t few = round_up_to_few(n);
    CHECK((few >= n && (n <= 4 || 4 * (few - n) < n)));
    CHECK((round_up_to_few(few) == few && round_up_to_few(n + 1) >= few));
  }
  for (const bool by_tokens : {true, false}) {
    CAPTURE(by_tokens);
    BatchOptions options{.tokens = by_tokens ? 400 : 0, .sentences = by_tokens ? 0 : 32, .seed = 3};
    const PairBatches exact(pairs(12000), options);
    options.few_shapes = true;
    options.max_columns = 24;
    const PairBatches few(pairs(12000), options);
    const BatchPlan plan = exact.epoch(0);
    CHECK((few.epoch(0) == plan));
    const auto less = [](const BatchFrame& a, const BatchFrame& b) {
      return std::tie(a.rows, a.source, a.target, a.padded_target_tokens) <
             std::tie(b.rows, b.source, b.target, b.padded_target_tokens);
    };
    std::set<BatchFrame, decltype(less)> frames(less), exact_frames(less);
    int64_t area = 0, needed = 0;
    for (const auto& indices : plan) {
      const PairBatch one = exact.make(indices), other = few.make(indices);
      const BatchFrame frame = few.frame(indices);
      frames.insert(frame);
      exact_frames.insert(exact.frame(indices));
      CHECK(one.padded_target_tokens == one.target_tokens);
      CHECK(other.target_tokens == one.target_tokens);
      CHECK((other.padded_target_tokens == frame.padded_target_tokens &&
             other.padded_target_tokens >= one.padded_target_tokens));
      CHECK((other.source.rows == frame.rows && other.source.columns == frame.source));
      CHECK((other.source.columns <= 24 && other.target_in.columns <= 24));
      area += frame.rows * (frame.source + frame.target);
      needed += one.source.rows * (one.source.columns + one.target_in.columns);
      for (const auto side : {&PairBatch::source, &PairBatch::target_in, &PairBatch::target_out}) {
        const Rows &small = one.*side, &large = other.*side;
        const int32_t none = side == &PairBatch::target_out ? 0 : 1;  // the length of an empty row
        REQUIRE(static_cast<int64_t>(large.ids.size()) == large.rows * large.columns);
        REQUIRE(static_cast<int64_t>(large.lengths.size()) == large.rows);
        for (int64_t row = 0; row < large.rows; ++row) {
          CHECK(large.lengths[static_cast<size_t>(row)] ==
                (row < small.rows ? small.lengths[static_cast<size_t>(row)] : none));
          for (int64_t t = 0; t < large.columns; ++t) {
            const bool there = row < small.rows && t < small.columns;
            const auto at = static_cast<size_t>(row * large.columns + t);
            if (large.ids[at] != (there ? small.ids[static_cast<size_t>(row * small.columns + t)] : 1))
              FAIL("row " << row << ", column " << t);
          }
        }
      }
    }
    CAPTURE(frames.size(), exact_frames.size(), area, needed);
    CHECK(frames.size() <= exact_frames.size() / 3);
    CHECK(static_cast<double>(area) < 1.5 * static_cast<double>(needed));
  }
}
