// Synthetic documents and images: labels that only distant words reveal.
#include "heed/data/synthetic/retrieval_documents.h"

#include <algorithm>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/baselines.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("ledgers: the label is what the named person says") {
  const Sequences all = ledgers(300, 5, {.shortest = 600, .longest = 1500});
  REQUIRE(all.count() == 300);
  CHECK(std::count(all.labels.begin(), all.labels.end(), uint8_t{1}) == 150);
  int64_t far = 0;
  for (int64_t i = 0; i < all.count(); ++i) {
    const std::string_view one = all.at(i);
    CHECK(one.size() >= 590);
    CHECK(one.size() <= 1600);
    CHECK(one.find('\n') == std::string_view::npos);
    const std::string start = "Only the word of ";
    REQUIRE(one.starts_with(start));
    const std::string person(one.substr(start.size(), one.find(' ', start.size()) - start.size()));
    const size_t said = one.find(person + " calls ");
    REQUIRE(said != std::string_view::npos);
    const std::string_view verdict = one.substr(said, one.find('.', said) - said);
    CHECK((verdict.ends_with("good") ? 1 : 0) == all.labels[static_cast<size_t>(i)]);
    far += said > 300 ? 1 : 0;
    int64_t good = 0, poor = 0;
    for (const std::string each : {"Anna", "Boris", "Clara", "Dario", "Elena", "Felix", "Greta", "Hugo"}) {
      const size_t at = one.find(each + " calls ");
      REQUIRE(at != std::string_view::npos);
      ++(one.substr(at, one.find('.', at) - at).ends_with("good") ? good : poor);
    }
    CHECK(good == 4);
    CHECK(poor == 4);
  }
  CHECK(far > 150);
}

TEST_CASE("ledgers: counting bytes, or runs of them, tells nothing of the label") {
  const Sequences all = ledgers(4000, 5, {.shortest = 600, .longest = 1000});
  const Sequences known = all.slice(0, 2000), asked = all.slice(2000, 4000);
  // Three deviations of a coin thrown 2,000 times: 0.034.
  CHECK(byte_runs(known, asked, 1, true) == Approx(0.5).margin(0.034));
  CHECK(byte_runs(known, asked, 4, false) == Approx(0.5).margin(0.034));
  const Sequences pairs = paired_ledgers(4000, 5, {.shortest = 600, .longest = 1000});
  CHECK(std::count(pairs.labels.begin(), pairs.labels.end(), uint8_t{1}) == 2000);
  CHECK(histogram_cosine(pairs.slice(0, 2000), pairs.slice(2000, 4000)) == Approx(0.5).margin(0.045));
}

TEST_CASE("ledgers: pairs are together when they name the same house") {
  const Sequences pairs = paired_ledgers(200, 9, {.shortest = 600, .longest = 900});
  const auto house = [&](int64_t i, int64_t part) {
    const std::string_view one = pairs.at(i, part);
    const std::string_view start = "the house of ";
    const size_t at = one.find(start);
    REQUIRE(at != std::string_view::npos);
    return one.substr(at + start.size(), one.find('.', at) - at - start.size());
  };
  for (int64_t i = 0; i < pairs.count(); ++i)
    CHECK((house(i, 0) == house(i, 1) ? 1 : 0) == pairs.labels[static_cast<size_t>(i)]);
}

TEST_CASE("ledgers: the same for any number of threads, others for another seed") {
  const int before = threads();
  for (const auto make : {+[](uint64_t seed) { return ledgers(100, seed); },
                          +[](uint64_t seed) { return paired_ledgers(100, seed); },
                          +[](uint64_t seed) { return grounded_digits(100, seed); }}) {
    set_threads(1);
    const std::string one = make(7).sha256();
    set_threads(3);
    CHECK(one == make(7).sha256());
    CHECK(one != make(8).sha256());
  }
  set_threads(before);
}

TEST_CASE("ledgers: lengths that make no sense are refused") {
  CHECK_THROWS_WITH(ledgers(10, 1, {.shortest = 10}), containing("10 to 4000"));
  CHECK_THROWS_WITH(ledgers(10, 1, {.shortest = 900, .longest = 800}), containing("900 to 800"));
  CHECK_THROWS_WITH(ledgers(0, 1), containing("count of 0"));
}

TEST_CASE("ledgers: digits on a ground are not told by their greys, and have no pixel of 0") {
  const Sequences all = grounded_digits(3000, 1);
  CHECK(all.at(0).size() == 1024);
  CHECK(all.bytes.find('\0') == std::string::npos);
  CHECK(byte_runs(all.slice(0, 2000), all.slice(2000, 3000), 1, true) < 0.25);
}

TEST_CASE("ledgers: who listens hears how many there are, and what is made is the same") {
  int64_t heard = 0;
  const ProgressCallback told = [&](int64_t done) { heard = done; };
  CHECK(ledgers(1500, 5, {}, told).sha256() == ledgers(1500, 5).sha256());
  CHECK(heard == 1500);
  CHECK(paired_ledgers(1400, 5, {}, told).sha256() == paired_ledgers(1400, 5).sha256());
  CHECK(heard == 1400);
  CHECK(grounded_digits(1300, 5, told).sha256() == grounded_digits(1300, 5).sha256());
  CHECK(heard == 1300);
}
