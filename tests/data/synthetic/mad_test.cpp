// The tasks of MAD: answers follow from the sequences, and what is scored is what the published code scores.
#include "heed/data/synthetic/mad.h"

#include <map>
#include <set>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// The targets of a sequence whose targets are next tokens, moved to the tokens that they equal.
std::vector<int32_t> answers(const ScoredSequence& drawn) {
  std::vector<int32_t> out{not_scored};
  out.insert(out.end(), drawn.targets.begin(), drawn.targets.end());
  return out;
}

}  // namespace

TEST_CASE("mad: recall scores the value of a key that was seen before, and the last pair") {
  const MadOptions options{.vocabulary = 16, .length = 64};
  for (uint64_t number = 0; number < 200; ++number) {
    const ScoredSequence drawn = mad_recall(options, MadUse::test, CounterRng(1, number));
    REQUIRE(drawn.tokens.size() == 63);
    const std::vector<int32_t> answer = answers(drawn);
    std::map<int32_t, int32_t> value_of;
    for (size_t i = 0; i + 1 < 63; i += 2) {
      const int32_t key = drawn.tokens[i], value = drawn.tokens[i + 1];
      CHECK((key >= 0 && key < 8 && value >= 8 && value < 16));
      CHECK(answer[i] == not_scored);
      const bool is_new = value_of.emplace(key, value).second;
      CHECK(value_of[key] == value);
      CHECK(answer[i + 1] == (is_new ? not_scored : value));
    }
    REQUIRE(value_of.contains(drawn.tokens[62]));
    CHECK(answer[63] == value_of[drawn.tokens[62]]);
  }
}

TEST_CASE("mad: training of recall predicts every next token of the sequence that the test would have") {
  const MadOptions options{.vocabulary = 32, .length = 64, .noise_vocabulary = 16, .noise = 0.2};
  const ScoredSequence training = mad_recall(options, MadUse::training, CounterRng(1, 9)),
                       test = mad_recall(options, MadUse::test, CounterRng(1, 9));
  CHECK(training.tokens == test.tokens);
  for (size_t i = 0; i + 1 < training.tokens.size(); ++i)
    CHECK(training.targets[i] == training.tokens[i + 1]);
  CHECK(training.targets.back() == test.targets.back());
}

TEST_CASE("mad: noise comes in pairs at its rate, is never scored, and leaves one pair at least") {
  MadOptions options{.vocabulary = 32, .length = 128, .noise_vocabulary = 16, .noise = 0.4};
  double pairs = 0, noisy = 0;
  for (uint64_t number = 0; number < 300; ++number) {
    const ScoredSequence drawn = mad_recall(options, MadUse::test, CounterRng(1, number));
    const std::vector<int32_t> answer = answers(drawn);
    for (size_t i = 0; i + 1 < 127; i += 2) {
      const bool is_noise = drawn.tokens[i] >= 16;
      CHECK(is_noise == (drawn.tokens[i + 1] >= 16));
      if (is_noise) CHECK(answer[i + 1] == not_scored);
      ++pairs;
      noisy += is_noise ? 1 : 0;
    }
  }
  // One of 63 pairs is never noise; a standard deviation is 0.0035.
  CHECK(noisy / pairs == Approx(0.4 * 62 / 63).margin(0.014));
  options.noise = 0.9999;
  for (uint64_t number = 0; number < 100; ++number)
    CHECK(mad_recall(options, MadUse::test, CounterRng(1, number)).targets.back() >= 8);
}

TEST_CASE("mad: fuzzy recall keeps the values of keys, and tests with the longest keys alone") {
  const MadOptions options{.vocabulary = 16, .length = 128, .max_key = 3, .max_value = 3};
  int64_t last_was_seen = 0;  // sequences of the test whose last pair stands before, too
  for (const MadUse use : {MadUse::test, MadUse::training}) {
    std::set<size_t> key_sizes, value_sizes;
    for (uint64_t number = 0; number < 300; ++number) {
      const ScoredSequence drawn = mad_fuzzy_recall(options, use, CounterRng(1, number));
      REQUIRE(drawn.tokens.size() == 128);
      const std::vector<int32_t> answer = answers(drawn);
      std::vector<int32_t> all = drawn.tokens;
      all.push_back(answer.back());
      size_t at = 0;
      while (all[at] == 15) ++at;
      CHECK(at >= 1);
      std::map<std::vector<int32_t>, std::vector<int32_t>> value_of;
      while (at < all.size()) {
        std::vector<int32_t> key, value;
        while (all[at] < 7) key.push_back(all[at++]);
        const size_t first_value = at;
        while (at < all.size() && all[at] >= 7) value.push_back(all[at++]);
        REQUIRE((!key.empty() && !value.empty()));
        CHECK(std::set<int32_t>(key.begin(), key.end()).size() == key.size());
        CHECK(std::set<int32_t>(value.begin(), value.end()).size() == value.size());
        key_sizes.insert(key.size());
        value_sizes.insert(value.size());
        const bool is_new = value_of.emplace(key, value).second;
        CHECK(value_of[key] == value);
        if (use == MadUse::training) continue;
        for (size_t i = first_value; i < at; ++i)
          CHECK(answer[i] == (is_new && at < all.size() ? not_scored : all[i]));
        last_was_seen += !is_new && at == all.size() ? 1 : 0;
      }
      if (use == MadUse::training) {
        for (size_t i = 0; i + 1 < 128; ++i) CHECK(drawn.targets[i] == drawn.tokens[i + 1]);
      }
    }
    CHECK(key_sizes == (use == MadUse::test ? std::set<size_t>{3} : std::set<size_t>{1, 2, 3}));
    CHECK(value_sizes == std::set<size_t>{1, 2, 3});
  }
  CHECK(last_was_seen > 270);
}

TEST_CASE("mad: selective copying asks for the tokens in order") {
  const MadOptions options{.vocabulary = 16, .length = 64, .copied = 8};
  std::set<int64_t> before_first;
  for (uint64_t number = 0; number < 200; ++number) {
    const ScoredSequence drawn = mad_selective_copying(options, CounterRng(1, number));
    REQUIRE(drawn.tokens.size() == 64);
    std::vector<int32_t> tokens, asked;
    for (size_t i = 0; i < 64; ++i) {
      if (i < 55 && drawn.tokens[i] != 14) tokens.push_back(drawn.tokens[i]);
      if (i >= 56) CHECK(drawn.tokens[i] == 14);
      if (drawn.targets[i] != not_scored) asked.push_back(drawn.targets[i]);
      CHECK((drawn.targets[i] == not_scored) == (i < 56));
    }
    CHECK(drawn.tokens[55] == 15);
    CHECK(drawn.tokens[54] < 14);  // no blank between the last token and the question
    CHECK(tokens.size() == 8);
    CHECK(asked == tokens);
    int64_t blanks = 0;
    while (drawn.tokens[static_cast<size_t>(blanks)] == 14) ++blanks;
    before_first.insert(blanks);
  }
  CHECK(before_first.size() > 8);
}

TEST_CASE("mad: compression asks for every token, and for the last one too") {
  const ScoredSequence drawn = mad_compression({.vocabulary = 16, .length = 32}, CounterRng(1, 1));
  REQUIRE(drawn.tokens.size() == 32);
  CHECK(drawn.targets == drawn.tokens);
  for (size_t i = 0; i < 31; ++i) CHECK((drawn.tokens[i] >= 0 && drawn.tokens[i] < 15));
  CHECK(drawn.tokens[31] == 15);
}

TEST_CASE("mad: memorization has one map of different values, and another one of another seed") {
  const MadOptions options{.vocabulary = 256, .length = 32};
  const std::vector<int64_t> values = mad_memorized_values(options, 1);
  CHECK(values.size() == 127);
  CHECK(std::set<int64_t>(values.begin(), values.end()).size() == 127);
  for (const int64_t value : values) CHECK((value >= 127 && value < 255));
  CHECK(values == mad_memorized_values(options, 1));
  CHECK(values != mad_memorized_values(options, 2));
  std::set<int32_t> keys;
  for (uint64_t number = 0; number < 200; ++number) {
    const ScoredSequence drawn = mad_memorization(options, values, CounterRng(1, number));
    REQUIRE(drawn.tokens.size() == 32);
    for (size_t i = 0; i < 32; i += 2) {
      keys.insert(drawn.tokens[i]);
      CHECK(drawn.tokens[i + 1] == 255);
      CHECK(drawn.targets[i] == not_scored);
      CHECK(drawn.targets[i + 1] == values[static_cast<size_t>(drawn.tokens[i])]);
    }
  }
  CHECK(keys.size() == 127);
}

TEST_CASE("mad: the same seed and number give the same sequence") {
  const MadOptions options{.noise_vocabulary = 4, .noise = 0.3};
  const auto tokens = [&](uint64_t seed) {
    return std::vector<std::vector<int32_t>>{
        mad_recall(options, MadUse::training, CounterRng(seed, 3)).tokens,
        mad_fuzzy_recall(options, MadUse::training, CounterRng(seed, 3)).tokens,
        mad_selective_copying(options, CounterRng(seed, 3)).tokens,
        mad_compression(options, CounterRng(seed, 3)).tokens,
        mad_memorization(options, mad_memorized_values(options, seed), CounterRng(seed, 3)).tokens};
  };
  const auto one = tokens(1), again = tokens(1), other = tokens(2);
  CHECK(one == again);
  for (size_t i = 0; i < one.size(); ++i) CHECK(one[i] != other[i]);
}
