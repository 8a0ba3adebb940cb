// heed ablate: what it costs a run to do without an attention head.
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/safetensors.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/session/run_inputs.h"
#include "heed/train/inspect/head_ablation.h"
#include "heed/train/inspect/head_gates.h"
#include "heed/train/progress/progress.h"
#include "heed/train/report/chart.h"
#include "heed/train/tasks/example_provider.h"

namespace heed {
namespace {

int64_t at_least(const ParsedArguments& arguments, const std::string& name, int64_t otherwise,
                 int64_t least) {
  const int64_t value = arguments.integer(name, otherwise);
  if (value < least) fail("--", name, " = ", value, ". Give at least ", least, ".");
  return value;
}

/// The examples as batches, for programs that repeat the measurement: tensors as heed export names them.
void write_batches_of_examples(const Path& path, const Task& task, const AblationOptions& options) {
  const std::vector<std::string> names = task.tensor_names();
  std::vector<Tensor> kept;
  std::vector<TensorBytes> list;
  constexpr int64_t rows = 64;
  int64_t count = 0;
  for (const auto& numbers : batches_of_equal_lengths(task, options.examples, options.max_tokens, rows)) {
    const Batch batch = example_provider(task).test_batch(numbers, options.max_tokens).batch;
    std::string number = std::to_string(count++);
    number.insert(0, number.size() < 6 ? 6 - number.size() : 0, '0');
    for (size_t i = 0; i < batch.tensors.size(); ++i) {
      const Tensor& x = kept.emplace_back(contiguous(batch.tensors[i]).to(Device::cpu));
      list.push_back({number + "." + tensor_name(names, i), to_string(x.dtype()),
                      std::vector<int64_t>(x.shape().begin(), x.shape().end()),
                      std::span(static_cast<const std::byte*>(x.raw()), static_cast<size_t>(x.bytes()))});
    }
  }
  write_safetensors(path, list);
}

int run_ablate(const ParsedArguments& arguments) {
  apply_machine(arguments);
  AblationOptions options{.by = HeadReplacement::parse(arguments.get("by", "zero")),
                          .examples = at_least(arguments, "examples", 2000, 1),
                          .max_tokens = at_least(arguments, "max-tokens", 0, 0),
                          .outputs = at_least(arguments, "outputs", 0, 0),
                          .heads = arguments.get("heads"),
                          .curve = !arguments.has("no-curve")};
  GateOptions gates{.steps = at_least(arguments, "gate-steps", 400, 10),
                    .penalty = arguments.number("gate-penalty", 0.02)};
  if (!(gates.penalty > 0)) fail("--gate-penalty = ", gates.penalty, ". It must be above 0.");
  for (const char* own : {"gate-steps", "gate-penalty"})
    if (arguments.has(own) && !arguments.has("gates")) fail("--", own, " is for --gates. Give that, too.");
  Progress progress;
  LoadedRun run = load_run(arguments.positional[0], arguments.get("checkpoint"), other_data(arguments), true,
                           "", {}, arguments.has("gates") ? OtherData::split : OtherData::test, &progress);
  apply_decoding(run.config, arguments);
  const Path out = output_folder(arguments, run, "ablate");
  if (arguments.has("batches"))
    write_batches_of_examples(arguments.get("batches"), *run.config.task, options);
  progress.say("ablation", "switching off head after head");
  std::optional<ProgressScope> shown;
  shown.emplace(progress, "ablation");
  const AblationReport report = ablate_heads(*run.config.task, *run.model, options, run.config.decode);
  Json json = Json::object({{"run", arguments.positional[0]}, {"step", run.checkpoint.step}});
  const Json numbers = ablation_json(report);
  for (const JsonMember& member : numbers.members()) json.append(member.key, member.value);
  const std::string title = run.folder.path().filename().string() + ": heads switched off";
  const std::string subtitle = text("checkpoint of step ", run.checkpoint.step);
  io::write_own(out / "ablation.html", ablation_page(report, title, subtitle));
  io::write_own(out / "ablation.svg", ablation_svg(report));
  std::string words = ablation_text(report);
  if (arguments.has("gates")) {
    const ProgressScope shown_gates(progress, "gates");
    const GateReport trained =
        train_head_gates(*run.config.task, *run.model, gates, options, run.config.decode);
    json.append("gates", gates_json(trained));
    words += "\n" + gates_text(trained);
  }
  io::write_own(out / "ablation.json", json.dump(1) + "\n");
  shown.reset();
  if (arguments.has("json")) {
    io::print_data(json.dump() + "\n");
    return 0;
  }
  io::print(words);
  io::printf("\npage        %s\npicture     %s\nnumbers     %s\ntime        %.1f s\n",
             (out / "ablation.html").c_str(), (out / "ablation.svg").c_str(), (out / "ablation.json").c_str(),
             report.seconds);
  return 0;
}

std::string about_ablation() {
  return "Errors are standard errors of differences, paired over examples. zero: the head gives nothing; "
         "mean: its mean "
         "output; uniform:\nequal weights on all visible keys; identity: each query attends to its own "
         "position; "
         "band:w=3: its own weights within 3 positions,\nscaled to their former sum.";
}

}  // namespace

Command command::ablate() {
  return {
      "ablate",
      "measure what it costs to switch attention heads off",
      "RUN",
      "the folder of a run",
      1,
      1,
      with_machine(with_decoding(
          {{"heads", "LIST", "as encoder.0.3,cross.0: heads or layers (default: all, and the pruning curve)"},
           {"by", "WHAT", "what replaces a head: zero, mean, uniform, identity, band:w=3 (default: zero)"},
           {"examples", "N", "the first test examples (default: 2000)"},
           {"outputs", "N", "of translate: also translate the first N, for BLEU (default: 0)"},
           {"no-curve", "", "without the pruning curve"},
           {"gates", "", "train hard-concrete gates, too: which heads can be spared together"},
           {"gate-steps", "N", "batches of training data for gates (default: 400)"},
           {"gate-penalty", "X", "nats per target that an open gate costs (default: 0.02)"},
           {"batches", "FILE", "also write the examples as tensors (safetensors), for other programs"},
           {"max-tokens", "N", "longer inputs are cut to so many tokens; 0: none (default: 0)"},
           {"data", "PATH",
            "other data in place of the run's: all of a file is scored; with --gates, which need training "
            "data, "
            "it is split as heed train splits it"},
           {"test-path", "FILE", "means --data, as heed train calls the test text of a language model"},
           {"checkpoint", "WHICH", "best, last or a step (default: best)"},
           {"out", "FOLDER", "where the files go (default: RUN/ablate)"},
           {"json", "", "one JSON object in place of the table"}})),
      false,
      run_ablate,
      about_ablation};
}

}  // namespace heed
