// heed export: writes a model, and its first training batches, in files that other programs read.
#include <numeric>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/safetensors.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/loop/overfit.h"
#include "heed/train/loop/run_estimate.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/run/huggingface_code.h"
#include "heed/train/run/huggingface_folder.h"
#include "heed/train/run/llama_gguf.h"
#include "heed/train/run/llm_c_file.h"
#include "heed/train/run/nanogpt_file.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/run_inputs.h"
#include "heed/train/tasks/example_provider.h"

namespace heed {
namespace {

Path new_folder(const ParsedArguments& arguments) {
  const Path folder = arguments.get("out");
  if (folder.empty()) fail("heed export needs --out DIR, the folder that takes the files.");
  if (!io::list(folder).empty())
    fail("export: ", folder, " is not empty. Give --out a new folder; nothing is overwritten.");
  return folder;
}

void write_model(const Path& folder, Config& config, const std::string& model,
                 const std::vector<NamedBytes>& tokenizers) {
  io::make_directories(folder);
  io::write(folder / "config.toml", to_toml(config));
  for (const NamedBytes& one : tokenizers) {
    io::write(folder / one.name, one.bytes);
    if (!one.name.ends_with(".byte_pair")) continue;
    const auto tokenizer = load_tokenizer("byte_pair", one.bytes, one.name);
    if (byte_pair_lists(*tokenizer).pre_tokenizer != PreTokenizer::gpt2)
      continue;  // these files cannot say it
    const BytePairFiles files = byte_pair_files(*tokenizer);
    io::write(folder / "vocab.json", files.vocabulary);
    io::write(folder / "merges.txt", files.merges);
  }
  io::write(folder / "model.safetensors", model);
}

/// Every setting of the optimizer, and the learning rate and momentum of each step: what turns the gradients
/// of these batches into steps.
Json rates(const Config& config, int64_t total, int64_t steps) {
  const TrainOptions& train = config.train;
  OptimizerKind kind = train.optimizer.kind;
  const double own = kind == OptimizerKind::sgd ? train.optimizer.momentum : train.optimizer.beta1;
  Json list = Json::List(), momenta = Json::List();
  for (int64_t step = 1; step <= steps; ++step) {
    list.push(train.schedule.at(step, total, config.model.d_model));
    momenta.push(train.schedule.momentum(step, total).value_or(own));
  }
  return Json::object({{"optimizer", choice_of(kind).word()},
                       {"total_steps", total},
                       {"grad_accumulation", train.grad_accumulation},
                       {"label_smoothing", train.label_smoothing},
                       {"beta1", train.optimizer.beta1},
                       {"beta2", train.optimizer.beta2},
                       {"epsilon", train.optimizer.epsilon},
                       {"momentum", train.optimizer.momentum},
                       {"weight_decay", train.optimizer.decay()},
                       {"decay_vectors", train.optimizer.decay_vectors},
                       {"grad_clip", train.optimizer.grad_clip},
                       {"grad_clip_value", train.optimizer.grad_clip_value},
                       {"momenta", std::move(momenta)},
                       {"rates", std::move(list)}});
}

/// Writes the first batches, in the order in which the trainer takes them, and their learning rates.
void write_first_batches(const Path& folder, const Config& config, int64_t rounds) {
  std::vector<Batch> batches;
  int64_t epoch = 0, position = 0, planned = plan_epoch(config, 0);
  if (planned < 1) fail(Fault::data, "export: the training split makes no batch. Give more data.");
  const int64_t accumulate = config.train.grad_accumulation;
  const int64_t total = steps_of(config.train, planned);
  for (int64_t round = 0; round < rounds; ++round) {
    if (position == planned) {
      planned = plan_epoch(config, ++epoch);
      position = 0;
    }
    batches.push_back(config.task->batch(position++));
  }
  write_batches(folder / "batches.safetensors", *config.task, batches);
  io::write(folder / "rates.json",
            rates(config, total, (rounds + accumulate - 1) / accumulate).dump(1) + "\n");
}

/// Writes the first test examples as one batch.
void write_test_examples(const Path& folder, const Config& config, int64_t count) {
  const ExampleProvider& provider = example_provider(*config.task);
  if (count > provider.test_examples())
    fail("--test-examples ", count, ": the test split has ", provider.test_examples(),
         ". Give at most as many, or a larger data.test_size.");
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  write_batches(folder / "test.safetensors", *config.task, {provider.test_batch(numbers, 0).batch});
}

/// A format of another program.
struct ExportFormat {
  std::string_view name;                        ///< its name for --as
  const char* file;                             ///< how its files are called; null: it is a folder
  std::string (*encode)(const ExportedModel&);  ///< makes the file; null: it is a folder
};

constexpr ExportFormat export_formats[] = {{"gguf", "FILE.gguf", encode_llama},
                                           {"huggingface", nullptr, nullptr},
                                           {"llm.c", "FILE.bin", encode_llm_c},
                                           {"nanogpt", "ckpt.pt", encode_nanogpt}};

/// The format of --as. Fails with a list of them.
const ExportFormat& export_format(const std::string& as) {
  for (const ExportFormat& format : export_formats) {
    if (format.name == as) return format;
  }
  fail("--as ", shown(as),
       ": it must be gguf, huggingface, llm.c or nanogpt. Without --as the files are safetensors.");
}

/// The parts of a translator that is exported; `target` is its tokenizer of translations.
ExportedTranslator translator_parts(const Config& config, const Tokenizer& target) {
  demand_setting(config.model.kind == ModelKind::transformer, "a Marian", "model.kind = transformer");
  return {.encoder_attention = config.attention.encoder,
          .cross_attention = config.attention.cross,
          .target = target,
          .beam_size = config.decode.beam_size,
          .length_penalty = config.decode.length_penalty,
          .is_renormalized = config.decode.beam_rules == BeamRules::transformers_renormalized};
}

/// What modeling_heed.py needs of a language model's attention; null for softmax, which needs no code.
Json attention_code(const Config& config) {
  const std::string& spec = config.attention.decoder;
  if (config.task_name != "lm")
    fail("export: --code is for language models, and this is a run of the task ", config.task_name,
         ". Leave it out.");
  if (spec == "softmax") return {};
  const TransformerConfig& model = config.model;
  const std::optional<Json> found =
      polynomial_settings(spec, model.head_dim > 0 ? model.head_dim : model.d_model / model.heads);
  demand_setting(
      found.has_value(), "modeling_heed.py",
      text("attention.decoder = linear, or fastmax with normalise = std or none and guard = false, "
           "the same in all layers, not ",
           spec));
  return *found;
}

/// Writes a run of a language model, a masked one or a translator in the format of another program.
int export_as(const ParsedArguments& arguments, const ExportFormat& format) {
  const bool is_file = format.encode != nullptr;
  if (arguments.has("code") && is_file)
    fail("export: --code is for --as huggingface, whose folders can hold code. Leave it out.");
  const Path out = is_file ? Path(arguments.get("out")) : new_folder(arguments),
             folder = arguments.positional[0];
  if (out.empty())
    fail("heed export --as ", format.name, " needs --out ", format.file, ", the file to write.");
  if (is_file && io::exists(out))
    fail("export: ", out, " is there already. Give --out a new file; nothing is overwritten.");
  LoadedRun run = load_run(folder, {.checkpoint = arguments.get("checkpoint")});
  const bool translates = run.config.task_name == "translate" && !is_file,
             is_masked = run.config.task_name == "mlm" && !is_file;
  if (run.config.task_name != "lm" && !translates && !is_masked)
    fail(
        "export: ", folder, " is a run of the task ", run.config.task_name, ", and --as ", format.name,
        " writes ",
        is_file
            ? "a language model. Give a run of the task lm."
            : "a language model, a masked one or a translator. Give a run of the task lm, mlm or translate.");
  const std::vector<NamedBytes> tokenizers = tokenizer_files(run.checkpoint);
  const auto tokenizer = artifact_tokenizer(tokenizers, translates ? "source" : "text"),
             target = artifact_tokenizer(tokenizers, "target");
  const SafeTensors weights = SafeTensors::open(run.checkpoint.path("model.safetensors"));
  ExportedModel model{.name = folder.filename().string(),
                      .config = run.config.model,
                      .attention = is_masked ? run.config.attention.encoder : run.config.attention.decoder,
                      .weights = weights,
                      .tokenizer = *tokenizer,
                      .translator = {},
                      .is_masked = is_masked};
  if (arguments.has("code")) model.attention_code = attention_code(run.config);
  if (translates) model.translator.emplace(translator_parts(run.config, target ? *target : *tokenizer));
  const std::vector<NamedBytes> files =
      is_file ? std::vector<NamedBytes>{{"", format.encode(model)}} : huggingface_files(model);
  if (!is_file) io::make_directories(out);
  size_t bytes = 0;
  for (const NamedBytes& one : files) {
    io::write(is_file ? out : out / one.name, one.bytes);
    bytes += one.bytes.size();
  }
  io::printf("%s: the model of step %lld, %zu bytes\n", out.c_str(),
             static_cast<long long>(run.checkpoint.step), bytes);
  return 0;
}

int export_run(const ParsedArguments& arguments) {
  refuse_others(
      arguments, "export", {"out", "checkpoint", "as", "code"},
      text("does not go with a run, whose settings and weights are given. Give ", arguments.positional[0],
           "/config.toml instead of the folder to export where such a run would begin."));
  if (arguments.has("as")) return export_as(arguments, export_format(arguments.get("as")));
  if (arguments.has("code")) fail("export: --code is for --as huggingface. Leave it out, or give that, too.");
  const Path folder = new_folder(arguments);
  LoadedRun run = load_run(arguments.positional[0], {.checkpoint = arguments.get("checkpoint")});
  write_model(folder, run.config, io::read(run.checkpoint.path("model.safetensors")),
              tokenizer_files(run.checkpoint));
  io::printf("%s: the model of step %lld\n", folder.c_str(), static_cast<long long>(run.checkpoint.step));
  return 0;
}

int run_export(const ParsedArguments& arguments) {
  apply_machine(arguments);
  if (io::is_directory(arguments.positional[0])) return export_run(arguments);
  if (arguments.has("checkpoint"))
    fail("export: --checkpoint chooses among the checkpoints of a run, and ", arguments.positional[0],
         " is none. Leave it out.");
  for (const char* option : {"as", "code"}) {
    if (arguments.has(option))
      fail("export: --", option, " is for runs, and ", arguments.positional[0], " is none. Leave it out.");
  }
  const int64_t rounds = arguments.integer("rounds", 0, 0),
                test_examples = arguments.integer("test-examples", 0, 0);
  const Path folder = new_folder(arguments);
  Config config = make_config(arguments.positional[0]);
  apply_settings(config, arguments);
  config.check();
  config.task->load(config, {}, [](const std::string&) {});
  // The trainer initialises the model with these draws too.
  Rng rng(static_cast<uint64_t>(config.train.seed));
  const auto model = new_model(config, rng);
  write_model(folder, config, save_bytes(*model), config.task->artifacts());
  if (rounds > 0) write_first_batches(folder, config, rounds);
  if (test_examples > 0) write_test_examples(folder, config, test_examples);
  io::printf("%s: the model before its first step%s\n", folder.c_str(),
             rounds > 0 ? text(", and ", rounds, " batches").c_str() : "");
  return 0;
}

}  // namespace

Command command::export_model() {
  return {
      .name = "export",
      .about = "write a model as safetensors, with its first training batches, or for other programs",
      .positional = "PRESET|FILE|RUN",
      .positional_help = "a preset (heed list presets), a .toml file of settings, or the folder of a run",
      .min_positional = 1,
      .max_positional = 1,
      .options = with_machine_options(
          {{"out", "DIR|FILE", "new folder for the files; with --as gguf, llm.c or nanogpt the new file"},
           {"as", "FORMAT",
            "gguf: a run of LLaMA's shape as a file for llama.cpp; huggingface: one of LLaMA's, GPT-2's, "
            "BERT's or Marian's shape as a folder for Hugging Face's Transformers; llm.c, nanogpt: one of "
            "GPT-2's shape as a checkpoint of these programs; weights in f32"},
           {"code", "",
            "with --as huggingface: writes linear and fastmax attention too, with modeling_heed.py, code for "
            "Transformers that trust_remote_code=True runs"},
           {"rounds", "N", "presets and files: also the first N batches and their learning rates"},
           {"test-examples", "N", "presets and files: also the first N test examples, as one batch"},
           {"checkpoint", "WHICH", "checkpoint of a run: best, last or a step (default: best)"}}),
      .settings = true,
      .run = run_export};
}

}  // namespace heed
