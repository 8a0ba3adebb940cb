// chrF against sacreBLEU.
#include "heed/train/metrics/chrf.h"

#include "heed/core/version.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/score_goldens.h"

using namespace heed;

TEST_CASE("chrf: scores are those of sacreBLEU") {
  for (const goldens::Scores& golden : goldens::scores) {
    INFO(golden.name);
    CHECK(corpus_chrf(golden.outputs, golden.references) == Approx(golden.chrf).epsilon(1e-12).margin(1e-12));
  }
}

TEST_CASE("chrf: numbers of sentences must agree, and none is no crash") {
  const std::vector<std::string> one = {"a"};
  const std::vector<std::string> none;
  CHECK(fault_of([&] { corpus_chrf(one, none); }) == Fault::usage);
  CHECK(corpus_chrf(none, none) == 0);
  CHECK(chrf_signature() == "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:heed-" HEED_VERSION);
}
