// Multi-query recall and induction: sequences are well formed, answers follow from them, gaps keep their law.
#include "heed/data/synthetic/multi_query_recall.h"

#include <cmath>
#include <set>

#include "heed/data/synthetic/induction.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// The sum over categories of (count - expected)^2 / expected.
double chi_square(const std::vector<double>& counts, const std::vector<double>& weights) {
  double sum = 0, weight = 0, total = 0;
  for (const double count : counts) total += count;
  for (const double one : weights) weight += one;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * weights[i] / weight;
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

}  // namespace

TEST_CASE("multi_query_recall: keys, values and questions are those of the published layout") {
  const MultiQueryRecall options{.vocabulary = 40, .length = 32, .pairs = 7};
  std::set<int32_t> keys_of_all, values_of_all;
  for (uint64_t number = 0; number < 300; ++number) {
    const ScoredSequence drawn = multi_query_recall(options, CounterRng(3, number));
    REQUIRE(drawn.tokens.size() == 32);
    REQUIRE(drawn.targets.size() == 32);
    std::set<int32_t> keys, values, asked;
    for (size_t pair = 0; pair < 7; ++pair) {
      const int32_t key = drawn.tokens[2 * pair], value = drawn.tokens[2 * pair + 1];
      CHECK((key >= 1 && key < 20));
      CHECK((value >= 20 && value < 40));
      CHECK(keys.insert(key).second);
      CHECK(values.insert(value).second);
      CHECK(drawn.targets[2 * pair] == not_scored);
      CHECK(drawn.targets[2 * pair + 1] == not_scored);
      for (size_t place = 14; place < 32; ++place) {
        if (drawn.tokens[place] != key) continue;
        CHECK(place % 2 == 0);
        CHECK(drawn.targets[place] == value);
        CHECK(asked.insert(key).second);
      }
    }
    CHECK(asked == keys);
    for (size_t place = 14; place < 32; ++place)
      CHECK((drawn.tokens[place] == 0) == (drawn.targets[place] == not_scored));
    keys_of_all.merge(keys);
    values_of_all.merge(values);
  }
  CHECK(keys_of_all.size() == 19);
  CHECK(values_of_all.size() == 20);
}

TEST_CASE("multi_query_recall: random filler is any token, and changes neither questions nor targets") {
  const MultiQueryRecall plain{.vocabulary = 40, .length = 64, .pairs = 4};
  MultiQueryRecall filled = plain;
  filled.random_filler = true;
  std::set<int32_t> filler;
  for (uint64_t number = 0; number < 50; ++number) {
    const ScoredSequence zeros = multi_query_recall(plain, CounterRng(1, number)),
                         random = multi_query_recall(filled, CounterRng(1, number));
    CHECK(random.targets == zeros.targets);
    for (size_t place = 0; place < 64; ++place) {
      if (zeros.tokens[place] != 0)
        CHECK(random.tokens[place] == zeros.tokens[place]);
      else
        filler.insert(random.tokens[place]);
    }
  }
  CHECK(filler.size() == 40);
}

TEST_CASE("multi_query_recall: gaps follow the power law, drawn without replacement") {
  for (const double alpha : {0.01, 0.5, 1.0}) {
    CAPTURE(alpha);
    const MultiQueryRecall options{.length = 28, .pairs = 2, .alpha = alpha};
    std::vector<double> first(12), second_after_first(12), weights(12);
    for (size_t n = 0; n < 12; ++n) weights[n] = std::pow(static_cast<double>(n + 1), alpha - 1);
    for (uint64_t number = 0; number < 20000; ++number) {
      const ScoredSequence drawn = multi_query_recall(options, CounterRng(7, number));
      size_t gaps[2] = {};
      for (size_t place = 4; place < 28; ++place) {
        if (drawn.tokens[place] != 0) gaps[drawn.tokens[place] == drawn.tokens[0] ? 0 : 1] = (place - 4) / 2;
      }
      ++first[gaps[0]];
      if (gaps[0] == 0) ++second_after_first[gaps[1]];
    }
    CHECK(chi_square(first, weights) < 31.3);  // 11 degrees of freedom, one in a thousand
    CHECK(second_after_first[0] == 0);
    second_after_first.erase(second_after_first.begin());
    weights.erase(weights.begin());
    CHECK(chi_square(second_after_first, weights) < 29.6);  // 10 degrees of freedom
  }
}

TEST_CASE("multi_query_recall: the same seed and number give the same sequence, other ones another") {
  const auto tokens = [](uint64_t seed, uint64_t number) {
    return multi_query_recall({}, CounterRng(seed, number)).tokens;
  };
  CHECK(tokens(1, 5) == tokens(1, 5));
  CHECK(tokens(1, 5) != tokens(1, 6));
  CHECK(tokens(1, 5) != tokens(2, 5));
  // Bits that later versions must keep: the keys and values of one sequence.
  const std::vector<int32_t> drawn = tokens(1, 5);
  CHECK(std::vector<int32_t>(drawn.begin(), drawn.begin() + 8) ==
        std::vector<int32_t>{385, 4765, 2507, 4933, 603, 5576, 659, 7357});
}

TEST_CASE("induction: the special token stands once before the end, and what follows it is the target") {
  const Induction options{.vocabulary = 16, .length = 32};
  std::vector<double> places(30), answers(15);
  for (uint64_t number = 0; number < 6000; ++number) {
    const ScoredSequence drawn = induction(options, CounterRng(2, number));
    REQUIRE(drawn.tokens.size() == 32);
    CHECK(drawn.tokens[31] == 15);
    size_t place = 0, found = 0;
    for (size_t i = 0; i < 31; ++i) {
      CHECK((drawn.tokens[i] >= 0 && drawn.tokens[i] <= 15));
      CHECK(drawn.targets[i] == not_scored);
      if (drawn.tokens[i] != 15) continue;
      place = i;
      ++found;
    }
    REQUIRE(found == 1);
    REQUIRE(place < 30);
    CHECK(drawn.targets[31] == drawn.tokens[place + 1]);
    ++places[place];
    ++answers[static_cast<size_t>(drawn.targets[31])];
  }
  CHECK(chi_square(places, std::vector<double>(30, 1)) < 58.4);   // 29 degrees of freedom, one in a thousand
  CHECK(chi_square(answers, std::vector<double>(15, 1)) < 36.2);  // 14
}
