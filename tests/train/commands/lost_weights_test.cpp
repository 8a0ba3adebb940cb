// heed resume and heed import, where the weights to continue with are not there.
#include "heed/core/io/json.h"
#include "heed/tests/train/gpt2_folder.h"
#include "heed/tests/train/shell.h"
#include "heed/train/run/checkpoint_folder.h"

using namespace heed;

namespace {

const std::vector<std::string> small{"--d-model", "8", "--heads", "2", "--d-ff",       "16", "--layers", "1",
                                     "--threads", "1", "--steps", "4", "--max-length", "16"};

/// heed with a trained run, "base".
struct WithRun : Shell {
  WithRun() { REQUIRE(run(with({"train", "lm", "--name", "base", "--quiet"}, small)).code == 0); }
  Path folder(const std::string& name) const { return scratch / ("runs/" + name); }
};

}  // namespace

TEST_CASE("lost weights: a run without its checkpoints is refused and keeps its metrics") {
  const WithRun shell;
  const std::string metrics = io::read(shell.folder("base") / "metrics.jsonl");
  const Json manifest = parse_json(io::read(shell.folder("base") / "manifest.json"), "manifest");
  CHECK(manifest.at("first_checkpoint").integer() == 1);
  io::remove_all(shell.folder("base") / "ckpt");
  const auto refused = [&](const std::string& sign) {
    check_refused(shell, {"resume", "runs/base", "--steps", "9", "--quiet"}, 3,
                  {"runs/base has lost its checkpoints (" + sign, "Put runs/base/ckpt back", "--name"});
    CHECK(io::read(shell.folder("base") / "metrics.jsonl") == metrics);
    CHECK(!io::exists(shell.folder("base") / "ckpt"));
  };
  refused("its first was of step 1)");
  io::remove_all(shell.folder("base") / "manifest.json");
  refused("metrics.jsonl has its steps)");
}

TEST_CASE("lost weights: a run that began from others is refused without them") {
  const WithRun shell;
  REQUIRE(shell.run({"train", "--from", "runs/base", "--name", "tuned", "--quiet"}).code == 0);
  // The run looks like one that was stopped before its first step.
  const Path tuned = shell.folder("tuned");
  for (const char* file : {"ckpt", "metrics.jsonl", "scores.json"}) io::remove_all(tuned / file);
  const Json manifest = parse_json(io::read(tuned / "manifest.json"), "manifest");
  io::write(tuned / "manifest.json", Json(manifest).set("first_checkpoint", Json()).dump());
  const Result begun = shell.run({"resume", "runs/tuned"});
  CAPTURE(begun.err);
  CHECK(begun.code == 0);
  CHECK_THAT(begun.err, containing("weights") && containing("of runs/base, step 4"));

  io::remove_all(tuned / "ckpt");
  io::remove_all(tuned / "initial");
  io::write(tuned / "manifest.json", Json(manifest).set("first_checkpoint", Json()).dump());
  check_refused(shell, {"resume", "runs/tuned", "--quiet"}, 3,
                {"runs/tuned begins from the weights of another run", "Put them back"});
  CHECK(!io::exists(tuned / "ckpt"));
}

TEST_CASE(
    "lost weights: a damaged record of the best checkpoint is refused, and the last is not taken for it") {
  const WithRun shell;
  const Path record = shell.folder("base") / "ckpt/best.json";
  const std::string metrics = io::read(shell.folder("base") / "metrics.jsonl");
  io::write(record, "{\"st");
  const std::vector<std::string> why{
      "runs/base/ckpt/best.json, the record of the best checkpoint, is damaged", "Remove it", "--checkpoint"};
  check_refused(shell, {"evaluate", "runs/base"}, 3, why);
  check_refused(shell, {"resume", "runs/base", "--steps", "9", "--quiet"}, 3, why);
  check_refused(shell, {"train", "--from", "runs/base", "--quiet"}, 3, why);
  CHECK(io::read(shell.folder("base") / "metrics.jsonl") == metrics);
  CHECK(shell.run({"evaluate", "runs/base", "--checkpoint", "4"}).code == 0);
  CHECK(shell.run({"train", "--from", "runs/base", "--from-checkpoint", "4", "--quiet"}).code == 0);
  const Result list = shell.run({"list", "runs"});
  CHECK(list.code == 0);
  CHECK_THAT(list.out, containing("runs/base") && containing("is damaged"));
  io::remove_all(record);
  CHECK(shell.run({"resume", "runs/base", "--steps", "5", "--quiet"}).code == 0);
  CHECK(best_step(shell.folder("base")).value_or(0) >= 4);
}

TEST_CASE("lost weights: an import that fails leaves no run, and the next one is whole") {
  const Shell shell;
  write_gpt2_folder(shell.scratch / "gpt2");
  // The largest file that may be written is smaller than the weights.
  Shell limited;
  limited.before = {"sh", "-c", "ulimit -f 8; exec \"$0\" \"$@\""};
  write_gpt2_folder(limited.scratch / "gpt2");
  const Result full = limited.run({"import", "gpt2", "--name", "a"});
  CAPTURE(full.err);
  CHECK(full.code == 5);
  CHECK(io::list(limited.scratch / "runs").empty());
  limited.before = {};
  const Result whole = limited.run({"import", "gpt2", "--name", "a"});
  CAPTURE(whole.err);
  CHECK(whole.code == 0);
  REQUIRE(shell.run({"import", "gpt2", "--name", "a"}).code == 0);
  const auto weights = [](const Shell& of) {
    return open_checkpoint(of.scratch / "runs/a").file("model.safetensors");
  };
  CHECK((weights(limited) == weights(shell)));
  io::remove_all(shell.scratch / "runs/a/ckpt");
  check_refused(shell, {"resume", "runs/a"}, 3, {"runs/a has lost its checkpoints"});
}
