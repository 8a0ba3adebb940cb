// The random generator: known values, independent draws, and its state of three integers.
#include "heed/core/random.h"

#include <set>

#include "heed/tests/core/numbers.h"

using namespace heed;

TEST_CASE("philox: the published answers for 4x32-10") {
  // Salmon et al. 2011, known-answer vectors of the reference implementation.
  const Philox zeros = Philox::at(0, 0, 0);
  CHECK(zeros.word[0] == 0x6627e8d5U);
  CHECK(zeros.word[1] == 0xe169c58dU);
  CHECK(zeros.word[2] == 0xbc57ac4cU);
  CHECK(zeros.word[3] == 0x9b00dbd8U);
  const uint64_t ones = ~uint64_t{0};
  const Philox full = Philox::at(ones, ones, ones);
  CHECK(full.word[0] == 0x408f276dU);
  CHECK(full.word[1] == 0x41c83b0eU);
  CHECK(full.word[2] == 0xa20bc7c6U);
  CHECK(full.word[3] == 0x6d5451fdU);
}

TEST_CASE("rng: every draw of every tick is another one, and the same seed gives the same") {
  const auto first = [](Rng& rng) {
    Tensor x(Shape{4});
    fill_uniform(x, 0, 1, rng);
    return x.to_host();
  };
  Rng a(7), b(7), c(8);
  std::set<std::vector<float>> seen;
  for (int tick = 0; tick < 3; ++tick) {
    for (int draw = 0; draw < 3; ++draw) {
      const auto numbers = first(a);
      CHECK(first(b) == numbers);
      CHECK(first(c) != numbers);
      seen.insert(numbers);
    }
    a.advance();
    b.advance();
    c.advance();
  }
  CHECK(seen.size() == 9);
  CHECK(a.tick() == 3);
  CHECK(a.draws() == 0);
}

TEST_CASE("rng: restored, it continues with the same numbers") {
  Rng rng(5);
  rng.advance();
  rng.next();
  Rng again(rng.seed());
  again.restore(rng.tick(), rng.draws());
  CHECK(again.uniform() == rng.uniform());
  Tensor x(Shape{100}), y(Shape{100});
  fill_normal(x, 0, 1, rng);
  fill_normal(y, 0, 1, again);
  CHECK(same_bits(x, y));
}

TEST_CASE("rng: host draws are uniform, and below() reaches every value") {
  Rng rng(3);
  double sum = 0;
  for (int i = 0; i < 20000; ++i) {
    const double u = rng.uniform();
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    sum += u;
  }
  CHECK(std::abs(sum / 20000 - 0.5) < 0.01);
  std::vector<int> count(7, 0);
  for (int i = 0; i < 7000; ++i) ++count[static_cast<size_t>(rng.below(7))];
  for (int hits : count) CHECK(std::abs(hits - 1000) < 150);
  CHECK_THROWS_AS(rng.below(0), Error);
}
