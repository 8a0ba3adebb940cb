// Work after training: it neither counts as training time nor undoes it.
#include <cmath>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

const std::vector<std::string> tiny{"--steps",      "1", "--batch-size", "1", "--num-examples", "6",
                                    "--validation", "2", "--test-size",  "2", "--d-model",      "16",
                                    "--heads",      "2", "--d-ff",       "16"};

Result train(const Shell& shell, std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.begin(), "train");
  words.insert(words.end(), more.begin(), more.end());
  return shell.run(words);
}

}  // namespace

TEST_CASE("afterwork: the maps of a long input are no part of what training took") {
  const Shell shell;
  const Result result = train(
      shell, {"lra-retrieval", "--recipe", "skyformer", "--max-length", "4000", "--name", "long"}, tiny);
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  const Json manifest = parse_json(io::read(shell.scratch / "runs/long/manifest.json"), "manifest");
  CHECK(std::abs(manifest.at("took").at("tensor_estimate_off").real()) < 0.1);
  CHECK_THAT(io::read(shell.scratch / "runs/long/report.html"),
             containing("the first 256 of 4000 tokens, cut to 1024 for this map"));
}

TEST_CASE("afterwork: an attention that learns but cannot go step by step keeps its scores and report") {
  const Shell shell;
  const Result result =
      train(shell, {"lm", "--attention", "fastmax:p=9", "--steps", "2", "--name", "nine"}, {});
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.err, containing("no sample of text: polynomial_sums: degree 9"));
  CHECK(io::exists(shell.scratch / "runs/nine/scores.json"));
  CHECK(io::exists(shell.scratch / "runs/nine/report.html"));
  CHECK(shell.run({"evaluate", "runs/nine"}).code == 0);
}

TEST_CASE("afterwork: a map that cannot be had is a line of the report") {
  const Shell shell;
  // 12 MB of tensors train this, and 34 more are asked for by the map of 1,024 tokens in 8 heads.
  const Result result = train(shell,
                              {"lra-text", "--recipe", "skyformer", "--name", "tight", "--attention",
                               "linear", "--heads", "8", "--memory", "24M"},
                              {tiny.begin(), tiny.begin() + 12});
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(result.err, containing("No maps: memory of the machine: "));
  CHECK_THAT(io::read(shell.scratch / "runs/tight/report.html"),
             containing("No maps: memory of the machine: "));
}
