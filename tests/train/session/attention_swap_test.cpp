// heed evaluate, generate and train --from with another attention than the run was trained with.
#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/weights_from_run.h"

using namespace heed;

namespace {

const std::vector<std::string> small{
    "--data.num_examples", "3000", "--d-model", "16", "--heads",   "2", "--d-ff", "16",
    "--max-length",        "32",   "--dropout", "0",  "--threads", "1", "--out",  "."};

/// A language model of two layers, trained for four steps.
struct Trained : Shell {
  Trained() {
    const Result result =
        run(with({"train", "lm", "--name", "run", "--layers", "2", "--steps", "4", "--quiet"}, small));
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
  }
  Json scores(const std::vector<std::string>& more) const {
    const Result result = run(with({"evaluate", "run", "--json"}, more));
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    return parse_json(result.out, "scores");
  }
};

}  // namespace

TEST_CASE("attention swap: evaluation under another attention, in all layers or some") {
  const Trained shell;
  const double own = shell.scores({}).at("loss").real();
  CHECK(shell.scores({"--attention", "casinoformer:exponent=1"}).at("loss").real() ==
        Approx(own).epsilon(1e-5));
  const Json swapped = shell.scores({"--attention", "casinoformer:exponent=0.2"});
  const double everywhere = swapped.at("loss").real();
  CHECK(swapped.at("attention").text() == "casinoformer:exponent=0.2");
  const double first =
      shell.scores({"--attention", "casinoformer:exponent=0.2", "--layers", "0"}).at("loss").real();
  CHECK(everywhere != own);
  CHECK(first != own);
  CHECK(first != everywhere);

  const Result missing = shell.run({"evaluate", "run", "--attention", "casinoformer:mass=favor"});
  CHECK_THAT(missing.out, containing("initialised, since the run lacks them") && containing("attention."));
  CHECK(shell.run({"generate", "run", "--attention", "casinoformer", "--max-new-tokens", "3"}).code == 0);
  check_refused(shell, {"evaluate", "run", "--layers", "1"}, 2, {"Give one of them too"});
  check_refused(shell, {"evaluate", "run", "--attention", "casinoformer", "--layers", "1-2"}, 2,
                {"the model has 2: 0 to 1"});
  check_refused(shell, {"evaluate", "run", "--attention", "casinofromer"}, 2,
                {"--attention: ", "Did you mean 'casinoformer'?"});
}

TEST_CASE("attention swap: training goes on from the weights of another run") {
  const Trained shell;
  const auto tuned = [&](const std::string& name, const std::vector<std::string>& more) {
    return shell.run(with({"train", "--from", "run", "--out", ".", "--name", name, "--quiet"}, more));
  };
  REQUIRE(tuned("same", {"--steps", "1", "--lr", "0", "--weight-decay", "0"}).code == 0);
  const Path run = shell.scratch / "run", same = shell.scratch / "same";
  const Checkpoint from = open_checkpoint(run, best_step(run) ? "best" : "last");
  CHECK(open_checkpoint(same, "last").file("model.safetensors") == from.file("model.safetensors"));

  REQUIRE(tuned("tree", {"--steps", "2", "--attention", "softmax;1=casinoformer:mass=favor"}).code == 0);
  const Path tree = shell.scratch / "tree";
  const Json manifest = parse_json(io::read(tree / "manifest.json"), "manifest");
  const Json& origin = manifest.at("from");
  CHECK(origin.at("step").integer() == from.step);
  CHECK(Path(origin.at("run").text()).filename() == "run");
  REQUIRE(!origin.at("initialised").list().empty());
  CHECK_THAT(origin.at("initialised").list()[0].text(), containing("blocks.1.attention"));
  CHECK_THAT(io::read(tree / "config.toml"), containing("softmax;1=casinoformer:mass=favor"));
  // The weights lie in the run, which a session that was stopped before its first checkpoint begins with.
  REQUIRE(read_weights_from_run(tree));
  CHECK(read_weights_from_run(tree)->file("model.safetensors") == from.file("model.safetensors"));
  CHECK(!read_weights_from_run(run));
  CHECK(shell.run({"resume", "tree", "--steps", "3", "--quiet"}).code == 0);
  CHECK(parse_json(io::read(tree / "manifest.json"), "manifest").find("from") != nullptr);
  CHECK(shell.run({"evaluate", "tree"}).code == 0);

  const auto refused = [&](const std::vector<std::string>& more, const std::string& part) {
    check_refused(shell, with({"train", "--from", "run", "--out", ".", "--quiet"}, more), 2, {part});
  };
  refused({"--d-model", "32"}, "attention.query.weight is f32 [16, 16] there and f32 [32, 32] here");
  check_refused(shell, {"train", "--from", "nowhere"}, 5, {"is no run", "--data.from"});
  refused({"lm"}, "--from takes the settings of its run");
  check_refused(shell, {"train", "lm", "--from-checkpoint", "best"}, 2, {"is for --from"});
}
