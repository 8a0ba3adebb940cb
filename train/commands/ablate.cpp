// heed ablate: measures what it costs a run to do without an attention head.
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/inspect/head_ablation.h"
#include "heed/train/inspect/head_gates.h"
#include "heed/train/progress/progress.h"
#include "heed/train/report/chart.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/run_inputs.h"
#include "heed/train/tasks/example_provider.h"

namespace heed {
namespace {

/// Writes the examples in the batches of the measurement, for other programs that repeat it.
void write_examples(const Path& file, const Task& task, const AblationOptions& options) {
  constexpr int64_t max_rows = 64;
  std::vector<Batch> batches;
  for (const auto& numbers : batches_of_equal_lengths(task, options.examples, options.max_tokens, max_rows))
    batches.push_back(example_provider(task).test_batch(numbers, options.max_tokens).batch);
  write_batches(file, task, batches);
}

int run_ablate(const ParsedArguments& arguments) {
  apply_machine(arguments);
  AblationOptions options{.by = HeadReplacement::parse(arguments.get("by", "zero")),
                          .examples = arguments.integer("examples", 2000, 1),
                          .max_tokens = arguments.integer("max-tokens", 0, 0),
                          .outputs = arguments.integer("outputs", 0, 0),
                          .heads = arguments.get("heads"),
                          .curve = !arguments.has("no-curve")};
  GateOptions gates{.steps = arguments.integer("gate-steps", 400, 10),
                    .penalty = arguments.number("gate-penalty", 0.02)};
  if (!(gates.penalty > 0)) fail("--gate-penalty = ", gates.penalty, ". It must be above 0.");
  for (const char* option : {"gate-steps", "gate-penalty"})
    if (arguments.has(option) && !arguments.has("gates"))
      fail("--", option, " is for --gates. Give that, too.");
  Progress progress;
  LoadedRun run = load_run(arguments.positional[0], {.checkpoint = arguments.get("checkpoint"),
                                                     .with_data = true,
                                                     .data = other_data(arguments),
                                                     .is_test = !arguments.has("gates"),
                                                     .progress = &progress});
  apply_decoding(run.config, arguments);
  const Task& task = *run.config.task;
  check_outputs(task, *run.model, options, run.config.decode);
  const Path out = output_folder(arguments, run.folder.path(), "ablate");
  if (arguments.has("batches")) write_examples(arguments.get("batches"), task, options);
  progress.say("ablation", "switching off head after head");
  std::optional<ProgressScope> shown;
  shown.emplace(progress, "ablation");
  const AblationReport report = ablate_heads(task, *run.model, options, run.config.decode);
  Json json = Json::object({{"run", arguments.positional[0]}, {"step", run.checkpoint.step}});
  const Json results = ablation_json(report);
  for (const JsonMember& member : results.members()) json.append(member.key, member.value);
  const std::string title = run.folder.path().filename().string() + ": heads switched off";
  const std::string subtitle = text("checkpoint of step ", run.checkpoint.step);
  io::write_own(out / "ablation.html", ablation_page(report, title, subtitle));
  io::write_own(out / "ablation.svg", ablation_svg(report));
  std::string tables = ablation_text(report);
  if (arguments.has("gates")) {
    const ProgressScope shown_gates(progress, "gates");
    const GateReport trained =
        train_head_gates(*run.config.task, *run.model, gates, options, run.config.decode);
    json.append("gates", gates_json(trained));
    tables += "\n" + gates_text(trained);
  }
  io::write_own(out / "ablation.json", json.dump(1) + "\n");
  shown.reset();
  if (arguments.has("json")) {
    io::print_data(json.dump() + "\n");
    return 0;
  }
  io::print(tables);
  io::printf("\npage        %s\npicture     %s\nnumbers     %s\ntime        %.1f s\n",
             (out / "ablation.html").c_str(), (out / "ablation.svg").c_str(), (out / "ablation.json").c_str(),
             report.seconds);
  return 0;
}

std::string explanation_of_results() {
  return "Errors are standard errors of differences, paired over examples. zero: the head gives nothing; "
         "mean: its mean output; uniform: equal weights on all visible keys; identity: each query attends to "
         "its own position; band:w=3: its own weights within 3 positions, scaled to their former sum.\n";
}

}  // namespace

Command command::ablate() {
  return {
      .name = "ablate",
      .about = "measure what it costs to switch attention heads off",
      .positional = "RUN",
      .positional_help = "the folder of a run",
      .min_positional = 1,
      .max_positional = 1,
      .options = with_machine_options(with_decoding_options(
          {{"heads", "LIST",
            "heads or layers, such as encoder.0.3,cross.0 (default: all, and the pruning curve)"},
           {"by", "WHAT", "what replaces a head: zero, mean, uniform, identity, band:w=3 (default: zero)"},
           {"examples", "N", "the first test examples (default: 2000)"},
           {"outputs", "N", "translators: also translate the first N examples, for BLEU (default: 0)"},
           {"no-curve", "", "without the pruning curve"},
           {"gates", "", "train hard-concrete gates, too: which heads can be spared together"},
           {"gate-steps", "N", "batches of training data for gates (default: 400)"},
           {"gate-penalty", "X", "nats per target that an open gate costs (default: 0.02)"},
           {"batches", "FILE", "also write the examples as tensors (safetensors), for other programs"},
           {"max-tokens", "N", "longer inputs are cut to so many tokens; 0: none (default: 0)"},
           {"data", "PATH",
            "other data in place of the run's: all of a file is scored; with --gates, which need training "
            "data, it is split as heed train splits it"},
           {"test-path", "FILE", "means --data, as heed train calls the test text of a language model"},
           checkpoint_option,
           {"out", "FOLDER", "where the files go (default: RUN/ablate)"},
           {"json", "", "one JSON object in place of the table"}})),
      .run = run_ablate,
      .more = explanation_of_results};
}

}  // namespace heed
