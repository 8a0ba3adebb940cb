// BLEU and its tokens against sacreBLEU.
#include "heed/train/metrics/bleu.h"

#include "heed/core/version.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/score_goldens.h"

using namespace heed;

TEST_CASE("bleu: tokens are those of 13a") {
  for (const goldens::Tokens& golden : goldens::tokens) CHECK(tokenize_13a(golden.sentence) == golden.tokens);
}

TEST_CASE("bleu: scores are those of sacreBLEU") {
  REQUIRE(goldens::scores.size() > 10);
  for (const goldens::Scores& golden : goldens::scores) {
    INFO(golden.name);
    const Bleu bleu = corpus_bleu(golden.outputs, golden.references);
    CHECK(bleu.score == Approx(golden.bleu).epsilon(1e-12).margin(1e-12));
    for (size_t n = 0; n < 4; ++n) CHECK(bleu.precisions[n] == Approx(golden.precisions[n]).epsilon(1e-12));
    CHECK(bleu.brevity_penalty == Approx(golden.brevity_penalty).epsilon(1e-12));
    CHECK(bleu.length == golden.length);
    CHECK(bleu.reference_length == golden.reference_length);
  }
}

TEST_CASE("bleu: what is reported beside the score") {
  const std::vector<std::string> output = {"the old man smiled at me"};
  const std::vector<std::string> reference = {"the old man smiled at her and me"};
  const Bleu bleu = corpus_bleu(output, reference);
  CHECK(bleu.ratio() == 0.75);
  CHECK(bleu.correct == std::array<int64_t, 4>{6, 4, 3, 2});
  CHECK(bleu.total == std::array<int64_t, 4>{6, 5, 4, 3});
  CHECK(bleu.summary() ==
        "BLEU = 56.98 100.0/80.0/75.0/66.7 (BP = 0.717 ratio = 0.750 hyp_len = 6 ref_len = 8)");
  CHECK(bleu_signature() == "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed-" HEED_VERSION);
}

TEST_CASE("bleu: numbers of sentences must agree, and none is no crash") {
  const std::vector<std::string> one = {"a"};
  const std::vector<std::string> none;
  CHECK(fault_of([&] { corpus_bleu(one, none); }) == Fault::usage);
  CHECK_THROWS_WITH(corpus_bleu(one, none), containing("1 sentences against 0 references"));
  CHECK(corpus_bleu(none, none).score == 0);
  CHECK(corpus_bleu(none, none).ratio() == 0);
  const std::vector<std::string> broken = {"\xff\xfe a \xc3"};
  CHECK(corpus_bleu(broken, broken).length == 3);
}
