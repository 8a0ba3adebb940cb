// heed import and heed export: checkpoints of llm.c, llama2.c and nanoGPT.
#include "heed/core/io/files.h"
#include "heed/tests/data/llama2_c_tokenizer.h"
#include "heed/tests/train/llama2_c_bytes.h"
#include "heed/tests/train/llm_c_bytes.h"
#include "heed/tests/train/nanogpt_bytes.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

/// Runs a command that must succeed, and returns its output.
std::string said_by(const Shell& shell, const std::string& line) {
  const Result result = shell.run(command_words(line));
  CAPTURE(line, result.err);
  REQUIRE(result.code == 0);
  return result.out;
}

/// Writes text of ids below `count`.
void write_ids(const Shell& shell, int64_t count) {
  std::string ids;
  for (int64_t i = 0; i < 400; ++i) ids += text(i * i % count, i % 20 == 19 ? "\n" : " ");
  io::write(shell.scratch / "ids.txt", ids);
}

}  // namespace

TEST_CASE("import: a checkpoint without a tokenizer becomes a run of ids, whatever its name") {
  const Shell shell;
  write_ids(shell, llm_c_tokens);
  DecoderOnly gpt2 = random_model(small_llm_c(), llm_c_tokens, 1);
  DecoderOnly llama = random_model(small_llama2_c(), llama2_c_tokens, 2);
  io::write(shell.scratch / "gpt2.weights", llm_c_bytes(gpt2).bytes);
  io::write(shell.scratch / "old.gguf", llama2_c_bytes(llama, 0).bytes);
  io::write(shell.scratch / "new", llama2_c_bytes(llama, 1).bytes);
  for (const auto& [file, architecture] :
       {std::pair{"gpt2.weights", "GPT-2"}, {"old.gguf", "LLaMA"}, {"new", "LLaMA"}}) {
    CAPTURE(file);
    const std::string said =
        said_by(shell, text("import ", file, " --name ", file, " --data ids.txt --eval-batches 1"));
    CHECK_THAT(said, containing(text("runs/", file, ": a ", architecture)) &&
                         containing("the run has ids only: a TEXT is numbers from 0 to"));
    const std::string run = text("runs/", file);
    CHECK_THAT(io::read(shell.scratch / run / "config.toml"), containing("tokenizer = \"ids\""));
    CHECK_THAT(said_by(shell, text("evaluate ", run)), containing("perplexity"));
    const std::string made =
        said_by(shell, text("generate ", run, " --prompt 7 --max-new-tokens 5 --temperature 0"));
    CHECK(command_words(made).size() >= 5);
    check_refused(shell, {"generate", run, "--prompt", "the moon"}, 2,
                  {"ids: 'the' (byte 1 of the text) is no id from 0 to", "without a tokenizer"});
    CHECK(
        shell.run({"train", "--from", run, "--steps", "2", "--name", text("tuned-", file), "--quiet"}).code ==
        0);
  }
}

TEST_CASE("import: a checkpoint gets its tokenizer by --merges, with unused tokens up to its embeddings") {
  const Shell shell;
  write_gpt2_folder(shell.scratch / "gpt2");  // has a tokenizer of 300 tokens
  DecoderOnly model = random_model(small_llm_c(), 303, 1),
              small = random_model(small_llm_c(), llm_c_tokens, 1);
  io::write(shell.scratch / "m.bin", llm_c_bytes(model).bytes);
  io::write(shell.scratch / "small.bin", llm_c_bytes(small).bytes);
  const std::string said = said_by(shell, "import m.bin --merges gpt2 --name m --num-examples 4000");
  CHECK(said.find("ids only") == std::string::npos);
  CHECK_THAT(said_by(shell, "generate runs/m --prompt moon --max-new-tokens 3"), containing("moon"));
  CHECK_THAT(io::read(shell.scratch / "runs/m/ckpt/step_000000/tokenizer.text.byte_pair"),
             containing("<|unused_302|>"));
  check_refused(shell, {"import", "small.bin", "--merges", "gpt2", "--name", "x"}, 3,
                {"the tokenizer has 300 tokens, and the model 21"});
  CHECK_FALSE(io::exists(shell.scratch / "runs/x"));
}

TEST_CASE("import and export: a checkpoint of nanoGPT goes in, out and in again as the same model") {
  const Shell shell;
  write_ids(shell, nanogpt_tokens);
  DecoderOnly model = random_model(small_nanogpt(), nanogpt_tokens, 1);
  NanogptBytes file(model);
  file.prefix = "_orig_mod.";
  io::write(shell.scratch / "theirs.pt", file.bytes());
  CHECK_THAT(said_by(shell, "import theirs.pt --name first --data ids.txt --eval-batches 1"),
             containing("runs/first: a GPT-2 of") && containing("the run has ids only"));
  CHECK_THAT(said_by(shell, "export runs/first --as nanogpt --out ckpt.pt"),
             containing("ckpt.pt: the model of step 0"));
  said_by(shell, "import ckpt.pt --name second --data ids.txt --eval-batches 1");
  for (const char* name :
       {"ckpt/step_000000/model.safetensors", "ckpt/step_000000/tokenizer.text.ids", "config.toml"})
    CHECK(io::read(shell.scratch / "runs/first" / name) == io::read(shell.scratch / "runs/second" / name));
  check_refused(shell, {"export", "runs/first", "--as", "nanogpt", "--out", "ckpt.pt"}, 2,
                {"ckpt.pt", "is there already"});
  check_refused(shell, {"export", "runs/first", "--as", "nanogpt"}, 2, {"--as nanogpt needs --out ckpt.pt"});
  check_refused(shell, {"export", "runs/first", "--as", "llm.c", "--out", "x"}, 2,
                {"an llm.c checkpoint needs model.activation = gelu_tanh"});
  check_refused(shell, {"export", "runs/first", "--as", "huggingface", "--out", "x"}, 2,
                {"a GPT-2 needs data.tokenizer = byte_pair"});
  CHECK_FALSE(io::exists(shell.scratch / "x"));
  // The activation of older versions is not in the file.
  said_by(shell, "import theirs.pt --name older --activation gelu_tanh --data ids.txt --eval-batches 1");
  said_by(shell, "export runs/older --as llm.c --out older.bin");
  CHECK_THAT(said_by(shell, "import older.bin --name again"), containing("runs/again: a GPT-2 of"));
  CHECK(io::read(shell.scratch / "runs/again/ckpt/step_000000/model.safetensors") ==
        io::read(shell.scratch / "runs/first/ckpt/step_000000/model.safetensors"));
}

TEST_CASE("import: a checkpoint of nanoGPT with code in it runs nothing and makes no run") {
  const Shell shell;
  DecoderOnly model = random_model(small_nanogpt(), nanogpt_tokens, 1);
  const NanogptBytes file(model);
  io::write(shell.scratch / "bad.pt", file.bytes(file.pickle([](PickleWriter& out) {
    out.text("x").global("os", "system").begin_tuple().text("touch canary").end_tuple().call().set();
  })));
  check_refused(shell, {"import", "bad.pt", "--name", "bad"}, 3,
                {"bad.pt/data.pkl: byte ", "it names os.system", "Nothing of it was run"});
  CHECK_FALSE(io::exists(shell.scratch / "canary"));
  CHECK_FALSE(io::exists(shell.scratch / "runs/bad"));
}

TEST_CASE(
    "import: a checkpoint of llama2.c takes the tokenizer.bin beside it, and inputs begin with its start") {
  const Shell shell;
  const std::vector<ScoredText> pieces = llama2_c_pieces();
  const auto tokens = static_cast<int64_t>(pieces.size());
  DecoderOnly model = random_model(small_llama2_c(), tokens, 1);
  io::make_directories(shell.scratch / "theirs");
  io::write(shell.scratch / "theirs/m.bin",
            llama2_c_bytes(model, 0).set(20, static_cast<int32_t>(tokens)).bytes);
  io::write(shell.scratch / "theirs/tokenizer.bin", llama2_c_tokenizer(pieces));
  io::write(shell.scratch / "words.txt", [] {
    std::string words;
    for (int i = 0; i < 300; ++i) words += text("abc d ", i, " dd ab\n");
    return words;
  }());
  const std::string said = said_by(shell, "import theirs/m.bin --name m --data words.txt --eval-batches 1");
  CHECK(said.find("ids only") == std::string::npos);
  CHECK_THAT(said_by(shell, "evaluate runs/m"), containing("perplexity"));
  CHECK(said_by(shell, "generate runs/m --prompt abc --max-new-tokens 3").starts_with("abc"));
  CHECK(shell.run({"generate", "runs/m", "--max-new-tokens", "3"}).code == 0);
  CHECK_THAT(shell.run({"inspect", "runs/m", "abc d", "--terminal"}).out, containing("<s>"));
  const std::string pair =
      "circuit runs/m --clean ad --corrupted da --wrong d";  // an answer has no start token
  CHECK_THAT(said_by(shell, pair + " --answer a --json"), containing("edges"));
  check_refused(shell, {"circuit", "runs/m", "--clean", "a", "--corrupted", "d", "--answer", ""}, 2,
                {"--answer is empty"});
  CHECK(shell.run({"train", "--from", "runs/m", "--steps", "2", "--name", "tuned", "--quiet"}).code == 0);
  io::write(shell.scratch / "theirs/tokenizer.bin", llama2_c_tokenizer({pieces.begin(), pieces.end() - 1}));
  check_refused(shell, {"import", "theirs/m.bin", "--name", "x"}, 3,
                {"theirs/tokenizer.bin has ", " pieces, and theirs/m.bin ", "Take the file away"});
}

TEST_CASE("import: a model with a tokenizer of its own takes no other") {
  const Shell shell;
  write_gpt2_folder(shell.scratch / "gpt2");
  check_refused(shell, {"import", "gpt2", "--merges", "gpt2", "--name", "x"}, 2,
                {"data.merges = gpt2 is for a model without a tokenizer", "Leave it out"});
}
