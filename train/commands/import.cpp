// heed import: makes a run of a model that another program trained.
#include "heed/core/io/files.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/gpt2_weights.h"
#include "heed/train/run/llama_gguf.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/session_history.h"
#include "heed/train/session/loaded_run.h"

namespace heed {
namespace {

/// Fails unless the folder has the files that are read.
void check_folder(const Path& folder) {
  std::string missing;
  for (const char* name : {"config.json", "model.safetensors", "vocab.json", "merges.txt"}) {
    if (!io::exists(folder / name))
      missing += text(missing.empty() ? "" : ", ", name);
    else
      io::size(folder / name);  // refuses a pipe, which reading would wait for
  }
  if (missing.empty()) return;
  fail(Fault::file, "import: ", shown(folder.string()), " lacks ", missing,
       ". Give the folder of a GPT-2 as Hugging Face's Transformers saves it "
       "(save_pretrained of the model and of its tokenizer).");
}

/// The settings of a GPT-2 that differ from the preset lm.
std::vector<std::pair<std::string, std::string>> settings_of(const Gpt2Config& found, bool tied) {
  return {{"model.d_model", text(found.width)},
          {"model.heads", text(found.heads)},
          {"model.d_ff", text(found.hidden)},
          {"model.layers", text(found.layers)},
          {"model.max_length", text(found.positions)},
          {"model.dropout", text(found.dropout)},
          {"model.attention_dropout", text(found.attention_dropout)},
          {"model.activation", "gelu_tanh"},
          {"model.norm_epsilon", text(found.norm_epsilon)},
          {"model.tie_embeddings", tied ? "output" : "none"},
          {"model.attention_bias", "true"},
          {"model.feed_forward_bias", "true"},
          {"model.norm_bias", "true"},
          {"model.output_bias", "false"},
          {"data.tokenizer", "byte_pair"},
          {"train.batch_size", "4"},
          {"train.learning_rate", "5e-5"}};
}

/// The GPT-2 in a folder.
ImportedModel gpt2_model(const Path& folder) {
  check_folder(folder);
  const std::string config_name = (folder / "config.json").string();
  const Gpt2Config found =
      parse_gpt2_config(parse_json(io::read(folder / "config.json"), config_name), config_name);
  auto tokenizer = read_byte_pair(folder / "vocab.json", folder / "merges.txt");
  if (tokenizer->size() != found.vocabulary) {
    fail(Fault::data, "import: ", folder / "vocab.json", " has ", tokenizer->size(), " tokens, and ",
         config_name, " says vocab_size ", found.vocabulary,
         ". Give the tokenizer that the model was trained with.");
  }
  Gpt2Weights weights = gpt2_weights(SafeTensors::read(folder / "model.safetensors"), found);
  return {.architecture = "GPT-2",
          .run_name = "gpt2",
          .settings = settings_of(found, weights.tied),
          .weights = std::move(weights.bytes),
          .tokenizer = std::move(tokenizer)};
}

int run_import(const ParsedArguments& arguments) {
  apply_machine(arguments);
  const Path source = arguments.positional[0];
  if (!io::exists(source))
    fail(Fault::file, "import: there is no ", source, ". Give a GGUF file, or the folder of a GPT-2.");
  const ImportedModel found =
      io::is_directory(source) ? gpt2_model(source) : llama_model(GgufFile::read(source));
  Config config = preset_config("lm");  // it learns from embedded verse unless --data gives another text
  for (const auto& [key, value] : found.settings) config.set(key, value, source.string() + ": ");
  apply_settings(config, arguments);
  config.check();
  const NamedBytes artifact{"tokenizer.text." + found.tokenizer->kind(), found.tokenizer->save()};
  config.task->load_artifacts(config, {artifact});
  Rng rng(static_cast<uint64_t>(config.train.seed));
  const auto model = new_model(config, rng);
  load_bytes(*model, found.weights, source.string());

  Json manifest = Json::object({{"format", run_format}});
  add_session(manifest, nullptr, session_metadata(arguments.argv, 1, 0));
  manifest.set("parameters", count_parameters(*model));
  manifest.set("imported", source.string());
  manifest.set(first_checkpoint_key, 0);
  const RunFolder run =
      RunFolder::create({.out = arguments.get("out", "runs"),
                         .name = arguments.get("name"),
                         .base = found.run_name,
                         .command = arguments.command_line(),
                         .config = to_toml(config),
                         .write_contents = [&](const Path& made) {
                           write_checkpoint(made, 0, {{"model.safetensors", found.weights}, artifact});
                           mark_best(made, 0);
                           RunFolder::elsewhere(made).write_manifest(manifest);
                         }});
  io::printf(
      "%s: a %s of %lld parameters. Look at it:\n  %s inspect %s \"TEXT\"\n  %s generate %s --prompt "
      "\"TEXT\"\n",
      run.path().c_str(), found.architecture.c_str(), static_cast<long long>(count_parameters(*model)),
      program_name().c_str(), run.path().c_str(), program_name().c_str(), run.path().c_str());
  return 0;
}

}  // namespace

Command command::import_model() {
  return {
      .name = "import",
      .about =
          "make a run of a GPT-2 or LLaMA that another program trained, to evaluate, generate, inspect or "
          "fine-tune",
      .positional = "FILE|FOLDER",
      .positional_help =
          "a GGUF file of a LLaMA, or the folder of a GPT-2 with config.json, model.safetensors, vocab.json "
          "and merges.txt, as Hugging Face's Transformers saves them",
      .min_positional = 1,
      .max_positional = 1,
      .options =
          with_machine_options({{"name", "NAME", "name of the run (default: gpt2-001, llama-001, ...)"},
                                {"out", "FOLDER", "where its folder lies (default: runs)"}}),
      .settings = true,
      .run = run_import};
}

}  // namespace heed
