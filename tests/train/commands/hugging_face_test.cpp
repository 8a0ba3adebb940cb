// heed import and heed export: folders of Hugging Face's Transformers, in and out.
#include <cmath>

#include "heed/core/io/json.h"
#include "heed/core/io/safetensors.h"
#include "heed/data/synthetic/language_model_text.h"
#include "heed/tests/train/gpt2_folder.h"
#include "heed/tests/train/llama_file.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

/// Runs a command that must succeed, and returns its output.
std::string output_of(const Shell& shell, const std::string& line) {
  const Result result = shell.run(command_words(line));
  CAPTURE(line, result.err);
  REQUIRE(result.code == 0);
  return result.out;
}

/// The loss of a run on the text words.txt.
double loss_on_words(const Shell& shell, const std::string& run) {
  const std::string scores = output_of(shell, "evaluate " + run + " --data words.txt --json");
  return parse_json(scores, run).at("loss").real();
}

/// A LLaMA from a GGUF file, and a GPT-2 from a folder with vocab.json and merges.txt: runs/llama, runs/gpt2.
void import_both(const Shell& shell) {
  io::write(shell.scratch / "small.gguf", llama_file());
  write_gpt2_folder(shell.scratch / "theirs");
  io::write(shell.scratch / "words.txt", verse(4000, 2));
  output_of(shell, "import small.gguf --name llama --data words.txt");
  output_of(shell, "import theirs --name gpt2 --data words.txt");
}

}  // namespace

TEST_CASE("hugging face: a LLaMA of a GGUF file goes out as a folder, and comes in as the same model") {
  const Shell shell;
  import_both(shell);
  CHECK_THAT(output_of(shell, "export runs/llama --as huggingface --out folder"),
             containing("folder: the model of step 0"));
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"})
    CHECK(io::exists(shell.scratch / "folder" / name));
  CHECK_FALSE(io::exists(shell.scratch / "folder/merges.txt"));  // its words are not those of GPT-2
  const Json named = parse_json(io::read(shell.scratch / "folder/tokenizer_config.json"), "named");
  CHECK(named.at("eos_token").text() == "<|endoftext|>");
  CHECK(named.at("model_max_length").integer() == 24);
  output_of(shell, "import folder --name again --data words.txt");
  CHECK_THAT(io::read(shell.scratch / "runs/again/config.toml"), containing("position = \"rope\""));
  CHECK(std::abs(loss_on_words(shell, "runs/again") - loss_on_words(shell, "runs/llama")) < 1e-5);
  output_of(shell, "export runs/again --as huggingface --out twice");
  CHECK(io::read(shell.scratch / "twice/model.safetensors") ==
        io::read(shell.scratch / "folder/model.safetensors"));
  const char* tokenizer = "ckpt/step_000000/tokenizer.text.byte_pair";
  CHECK(io::read(shell.scratch / "runs/again" / tokenizer) ==
        io::read(shell.scratch / "runs/llama" / tokenizer));
}

TEST_CASE("hugging face: a GPT-2 goes out as a folder, and comes in bit for bit, by either tokenizer") {
  const Shell shell;
  import_both(shell);
  output_of(shell, "export runs/gpt2 --as huggingface --out folder");
  output_of(shell, "import folder --name two-files");
  REQUIRE(std::filesystem::remove(shell.scratch / "folder/merges.txt"));
  output_of(shell, "import folder --name one-file");
  for (const char* file : {"model.safetensors", "tokenizer.text.byte_pair"}) {
    CAPTURE(file);
    const std::string wanted = io::read(shell.scratch / "runs/gpt2/ckpt/step_000000" / file);
    CHECK(io::read(shell.scratch / "runs/two-files/ckpt/step_000000" / file) == wanted);
    CHECK(io::read(shell.scratch / "runs/one-file/ckpt/step_000000" / file) == wanted);
  }
}

TEST_CASE("hugging face: a model in several files comes in as from one, and its index must agree with them") {
  const Shell shell;
  import_both(shell);
  for (const char* run : {"llama", "gpt2"}) {
    const Path folder = shell.scratch / text(run, "-folder"), whole = folder / "model.safetensors",
               index_file = folder / "model.safetensors.index.json";
    output_of(shell, text("export runs/", run, " --as huggingface --out ", run, "-folder"));
    output_of(shell, text("import ", run, "-folder --name one-", run));
    const SafeTensors file = SafeTensors::read(whole);
    const std::string names[] = {"a.safetensors", "b.safetensors"};
    std::vector<TensorBytes> parts[2];
    Json map = Json::object();
    for (size_t i = 0; i < file.entries().size(); ++i) {
      const TensorEntry& entry = file.entries()[i];
      parts[i % 2].push_back({entry.name, entry.dtype, entry.shape, file.bytes(entry)});
      map.set(entry.name, names[i % 2]);
    }
    const auto write = [&](const Json& weight_map) {
      io::write(index_file, Json::object({{"metadata", Json::object()}, {"weight_map", weight_map}}).dump());
    };
    for (size_t i = 0; i < 2; ++i) write_safetensors(folder / names[i], parts[i]);
    write(map);
    REQUIRE(std::filesystem::remove(whole));
    output_of(shell, text("import ", run, "-folder --name two-", run));
    const char* weights = "ckpt/step_000000/model.safetensors";
    CHECK(io::read(shell.scratch / "runs" / text("two-", run) / weights) ==
          io::read(shell.scratch / "runs" / text("one-", run) / weights));
    const auto refused = [&](int code, const std::vector<std::string>& words) {
      check_refused(shell, {"import", text(run, "-folder"), "--name", "x"}, code, words);
    };
    const std::string first = file.entries()[0].name;
    write(Json(map).set(first, names[1]));
    refused(3, {"weight_map says that ", first, " is in b.safetensors, which lacks it"});
    write(Json(map).set(first, "../a.safetensors"));
    refused(3, {"no name of a .safetensors file in this folder"});
    write(Json(map).set(first, "c.safetensors"));
    refused(5, {"lacks c.safetensors"});
    io::write(index_file, "{}");
    refused(3, {"there is no object weight_map"});
    parts[1].push_back(parts[0][0]);  // in both files, and the index names one
    write_safetensors(folder / names[1], parts[1]);
    write(map);
    refused(3, {"tensors of b.safetensors, which has"});
  }
}

TEST_CASE("hugging face: what cannot go out is refused before there is a folder") {
  const Shell shell;
  import_both(shell);
  check_refused(shell, {"export", "runs/llama", "--as", "onnx", "--out", "x"}, 2,
                {"--as onnx", "must be gguf, huggingface, llm.c or nanogpt"});
  check_refused(shell, {"export", "runs/llama", "--as", "huggingface"}, 2, {"needs --out DIR"});
  check_refused(shell, {"export", "runs/llama", "--as", "huggingface", "--out", "theirs"}, 2,
                {"theirs is not empty"});
  check_refused(shell, {"export", "runs/gpt2", "--as", "gguf", "--out", "x"}, 2,
                {"a LLaMA in a GGUF file needs model.activation = swiglu"});
  output_of(shell, "train lm --steps 1 --d-model 16 --heads 2 --layers 1 --num-examples 4000 --name own");
  check_refused(shell, {"export", "runs/own", "--as", "huggingface", "--out", "x"}, 2,
                {"a GPT-2 needs data.tokenizer = byte_pair"});
  CHECK_FALSE(io::exists(shell.scratch / "x"));
}

TEST_CASE("hugging face: a folder that cannot be read is refused by what it lacks or holds") {
  const Shell shell;
  import_both(shell);
  output_of(shell, "export runs/llama --as huggingface --out folder");
  const Path folder = shell.scratch / "folder";
  const Json config = parse_json(io::read(folder / "config.json"), "config.json");
  io::write(folder / "config.json", Json(config).set("model_type", "t5").dump());
  check_refused(shell, {"import", "folder", "--name", "x"}, 3,
                {"config.json: model_type is \"t5\"", "only \"gpt2\", \"llama\", \"bert\" and \"marian\""});
  io::write(folder / "config.json", "{}");
  check_refused(shell, {"import", "folder", "--name", "x"}, 3, {"model_type is missing"});
  io::write(folder / "config.json", Json(config).set("vocab_size", 30).dump());
  check_refused(shell, {"import", "folder", "--name", "x"}, 3,
                {"the tokenizer in ", "has 31 tokens", "vocab_size 30"});
  io::write(folder / "config.json", config.dump());
  REQUIRE(std::filesystem::remove(folder / "tokenizer.json"));
  check_refused(shell, {"import", "folder", "--name", "x"}, 5, {"folder lacks tokenizer.json"});
  io::write(folder / "vocab.json", "{}");
  check_refused(shell, {"import", "folder", "--name", "x"}, 5, {"folder lacks merges.txt"});
  REQUIRE(std::filesystem::remove(folder / "model.safetensors"));
  io::write(folder / "pytorch_model.bin", "x");
  check_refused(shell, {"import", "folder", "--name", "x"}, 5,
                {"folder lacks model.safetensors, merges.txt", "safe_serialization=True"});
  io::write(folder / "model.safetensors.index.json", "{}");
  check_refused(shell, {"import", "folder", "--name", "x"}, 5, {"folder lacks merges.txt"});
  CHECK_FALSE(io::exists(shell.scratch / "runs/x"));
}

TEST_CASE("hugging face: --code writes linear attention with its code, and softmax as without it") {
  const Shell shell;
  import_both(shell);
  output_of(
      shell,
      "train lm --attention linear --tokenizer byte_pair --vocabulary 280 --data words.txt --steps 1 "
      "--d-model 16 --heads 2 --layers 1 --activation gelu_tanh --position learned --attention-bias true "
      "--scale-embedding false --output-bias false --name linear");
  check_refused(
      shell, {"export", "runs/linear", "--as", "huggingface", "--out", "x"}, 2,
      {"needs attention.decoder = softmax (linear and fastmax: --as huggingface --code), not linear"});
  CHECK_FALSE(io::exists(shell.scratch / "x"));
  output_of(shell, "export runs/linear --as huggingface --code --out coded");
  for (const char* name : {"model.safetensors", "tokenizer.json", "tokenizer_config.json", "merges.txt"})
    CHECK(io::exists(shell.scratch / "coded" / name));
  CHECK_THAT(io::read(shell.scratch / "coded/modeling_heed.py"),
             containing("class HeedGpt2ForCausalLM(GPT2LMHeadModel):"));
  const Json config = parse_json(io::read(shell.scratch / "coded/config.json"), "config.json");
  CHECK(config.at("model_type").text() == "heed_gpt2");
  CHECK(config.at("architectures").list().at(0).text() == "HeedGpt2ForCausalLM");
  CHECK(config.at("auto_map").at("AutoConfig").text() == "modeling_heed.HeedGpt2Config");
  CHECK(config.at("auto_map").at("AutoModelForCausalLM").text() == "modeling_heed.HeedGpt2ForCausalLM");
  const Json& attention = config.at("heed_attention");
  CHECK(attention.at("map").text() == "positive");
  CHECK(attention.at("coefficients").dump() == "[0, 1]");
  CHECK(attention.at("scale").real() == 1);
  CHECK(attention.at("epsilon").is_number());
  check_refused(shell, {"import", "coded", "--name", "x"}, 3, {"model_type is \"heed_gpt2\""});
  output_of(shell, "export runs/gpt2 --as huggingface --code --out with");
  output_of(shell, "export runs/gpt2 --as huggingface --out without");
  CHECK_FALSE(io::exists(shell.scratch / "with/modeling_heed.py"));
  CHECK(io::read(shell.scratch / "with/config.json") == io::read(shell.scratch / "without/config.json"));
}

TEST_CASE("hugging face: --code is refused where it does nothing, and for attentions that it lacks") {
  const Shell shell;
  io::write(shell.scratch / "words.txt", verse(4000, 2));
  const std::string small = " --data words.txt --steps 1 --d-model 16 --heads 2 --layers 1 --name ";
  output_of(shell, "train lm --attention window:left=3" + small + "window");
  output_of(shell, "train mlm" + small + "masked");
  const auto refused = [&](const std::string& line, const std::string& reason) {
    check_refused(shell, command_words("export " + line + " --code --out x"), 2, {reason});
    CHECK_FALSE(io::exists(shell.scratch / "x"));
  };
  refused("runs/window", "--code is for --as huggingface. Leave it out, or give that, too");
  refused("runs/window --as gguf", "--code is for --as huggingface, whose folders can hold code");
  refused("lm", "--code is for runs, and lm is none");
  refused("runs/masked --as huggingface", "--code is for language models, and this is a run of the task mlm");
  refused("runs/window --as huggingface",
          "modeling_heed.py needs attention.decoder = linear, or fastmax with normalise = std or none");
}

TEST_CASE("hugging face: --parse-special ends texts at the special tokens of a tokenizer.json") {
  const Shell shell;
  io::make_directories(shell.scratch / "words");
  io::write(shell.scratch / "words/tokenizer.json",
            R"({"added_tokens": [{"id": 2, "content": "<|im|>", "special": true}],
                "pre_tokenizer": {"type": "Whitespace"},
                "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1}}})");
  std::string turns;
  for (int i = 0; i < 2000; ++i) turns += "a<|im|>";
  io::write(shell.scratch / "turns.txt", turns);
  output_of(shell,
            "train lm --data turns.txt --tokenizer tokenizer_json --merges words --d-model 16 --heads 2 "
            "--layers 1 --max-length 16 --steps 40 --lr 0.02 --name turns");
  const auto said = [&](const std::string& options) {
    return output_of(shell, "generate runs/turns --temperature 0 --max-new-tokens 6 " + options);
  };
  CHECK(said("--prompt a") == "a a a a\n");
  CHECK(said("--prompt a --parse-special") == "a\n");
  CHECK(said("--prompt a<|im|> --parse-special") == "a<|im|> a\n");
}
