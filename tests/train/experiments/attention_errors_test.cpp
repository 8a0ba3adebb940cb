// heed reproduce casinoformer-figure2 in short: statistics of a tiny model whose answers are known, and the
// paper's equations.
#include "heed/train/experiments/attention_errors.h"

#include <algorithm>
#include <cmath>

#include "heed/core/io/files.h"
#include "heed/tests/train/shell.h"
#include "heed/train/experiments/tree_claims.h"

using namespace heed;

namespace {

/// A language model on generated verse.
struct Trained : Shell {
  explicit Trained(const std::vector<std::string>& more) {
    const Result result = run(with({"train",
                                    "lm",
                                    "--name",
                                    "run",
                                    "--d-model",
                                    "16",
                                    "--heads",
                                    "2",
                                    "--d-ff",
                                    "16",
                                    "--max-length",
                                    "24",
                                    "--data.num_examples",
                                    "3000",
                                    "--batch-size",
                                    "4",
                                    "--threads",
                                    "1",
                                    "--out",
                                    ".",
                                    "--quiet"},
                                   more));
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
  }
  AttentionErrors errors(int64_t windows) const { return AttentionErrors(scratch / "run", windows); }
};

}  // namespace

TEST_CASE("attention errors: E = 1 is exact, and coarser trees are not") {
  const Trained shell({"--steps", "20", "--lr", "1e-2"});
  const AttentionErrors errors = shell.errors(0);
  const double exact = errors.perplexity("softmax", 0);
  CHECK(errors.perplexity("casinoformer:exponent=1", 0) == Approx(exact).epsilon(1e-5));
  const AttentionErrors::Distance none = errors.distance("casinoformer:exponent=1", 0);
  CHECK(none.divergence < 1e-5);
  CHECK(none.outputs < 1e-5);
  const AttentionErrors::Distance coarse = errors.distance("casinoformer:exponent=0", 0);
  CHECK(coarse.divergence > 100 * none.divergence + 1e-6);
  CHECK(coarse.outputs > 1e-4);
  CHECK(errors.distance("casinoformer:exponent=0.6", 0).outputs < coarse.outputs);
  CHECK(errors.perplexity("softmax", 1) != exact);  // another portion
  // The published statistic repeats by its seed.
  const std::string spec = "casinoformer:exponent=0.5,denominator=paper,include_self=false";
  CHECK(errors.own_perplexity(spec, 0, 1) == errors.own_perplexity(spec, 0, 1));
  CHECK(errors.own_perplexity(spec, 0, 1) != errors.own_perplexity(spec, 0, 2));
}

TEST_CASE("attention errors: a model that knows nothing has known statistics") {
  // Embeddings next to zero are logits next to zero: every token is as probable.
  const Trained shell({"--embedding-std", "1e-20", "--steps", "1", "--lr", "0", "--weight-decay", "0"});
  const AttentionErrors errors = shell.errors(2);
  const double vocabulary = errors.perplexity("softmax", 0);
  CHECK(vocabulary == Approx(std::round(vocabulary)).epsilon(1e-5));
  // 23 draws of 24 positions.
  CHECK(errors.own_perplexity("softmax", 0, 1) == Approx(std::pow(vocabulary, 23.0 / 24)).epsilon(1e-4));
}

TEST_CASE("attention errors: products of queries and keys are those of the scores, rotated by rope") {
  const Trained shell({"--steps", "1", "--position", "rope", "--layers", "1"});
  const AttentionErrors::Distance rotated = shell.errors(0).distance("softmax", 0);
  // Without positions the inputs of the first layer are the same, and its products are not.
  const Path settings = shell.scratch / "run" / "config.toml";
  std::string words = io::read(settings);
  const size_t at = words.find("position = \"rope\"");
  REQUIRE(at != std::string::npos);
  words.replace(at, std::string("position = \"rope\"").size(), "position = \"none\"");
  io::write(settings, words);
  const AttentionErrors::Distance plain = shell.errors(0).distance("softmax", 0);
  CHECK(rotated.min_negative != plain.min_negative);
  CHECK(rotated.max_negative != plain.max_negative);
}

TEST_CASE("attention errors: a text that is too short for two portions is refused, with what to do") {
  const Trained shell({"--steps", "1", "--train-fraction", "0.98"});
  CHECK_THROWS_WITH(shell.errors(0),
                    containing(" windows of 24 tokens. Two portions of 20 % need at least 5") &&
                        containing("smaller data.train_fraction"));
}

TEST_CASE("reproduce: a trained model with a weight that is not finite is refused once, before any cell") {
  const Trained shell({"--steps", "1"});
  const Checkpoint whole = open_checkpoint(shell.scratch / "run");
  std::vector<NamedBytes> files;
  for (const auto& [name, bytes] : whole.files) files.push_back({name, bytes});
  for (NamedBytes& file : files) {
    if (file.name == "model.safetensors") file.bytes.replace(file.bytes.size() - 4, 4, "\xff\xff\xff\xff");
  }
  write_checkpoint(shell.scratch / "run", whole.step, files);
  const Result result =
      shell.run({"reproduce", "casinoformer-figure2", "--run", "run", "--windows", "1", "--out", "."});
  CAPTURE(result.err);
  CHECK(result.code == 4);
  CHECK_THAT(result.err, containing("model.safetensors") && containing("is not finite"));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') < 6);
}

TEST_CASE("reproduce: a trained model under other attentions, measured once") {
  const Trained shell({"--steps", "4"});
  const std::vector<std::string> words{"reproduce", "casinoformer-figure2",
                                       "--run",     "run",
                                       "--windows", "1",
                                       "--rows",    "exact,Gap-argmax/E=0.5,EDH/E=0.2",
                                       "--out",     "."};
  const Result first = shell.run(words);
  CAPTURE(first.err);
  REQUIRE(first.code == 0);
  for (const char* part : {"exact/E=0.9", "Gap-argmax/E=0.5", "perplexity ", "28.2", "11.2", " nats"})
    CHECK_THAT(first.out, containing(part));
  const Path folder = shell.scratch / "reproduce-casinoformer-figure2";
  CHECK(io::list(folder / "cells").size() == 3);  // exact attention does not depend on E
  const std::string page = io::read(folder / "results/casinoformer-figure2.md");
  for (const char* part :
       {"teacher forced", "own samples", "Kullback-Leibler", "equation 11", "| Gap-argmax |"})
    CHECK_THAT(page, containing(part));
  CHECK(io::exists(folder / "results/casinoformer-figure2-perplexity.svg"));
  const Result again = shell.run(words);
  CHECK(again.out == first.out);
  CHECK(again.err.find("measure") == std::string::npos);

  check_refused(shell, {"reproduce", "casinoformer-figure2"}, 2, {"--run RUN"});
  check_refused(shell, {"reproduce", "casinoformer-figure2", "--run", "nowhere"}, 5, {"nowhere"});
  check_refused(shell, {"reproduce", "fast-table1", "--run", "run"}, 2, {"--run is for tables of a trained"});
  check_refused(shell, {"reproduce", "casinoformer-figure2", "--run", "run", "--steps", "3"}, 2,
                {"trains nothing"});
}

TEST_CASE("tree claims: the paper's closed formulas") {
  CHECK(relu_kernel(1) == Approx(0.5));
  CHECK(relu_kernel(0) == Approx(1 / (2 * std::acos(-1))));
  CHECK(relu_kernel(-1) == Approx(0).margin(1e-15));
  for (const double rho : {-1.0, 0.0, 1.0})
    CHECK(relu_kernel_approximation(rho) == Approx(relu_kernel(rho)).margin(1e-15));
  const double rho = std::sin(1.0 / 9);
  CHECK(relu_kernel_approximation(rho) / relu_kernel_approximation(-rho) == Approx(1.4445).epsilon(1e-4));
  CHECK(relu_kernel(rho) / relu_kernel(-rho) == Approx(1.4187).epsilon(1e-4));
  const ClampedFourier equal = clamped_fourier(1, 20, 1);
  CHECK(equal.mean == Approx(std::exp(8)));
  CHECK(equal.deviation == Approx(0).margin(1e-6));
  CHECK(clamped_fourier(0, 300, 1).mean > 50);  // exact: 1
  for (const Claim& one : tree_claims()) {
    CAPTURE(one.what);
    CHECK_FALSE(one.ours.empty());
    if (one.what.starts_with("equation 1")) CHECK(one.ours == one.published);
  }
}

TEST_CASE("attention errors: the heads of each block are shown as its scores have them") {
  const Trained shell({"--steps", "5", "--set", "model.layers=2"});
  const AttentionErrors errors = shell.errors(2);
  CHECK(errors.own_attention() == "softmax");
  int64_t num_calls = 0;
  std::vector<double> shares;  // the share of causal pairs with q . k < 0, for each head
  errors.visit_heads(0, [&](const Heads& heads) {
    ++num_calls;
    REQUIRE(heads.q.shape() == Shape{2, 2, 24, 8});
    REQUIRE(heads.v.shape() == heads.q.shape());
    const std::vector<float> scores = matmul(heads.q, transpose(heads.k, 2, 3)).to_host();
    for (size_t head = 0; head < 2; ++head) {
      double negative = 0, pairs = 0;
      for (size_t row = 0; row < 2; ++row) {
        for (size_t i = 0; i < 24; ++i) {
          for (size_t j = 0; j <= i; ++j, ++pairs)
            negative += scores[((row * 2 + head) * 24 + i) * 24 + j] < 0 ? 1 : 0;
        }
      }
      shares.push_back(negative / pairs);
    }
  });
  CHECK(num_calls == 2);
  const AttentionErrors::Distance exact = errors.distance("softmax", 0);
  CHECK(exact.min_negative == Approx(*std::ranges::min_element(shares)));
  CHECK(exact.max_negative == Approx(*std::ranges::max_element(shares)));
}

TEST_CASE("attention errors: heads whose scores are not q . k of their own are refused by name") {
  const auto refusal = [](const std::vector<std::string>& settings) {
    const Trained shell(with({"--steps", "1"}, settings));
    try {
      shell.errors(1).visit_heads(0, [](const Heads&) {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refusal({"--set", "model.kv_heads=1"}), containing("model.kv_heads is 1 and model.heads 2"));
  CHECK_THAT(refusal({"--position", "alibi"}),
             containing("a bias by position") && containing("model.softcap = 0"));
}

TEST_CASE("reproduce fast-gradients: a folder of runs has a value for each attention that it has") {
  const Trained shell({"--steps", "5"});
  REQUIRE(shell
              .run({"train", "recall", "--steps", "1", "--set", "data.causal=true", "--name", "classifier",
                    "--out", ".", "--quiet", "--threads", "1", "--batch-size", "4"})
              .code == 0);  // not taken, though it is the first with softmax
  const Result result =
      shell.run({"reproduce", "fast-gradients", "--rows", "softmax,Fastmax2/T64,Fastmax2/Trained", "--seeds",
                 "2", "--data", "Trained=.", "--threads", "1", "--quiet"});
  CAPTURE(result.err);
  const std::string csv = io::read(shell.scratch / "runs" / "reproduce-fast-gradients" / "reproduce.csv");
  CAPTURE(csv);
  CHECK_THAT(csv, containing("\nsoftmax/T64,,2.") && containing("\nFastmax2/T64,1,0.1") &&
                      containing("softmax/Trained,,0.") && containing("run, step 5, "));
  CHECK_THAT(unwrapped(result.out), containing("no run of a language model with fastmax:p=2 lies in .") &&
                                        containing("train PRESET --attention fastmax:p=2"));
  CHECK(result.code == static_cast<int>(Fault::data));
}
