// Synthetic documents and images: labels that only distant words reveal.
#include "heed/data/synthetic/long_documents.h"

#include <algorithm>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/baselines.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("documents: the label is what the named person says") {
  const Sequences all = verdict_documents(300, 5, {.min_bytes = 600, .max_bytes = 1500});
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

TEST_CASE("documents: counting bytes, or runs of them, tells nothing of the label") {
  const Sequences all = verdict_documents(4000, 5, {.min_bytes = 600, .max_bytes = 1000});
  const Sequences known = all.slice(0, 2000), asked = all.slice(2000, 4000);
  // Three deviations of a coin thrown 2,000 times: 0.034.
  CHECK(byte_ngrams(known, asked, 1, NgramFeature::frequency) == Approx(0.5).margin(0.034));
  CHECK(byte_ngrams(known, asked, 4, NgramFeature::presence) == Approx(0.5).margin(0.034));
  const Sequences pairs = document_pairs(4000, 5, {.min_bytes = 600, .max_bytes = 1000});
  CHECK(std::count(pairs.labels.begin(), pairs.labels.end(), uint8_t{1}) == 2000);
  CHECK(histogram_cosine(pairs.slice(0, 2000), pairs.slice(2000, 4000)) == Approx(0.5).margin(0.045));
}

TEST_CASE("documents: pairs are together when they name the same house") {
  const Sequences pairs = document_pairs(200, 9, {.min_bytes = 600, .max_bytes = 900});
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

TEST_CASE("documents: the same for any number of threads, others for another seed") {
  const int before = threads();
  for (const auto make : {+[](uint64_t seed) { return verdict_documents(100, seed); },
                          +[](uint64_t seed) { return document_pairs(100, seed); }}) {
    set_threads(1);
    const std::string one = make(7).sha256();
    set_threads(3);
    CHECK(one == make(7).sha256());
    CHECK(one != make(8).sha256());
  }
  set_threads(before);
}

TEST_CASE("documents: those of a seed never change") {
  CHECK(verdict_documents(500, 1).sha256() ==
        "34c15a176416b4dc25f3293d83957f441fd7d29dcbcb0d2697a76e696d1b2874");
  CHECK(document_pairs(300, 1).sha256() ==
        "0cdd3d78f074e1775176d231de82038dad255993047754dad3a306b256a8f9b9");
}

TEST_CASE("documents: lengths that make no sense are refused") {
  CHECK_THROWS_WITH(verdict_documents(10, 1, {.min_bytes = 10}), containing("10 to 4000"));
  CHECK_THROWS_WITH(verdict_documents(10, 1, {.min_bytes = 900, .max_bytes = 800}), containing("900 to 800"));
  CHECK_THROWS_WITH(verdict_documents(0, 1), containing("count of 0"));
}

TEST_CASE("documents: who listens hears how many there are, and what is made is the same") {
  int64_t heard = 0;
  const ProgressCallback told = [&](int64_t done) { heard = done; };
  CHECK(verdict_documents(1500, 5, {}, told).sha256() == verdict_documents(1500, 5).sha256());
  CHECK(heard == 1500);
  CHECK(document_pairs(1400, 5, {}, told).sha256() == document_pairs(1400, 5).sha256());
  CHECK(heard == 1400);
}
