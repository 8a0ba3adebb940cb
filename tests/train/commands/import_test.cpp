// heed import: a GPT-2 of another program becomes a run that can be scored, sampled and trained.
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/tests/train/gpt2_folder.h"
#include "heed/tests/train/shell.h"
#include "heed/train/run/checkpoint_folder.h"

using namespace heed;

TEST_CASE("import: a GPT-2 becomes a run with all that runs can do") {
  const Shell shell;
  write_gpt2_folder(shell.scratch / "gpt2");
  const Result made = shell.run({"import", "gpt2", "--num-examples", "4000", "--eval-batches", "1"});
  CAPTURE(made.err);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.out, containing("runs/gpt2-001: a GPT-2 of") && containing("inspect runs/gpt2-001"));
  const Result scored = shell.run({"evaluate", "runs/gpt2-001"});
  CAPTURE(scored.err);
  CHECK(scored.code == 0);
  CHECK_THAT(scored.out, containing("perplexity"));
  CHECK(shell.run({"generate", "runs/gpt2-001", "--prompt", "the moon", "--max-new-tokens", "5"}).code == 0);
  CHECK_THAT(shell.run({"inspect", "runs/gpt2-001", "the moon", "--terminal"}).out, containing("head"));
  const Result tuned =
      shell.run({"train", "--from", "runs/gpt2-001", "--steps", "2", "--name", "tuned", "--quiet"});
  CAPTURE(tuned.err);
  CHECK(tuned.code == 0);
  CHECK(list_checkpoints(shell.scratch / "runs/tuned").back() == 2);
  const Result resumed = shell.run({"resume", "runs/gpt2-001"});
  CHECK(resumed.code != 0);
  CHECK_THAT(resumed.err, containing("weights alone") && containing("train --from runs/gpt2-001"));
}

TEST_CASE("import: what is no GPT-2 is refused before there is a run") {
  const Shell shell;
  const auto refusal = [&](const std::string& folder) {
    const Result result = shell.run({"import", folder});
    CHECK(result.code != 0);
    return result.err;
  };
  io::make_directories(shell.scratch / "empty");
  CHECK_THAT(refusal("empty"), containing("lacks config.json, model.safetensors, vocab.json, merges.txt"));
  write_gpt2_folder(shell.scratch / "gpt2");
  const std::string config = io::read(shell.scratch / "gpt2/config.json");
  const Json json = parse_json(config, "config.json");
  io::write(shell.scratch / "gpt2/config.json", Json(json).set("vocab_size", 5).dump());
  CHECK_THAT(refusal("gpt2"), containing("has 300 tokens") && containing("vocab_size 5"));
  io::write(shell.scratch / "gpt2/config.json", Json(json).set("n_head", 3).dump());
  CHECK_THAT(refusal("gpt2"), containing("heads"));
  io::write(shell.scratch / "gpt2/config.json", config);
  std::string weights = io::read(shell.scratch / "gpt2/model.safetensors");
  io::write(shell.scratch / "gpt2/model.safetensors", weights.substr(0, weights.size() / 2));
  CHECK_THAT(refusal("gpt2"), containing("model.safetensors"));
  CHECK_FALSE(io::exists(shell.scratch / "runs"));
}
