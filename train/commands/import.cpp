// heed import: makes a run of a model that another program trained.
#include "heed/core/io/files.h"
#include "heed/core/io/safetensors.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/id_tokenizer.h"
#include "heed/nn/init.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/huggingface_folder.h"
#include "heed/train/run/model_file.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/session_history.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/tasks/find_data.h"

namespace heed {
namespace {

/// Gives a model without a tokenizer that of the folder data.merges, or one of ids. Returns whether texts are
/// ids.
bool take_tokenizer(ImportedModel& found, Config& config, const Path& source) {
  std::string merges;
  for (const OptionText& option : options_of(config)) {
    if (option.name == "data.merges") merges = option.value;
  }
  if (found.tokenizer && !merges.empty())
    fail("import: data.merges = ", shown(merges), " is for a model without a tokenizer, and that of ", source,
         " has one. Leave it out.");
  if (found.tokenizer) return false;
  found.tokenizer = merges.empty() ? make_id_tokenizer(found.vocabulary)
                                   : padded_byte_pair(find_data(merges), found.vocabulary);
  config.set("data.tokenizer", found.tokenizer->kind(), "import: ");
  return merges.empty();
}

/// The files of a model's tokenizers in a checkpoint.
std::vector<NamedBytes> tokenizers_of(const ImportedModel& model) {
  const auto file = [](const char* role, const Tokenizer& tokenizer) {
    return NamedBytes{text("tokenizer.", role, ".", tokenizer.kind()), tokenizer.save()};
  };
  if (!model.target_tokenizer) return {file("text", *model.tokenizer)};
  return {file("source", *model.tokenizer), file("target", *model.target_tokenizer)};
}

int run_import(const ParsedArguments& arguments) {
  apply_machine(arguments);
  const Path source = arguments.positional[0];
  if (!io::exists(source))
    fail(Fault::file, "import: there is no ", source,
         ". Give a model file, such as a GGUF file, or the folder of a GPT-2, LLaMA, BERT or Marian.");
  ImportedModel found = io::is_directory(source) ? read_huggingface_folder(source) : read_model_file(source);
  Config config = preset_config(found.preset);  // it learns from embedded text unless --data gives another
  for (const auto& [key, value] : found.settings) config.set(key, value, source.string() + ": ");
  apply_settings(config, arguments);
  const bool has_ids_only = take_tokenizer(found, config, source);
  config.check();
  const std::vector<NamedBytes> artifacts = tokenizers_of(found);
  config.task->load_artifacts(config, artifacts);
  Rng rng(static_cast<uint64_t>(config.train.seed));
  const SkipInit skips;  // the model shows only that the weights fit
  const auto model = new_model(config, rng);
  SafeTensors weights = SafeTensors::parse(std::move(found.weights), source.string());
  check_fits(*model, weights);
  std::vector<NamedBytes> files = artifacts;
  files.push_back({"model.safetensors", std::move(weights).release()});

  Json manifest = Json::object({{"format", run_format}});
  add_session(manifest, nullptr, session_metadata(arguments.argv, 1, 0));
  manifest.set("parameters", count_parameters(*model));
  manifest.set("imported", source.string());
  manifest.set(first_checkpoint_key, 0);
  const RunFolder run = RunFolder::create({.out = arguments.get("out", "runs"),
                                           .name = arguments.get("name"),
                                           .base = found.run_name,
                                           .command = arguments.command_line(),
                                           .config = to_toml(config),
                                           .write_contents = [&](const Path& made) {
                                             write_checkpoint(made, 0, files);
                                             mark_best(made, 0);
                                             RunFolder::elsewhere(made).write_manifest(manifest);
                                           }});
  const std::string path = run.path().string(), program = program_name();
  const std::string use = found.target_tokenizer  ? " translate " + path + " \"TEXT\""
                          : found.preset == "mlm" ? " embed " + path + " --data FILE"
                                                  : " generate " + path + " --prompt \"TEXT\"";
  io::print(text(path, ": a ", found.architecture, " of ", count_parameters(*model),
                 " parameters. Look at it:\n  ", program, " inspect ", path, " \"TEXT\"\n  ", program, use,
                 "\n"));
  for (const std::string& note : found.notes) io::print(note + "\n");
  if (has_ids_only)
    io::print(
        text("The file has no tokenizer, so the run has ids only: a TEXT is numbers from 0 to ",
             found.vocabulary - 1,
             " with blanks between. For texts import it with --merges FOLDER, the folder of vocab.json and "
             "merges.txt.\n"));
  return 0;
}

}  // namespace

Command command::import_model() {
  return {
      .name = "import",
      .about =
          "make a run of a GPT-2, LLaMA, BERT or Marian that another program trained, to evaluate, generate, "
          "embed or translate, inspect or fine-tune",
      .positional = "FILE|FOLDER",
      .positional_help =
          "a GGUF file of a LLaMA, a checkpoint of llm.c, llama2.c, nanoGPT (ckpt.pt) or minGPT (JSON), or "
          "a folder of a GPT-2, LLaMA, BERT or Marian with config.json, model.safetensors and its "
          "tokenizer, as Hugging Face's Transformers saves it",
      .min_positional = 1,
      .max_positional = 1,
      .options =
          with_machine_options({{"name", "NAME", "name of the run (default: gpt2-001, llama-001, ...)"},
                                {"out", "FOLDER", "where its folder lies (default: runs)"}}),
      .settings = true,
      .run = run_import};
}

}  // namespace heed
