// heed import: a GPT-2 of another program becomes a run that can be scored, sampled and trained.
#include <sys/stat.h>
#include <cmath>
#include <cstring>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/safetensors.h"
#include "heed/tests/train/gpt2_folder.h"
#include "heed/tests/train/llama_file.h"
#include "heed/tests/train/shell.h"
#include "heed/train/run/checkpoint_folder.h"

using namespace heed;

namespace {

/// Imports by these words, and does with the run all that runs can do. Import says `said`.
void check_imported(const Shell& shell, const std::vector<std::string>& words, const std::string& run,
                    const std::string& said) {
  const Result made = shell.run(words);
  CAPTURE(made.err);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.out, containing(said) && containing("inspect " + run));
  const Result scored = shell.run({"evaluate", run});
  CAPTURE(scored.err);
  CHECK(scored.code == 0);
  CHECK_THAT(scored.out, containing("perplexity"));
  CHECK(shell.run({"generate", run, "--prompt", "the moon", "--max-new-tokens", "5"}).code == 0);
  CHECK_THAT(shell.run({"inspect", run, "the moon", "--terminal"}).out, containing("head"));
  const Result tuned = shell.run({"train", "--from", run, "--steps", "2", "--name", "tuned", "--quiet"});
  CAPTURE(tuned.err);
  CHECK(tuned.code == 0);
  CHECK(list_checkpoints(shell.scratch / "runs/tuned").back() == 2);
  const Result resumed = shell.run({"resume", run});
  CHECK(resumed.code != 0);
  CHECK_THAT(resumed.err, containing("weights alone") && containing("train --from " + run));
}

/// Imports a small LLaMA as runs/llama-001.
void import_llama(const Shell& shell) {
  io::write(shell.scratch / "small.gguf", llama_file());
  io::write(shell.scratch / "verse.txt", std::string(4000, 'x') + "the moon and the sea\n");
  check_imported(shell, {"import", "small.gguf", "--data", "verse.txt", "--eval-batches", "1"},
                 "runs/llama-001", "runs/llama-001: a LLaMA of");
}

}  // namespace

TEST_CASE("import: a GPT-2 becomes a run with all that runs can do") {
  const Shell shell;
  write_gpt2_folder(shell.scratch / "gpt2");
  check_imported(shell, {"import", "gpt2", "--num-examples", "4000", "--eval-batches", "1"}, "runs/gpt2-001",
                 "runs/gpt2-001: a GPT-2 of");
}

TEST_CASE("import: a LLaMA in a GGUF file becomes such a run, and a damaged file none") {
  const Shell shell;
  import_llama(shell);
  io::write(shell.scratch / "cut.gguf", llama_file().substr(0, 3000));
  check_refused(shell, {"import", "cut.gguf", "--name", "cut"}, 3, {"cut.gguf is not a GGUF file"});
  io::write(shell.scratch / "words.txt", "the moon");
  check_refused(shell, {"import", "words.txt"}, 3,
                {"words.txt", "begins like no model file", "GGUF", "llm.c", "llama2.c"});
  CHECK_FALSE(io::exists(shell.scratch / "runs/cut"));
  check_refused(shell, {"import", "none.gguf"}, 5, {"there is no", "none.gguf", "Give a model file"});
}

TEST_CASE("export: a LLaMA is written as a GGUF file, from which the same weights are imported") {
  const Shell shell;
  import_llama(shell);
  const Result written = shell.run({"export", "runs/llama-001", "--as", "gguf", "--out", "again.gguf"});
  CAPTURE(written.err);
  REQUIRE(written.code == 0);
  CHECK(shell.run({"import", "again.gguf", "--name", "again"}).code == 0);
  const char* weights = "ckpt/step_000000/model.safetensors";
  CHECK(io::read(shell.scratch / "runs/again" / weights) ==
        io::read(shell.scratch / "runs/llama-001" / weights));
  CHECK(shell.run({"export", "runs/llama-001", "--out", "plain"}).code == 0);  // its words fit no merges.txt
  check_refused(shell, {"export", "runs/llama-001", "--as", "gguf", "--out", "again.gguf"}, 2,
                {"again.gguf", "is there already"});
  check_refused(shell, {"export", "runs/llama-001", "--as", "onnx", "--out", "x"}, 2,
                {"--as onnx", "must be gguf, huggingface, llm.c or nanogpt"});
  check_refused(shell, {"export", "lm", "--as", "gguf", "--out", "x"}, 2, {"--as is for runs"});
}

TEST_CASE("import: a file given to evaluate is its test as a whole, with --data or --test-path") {
  const Shell shell;
  write_gpt2_folder(shell.scratch / "gpt2");
  REQUIRE(shell.run({"import", "gpt2", "--num-examples", "4000", "--eval-batches", "1"}).code == 0);
  std::string words;
  for (int i = 0; i < 200; ++i) words += text("the moon ", i, " and the sea\n");
  io::write(shell.scratch / "words.txt", words);
  const Result scored = shell.run({"evaluate", "runs/gpt2-001", "--data", "words.txt"});
  CAPTURE(scored.out, scored.err);
  REQUIRE(scored.code == 0);
  // Its tokens by another way: those that heed train counts of a validation text.
  const Result counted = shell.run({"train", "--from", "runs/gpt2-001", "--data", "words.txt", "--set",
                                    "data.validation_path=words.txt", "--steps", "1", "--name", "counted"});
  const size_t at = counted.err.find(" validation;");
  REQUIRE(at != std::string::npos);
  const size_t begin = counted.err.rfind(' ', at - 1) + 1;
  const int64_t tokens = std::stoll(counted.err.substr(begin, at - begin));
  CHECK(tokens > 1000);
  CHECK_THAT(scored.out, containing(text(tokens - 1, " tokens of words.txt in windows")));
  CHECK(shell.run({"evaluate", "runs/gpt2-001", "--test-path", "words.txt"}).out == scored.out);
  check_refused(shell, {"evaluate", "runs/gpt2-001", "--data", "words.txt", "--test-path", "words.txt"}, 2,
                {"--data and --test-path", "Give one of them"});
  io::write(shell.scratch / "brief.txt", "the moon\n");
  CHECK_THAT(shell.run({"evaluate", "runs/gpt2-001", "--data", "brief.txt"}).out,
             containing("tokens of brief.txt in one window"));
  io::write(shell.scratch / "empty.txt", "");
  check_refused(shell, {"evaluate", "runs/gpt2-001", "--data", "empty.txt"}, 3,
                {"the test text is too short"});
}

TEST_CASE("import: weights that are not finite are refused, by import and by all that opens a run") {
  const Shell shell;
  write_gpt2_folder(shell.scratch / "gpt2");
  REQUIRE(shell.run({"import", "gpt2", "--num-examples", "4000", "--eval-batches", "1"}).code == 0);
  const auto with_nan = [](std::string bytes, const char* name) {
    const TensorEntry entry = SafeTensors::parse(bytes, "m").at(name);
    const float bad = std::nanf("");
    std::memcpy(bytes.data() + entry.offset + 4, &bad, sizeof bad);
    return bytes;
  };
  const Path file = shell.scratch / "gpt2/model.safetensors", run = shell.scratch / "runs/gpt2-001";
  std::string name;
  const SafeTensors there = SafeTensors::read(file);
  for (const TensorEntry& entry : there.entries()) {
    if (entry.name.ends_with("wpe.weight")) name = entry.name;
  }
  io::write(file, with_nan(io::read(file), name.c_str()));
  check_refused(shell, {"import", "gpt2", "--name", "bad"}, 4, {"wpe.weight is not finite", "[0, 1]"});
  CHECK_FALSE(io::exists(shell.scratch / "runs/bad"));

  const Checkpoint kept = open_checkpoint(run, "0");
  std::vector<NamedBytes> files;
  for (const auto& [file_name, bytes] : kept.files) files.push_back({file_name, bytes});
  for (NamedBytes& one : files) {
    if (one.name == "model.safetensors") one.bytes = with_nan(one.bytes, "embedder.position.table");
  }
  write_checkpoint(run, 0, files);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"evaluate", "runs/gpt2-001"},
                                             {"heads", "runs/gpt2-001"},
                                             {"ablate", "runs/gpt2-001"},
                                             {"maps", "runs/gpt2-001", "--out", "maps"},
                                             {"generate", "runs/gpt2-001", "--prompt", "the"},
                                             {"inspect", "runs/gpt2-001", "the"},
                                             {"evaluate", "runs/gpt2-001", "--attention", "linear"}}) {
    CAPTURE(words[0]);
    check_refused(shell, words, 4,
                  {"step_000000/model.safetensors: tensor embedder.position.table is not finite", "[0, 1]"});
  }
  const Result begun = shell.run({"train", "--from", "runs/gpt2-001", "--steps", "1"});
  CHECK(begun.code == 4);
  CHECK_THAT(begun.err, containing("tensor embedder.position.table is not finite"));
}

TEST_CASE("import: what is no GPT-2 is refused before there is a run") {
  const Shell shell;
  const auto refusal = [&](const std::string& folder) {
    const Result result = shell.run({"import", folder});
    CHECK(result.code != 0);
    return result.err;
  };
  io::make_directories(shell.scratch / "empty");
  CHECK_THAT(refusal("empty"), containing("lacks config.json, model.safetensors, tokenizer.json"));
  for (const char* name : {"config.json", "model.safetensors", "vocab.json", "merges.txt"}) {
    const std::string folder = text("pipe-", name);
    io::make_directories(shell.scratch / folder);
    REQUIRE(::mkfifo((shell.scratch / folder / name).c_str(), 0600) == 0);
    CHECK_THAT(refusal(folder), containing(text(folder, "/", name, ": it is a pipe")));
  }
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
