// Sequences of keys and values with two keys swapped.
#include "heed/data/synthetic/key_swap.h"

#include "heed/data/synthetic/mad.h"
#include "heed/data/synthetic/multi_query_recall.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

using Tokens = std::vector<int32_t>;
using Places = std::vector<int64_t>;

ScoredSequence sequence_of(const Tokens& tokens, const std::vector<std::pair<size_t, int32_t>>& targets) {
  ScoredSequence out{tokens, Tokens(tokens.size(), not_scored)};
  for (const auto& [place, target] : targets) out.targets[place] = target;
  return out;
}

}  // namespace

TEST_CASE("key swap: keys change in front of their values, questions and values stay") {
  // 1 -> 11, 2 -> 12, then 2 and 1 are asked.
  const auto found = key_swap(sequence_of({1, 11, 2, 12, 2, 0, 1, 0}, {{4, 12}, {6, 11}}));
  REQUIRE(found);
  CHECK(found->tokens == Tokens{1, 11, 2, 12, 2, 0, 1, 0});
  CHECK(found->swapped == Tokens{2, 11, 1, 12, 2, 0, 1, 0});
  CHECK(found->question == 6);
  CHECK(found->answer == 11);
  CHECK(found->other_answer == 12);
  CHECK(found->keys == Places{0, 2});
  CHECK(found->values == Places{1, 3});
}

TEST_CASE("key swap: every earlier place of a key that returns with its value changes") {
  const auto found = key_swap(sequence_of({1, 11, 2, 12, 1, 11, 2, 12, 1, 11}, {{6, 12}, {8, 11}}));
  REQUIRE(found);
  CHECK(found->swapped == Tokens{2, 11, 1, 12, 2, 11, 1, 12, 1, 11});
  CHECK(found->keys == Places{0, 2, 4, 6});
  CHECK(found->values == Places{1, 3, 5, 7});
  CHECK(found->question == 8);
}

TEST_CASE("key swap: none without a question, a pair that was seen, or another key") {
  CHECK_FALSE(key_swap(sequence_of({1, 11, 2, 12}, {})));
  CHECK_FALSE(key_swap(sequence_of({1, 11, 3, 0}, {{2, 11}})));                        // 3 was never seen
  CHECK_FALSE(key_swap(sequence_of({1, 11, 2, 12, 1, 0}, {{4, 11}})));                 // 2 is never asked
  CHECK_FALSE(key_swap(sequence_of({1, 11, 2, 11, 2, 0, 1, 0}, {{4, 11}, {6, 11}})));  // one answer
  CHECK_FALSE(key_swap(sequence_of({1, 11, 1, 0, 2, 12}, {{2, 11}})));                 // 2 comes behind
  CHECK_FALSE(key_swap({}));
}

TEST_CASE("key swap: in the generated sequences the answer changes with the keys") {
  for (uint64_t number = 0; number < 50; ++number) {
    for (const ScoredSequence& drawn :
         {multi_query_recall({.vocabulary = 64, .length = 32, .pairs = 4}, CounterRng(1, number)),
          mad_recall({.vocabulary = 16, .length = 64}, MadUse::test, CounterRng(2, number))}) {
      const auto found = key_swap(drawn);
      if (!found) continue;
      const auto token = [&](const Tokens& tokens, int64_t place) {
        return tokens[static_cast<size_t>(place)];
      };
      const int32_t asked = token(found->tokens, found->question);
      CHECK(token(found->swapped, found->question) == asked);
      CHECK(found->answer != found->other_answer);
      for (size_t i = 0; i < found->keys.size(); ++i) {
        const int64_t key = found->keys[i], value = found->values[i];
        CHECK(value == key + 1);
        CHECK(value <= found->question);
        CHECK(token(found->tokens, key) != token(found->swapped, key));
        CHECK((token(found->swapped, key) == asked) == (token(found->swapped, value) == found->other_answer));
      }
    }
  }
}
