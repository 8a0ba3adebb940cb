// heed train: trains a new run; with --find-lr, searches for its learning rate.
#include <algorithm>
#include <cmath>

#include "heed/core/distributed/mpi.h"
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/temporary_folder.h"
#include "heed/core/io/terminal.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/config/debug_runs.h"
#include "heed/train/loop/learning_rate_finder.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/progress/progress.h"
#include "heed/train/report/chart.h"
#include "heed/train/run/weights_from_run.h"
#include "heed/train/session/distributed_session.h"
#include "heed/train/session/dry_run.h"
#include "heed/train/session/run_session.h"

namespace heed {
namespace {

/// The settings of a trained run, for a run that begins from its weights.
Config config_of_run(const Path& run) {
  if (!io::exists(run / "config.toml")) {
    fail(Fault::file, "train: --from ", shown(run.string()),
         " is no run: it has no config.toml. Give the folder of a run; the language of sources is "
         "--data.from.");
  }
  const RunFolder folder = RunFolder::look(run);
  Config config = read_config(io::read(folder.config()), folder.config().string());
  config.train.pretrain = Pretrain::none;  // its weights are trained already
  config.train.pretrain_steps = 0;
  return config;
}

/// The settings of the new run: of a preset, a file or another run, and then of the options.
Config config_of(const ParsedArguments& arguments) {
  Config config = arguments.has("from") ? config_of_run(arguments.get("from"))
                                        : make_config(named_preset(arguments, "translate"));
  apply_settings(config, arguments);
  if (arguments.has("from") && config.train.pretrain != Pretrain::none)
    fail("train: --from gives the weights that training begins from, and so would --pretrain. Take one out.");
  if (arguments.has("fast-dev-run")) fast_dev_run(config);
  if (arguments.has("overfit")) overfit(config, arguments.integer("overfit", 0));
  config.check();
  return config;
}

/// Fails for options that cannot be combined, where one would be ignored without notice.
void check_modes(const ParsedArguments& arguments) {
  if (arguments.has("json") && !arguments.has("dry-run")) fail("train: --json is for --dry-run.");
  for (const auto& [one, other] : {std::pair{"fast-dev-run", "overfit"},
                                   {"find-lr", "fast-dev-run"},
                                   {"find-lr", "overfit"},
                                   {"find-lr", "trace"},
                                   {"dry-run", "trace"},
                                   {"find-lr", "from"},
                                   {"recipe", "from"},
                                   {"find-lr", "dry-run"}}) {
    if (arguments.has(one) && arguments.has(other))
      fail("train: --", one, " and --", other, " do not go together. Take one of them out.");
  }
  if (arguments.has("from") && !arguments.positional.empty()) {
    fail("train: --from takes the settings of its run, and '", shown(arguments.positional[0]),
         "' names others. Take one of them out; single settings are options.");
  }
  if (arguments.has("from-checkpoint") && !arguments.has("from"))
    fail("train: --from-checkpoint is for --from.");
  if (!arguments.has("find-lr")) {
    for (const char* option : {"find-lr-from", "find-lr-to", "find-lr-steps"}) {
      if (arguments.has(option)) fail("train: --", option, " is for --find-lr.");
    }
    return;
  }
  for (const char* option : {"name", "lr", "learning-rate", "steps", "max-steps", "epochs"}) {
    if (arguments.has(option))
      fail("train: --find-lr makes no run, tries rates of its own and takes --find-lr-steps steps. Take --",
           option, " out.");
  }
}

/// Fails where several processes were started for a mode that is the work of one.
void refuse_several_processes(const std::string& option) {
  const auto started = launch_info();
  if (!started) return;
  fail("train: ", option, " is the work of one process, but ", started->by, " started ", started->size,
       ". Start it without ", started->by, ".");
}

std::string two_digits(double value) { return formatted("%.2g", value); }

std::string curve_csv(const LearningRateCurve& curve) {
  std::string out = "step,learning_rate,loss,smoothed_loss\n";
  for (size_t i = 0; i < curve.rates.size(); ++i) {
    out += text(i + 1, ",", exact_number(curve.rates[i]), ",", exact_number(curve.losses[i]), ",",
                i < curve.smoothed.size() ? exact_number(curve.smoothed[i]) : "", "\n");
  }
  return out;
}

/// The largest loss in the picture of the curve, half of the fall of the loss above its start: without a
/// limit, a loss that diverges would flatten the rest of the curve.
double max_shown_loss(const LearningRateCurve& curve) {
  double start = 0;
  for (size_t i = 0; i <= curve.lowest; ++i) start = std::max(start, curve.smoothed[i]);
  return start + std::max(0.5 * (start - curve.smoothed[curve.lowest]), 1e-3 * std::abs(start));
}

/// Replaces values above `max_value` by NaN, which charts leave out.
std::vector<double> without_larger(double max_value, std::vector<double> values) {
  for (double& value : values) {
    if (value > max_value) value = NAN;
  }
  return values;
}

/// The chart of the smoothed loss over the learning rate; `with_losses`: of the losses of single steps too.
Chart curve_chart_of(const LearningRateCurve& curve, bool with_losses) {
  Chart chart{.title = "Loss over learning rate", .series = {}, .x_label = "learning rate"};
  chart.logarithmic_x = true;
  if (curve.steepest) chart.mark = *curve.suggestion();
  std::vector<double> rates(curve.rates.begin(),
                            curve.rates.begin() + static_cast<int64_t>(curve.smoothed.size()));
  const double max_loss = max_shown_loss(curve);
  if (with_losses) chart.series.push_back({"loss", curve.rates, without_larger(max_loss, curve.losses)});
  chart.series.push_back({"smoothed", std::move(rates), without_larger(max_loss, curve.smoothed)});
  return chart;
}

/// Prints the lowest loss and the suggested rate. Fails where the loss is never finite.
void print_suggestion(const Config& config, const LearningRateCurve& curve) {
  if (curve.smoothed.empty()) {
    fail(Fault::numeric, "find-lr: the loss is not finite at the first rate, ", curve.rates.front(),
         ". Look for the reason with --detect-anomaly true, without --find-lr.");
  }
  const std::string end = curve.diverged ? text("it diverged at ", two_digits(curve.rates.back()))
                                         : text("it did not diverge up to ", two_digits(curve.rates.back()));
  io::printf("\nlowest loss %s at rate %s; %s\n", two_digits(curve.smoothed[curve.lowest]).c_str(),
             two_digits(curve.rates[curve.lowest]).c_str(), end.c_str());
  if (!curve.steepest) {
    io::print(
        "no suggestion: the loss never fell. Give a wider range with --find-lr-from and --find-lr-to, or "
        "more --find-lr-steps.\n");
    return;
  }
  const double rate = *curve.suggestion();
  io::printf(
      "suggestion  --lr %s: at rate %s the smoothed loss falls fastest, and training is still stable\n",
      two_digits(learning_rate_for_peak(config, rate)).c_str(), two_digits(rate).c_str());
  if (config.train.schedule.kind == ScheduleKind::noam)
    io::print("            (with schedule = noam, train.learning_rate is a factor: its peak is that rate)\n");
}

/// Tests a range of learning rates, prints the curve with the rate it suggests, and writes find_lr.csv and
/// find_lr.svg into --out (default: the present folder).
int find_lr(Config& config, const ParsedArguments& arguments) {
  refuse_several_processes("--find-lr");
  if (config.train.pretrain != Pretrain::none)
    fail("train: --find-lr tests the training from fresh weights, and train.pretrain gives others. Add ",
         "--pretrain none --pretrain-steps 0.");
  LearningRateRange range;
  range.from = arguments.number("find-lr-from", range.from);
  range.to = arguments.number("find-lr-to", range.to);
  range.steps = arguments.integer("find-lr-steps", range.steps);
  apply_machine(arguments);
  cap_to_free_memory({.device_given = arguments.has("memory")});
  Progress progress;
  progress.quiet = arguments.has("quiet");
  config.task->load(config, {}, [](const std::string&) {});
  const double began = seconds_now();
  const LearningRateCurve curve =
      find_learning_rate(config, range, [&](int64_t step, double rate, double loss) {
        const double took = seconds_now() - began;
        progress.step(
            {.step = step,
             .total = range.steps,
             .loss = loss,
             .rate = rate,
             .seconds_left = took / static_cast<double>(step) * static_cast<double>(range.steps - step)});
      });
  progress.finish();
  const Path out = arguments.get("out", ".");
  io::make_directories(out);
  io::write(out / "find_lr.csv", curve_csv(curve));
  if (!curve.smoothed.empty()) {
    constexpr int64_t max_columns = 100, rows = 14;
    io::write(out / "find_lr.svg", chart_svg(curve_chart_of(curve, /*with_losses=*/true)));
    io::print(chart_text(curve_chart_of(curve, /*with_losses=*/false),
                         std::min(output_columns(), max_columns), rows));
  }
  print_suggestion(config, curve);
  io::printf("curve       %s, %s\n", (out / "find_lr.svg").c_str(), (out / "find_lr.csv").c_str());
  return 0;
}

/// Creates the file of --trace before there is a run, and fails where it cannot be written.
void prepare_trace(const Path& file) {
  refuse_several_processes("--trace");
  if (!file.parent_path().empty()) io::make_directories(file.parent_path());
  io::write(file, "");
}

/// Prints the settings and the estimate of the run, for --dry-run.
int print_plan(Config config, const ParsedArguments& arguments) {
  refuse_several_processes("--dry-run");
  apply_machine(arguments);
  if (arguments.has("json")) {
    print_estimate_json(config, arguments);
    return 0;
  }
  io::print_data(to_toml(config));
  print_estimate(config, arguments);
  return 0;
}

/// The name of a run without --name, before its number.
std::string base_name(const ParsedArguments& arguments) {
  if (arguments.has("from")) {
    const Path run = Path(arguments.get("from") + "/").lexically_normal().parent_path().filename();
    return run.empty() || run == "." || run == ".." ? "run" : run.string();
  }
  const std::string what = named_preset(arguments, "translate");
  return what.ends_with(".toml") ? Path(what).stem().string() : what;
}

/// The checkpoint of the run of --from that --from-checkpoint names; without that the best one.
Checkpoint open_from_checkpoint(const ParsedArguments& arguments) {
  const Path run = arguments.get("from");
  if (arguments.has("from-checkpoint")) return open_checkpoint(run, arguments.get("from-checkpoint"));
  return open_checkpoint(run, best_step(run) ? "best" : "last");
}

int run_train(const ParsedArguments& arguments) {
  check_modes(arguments);
  Config config = config_of(arguments);
  if (arguments.has("dry-run")) return print_plan(std::move(config), arguments);
  if (arguments.has("find-lr")) return find_lr(config, arguments);
  if (arguments.has("trace")) prepare_trace(arguments.get("trace"));
  std::optional<io::TemporaryFolder> temporary;  // the folder of a run that is removed at its end
  const std::string base = base_name(arguments);
  std::optional<Checkpoint> weights;  // weights of the run of --from
  if (arguments.has("from")) weights = open_from_checkpoint(arguments);
  Path run;  // the folder that this process has made
  const auto open = [&](int64_t processes) {
    if (!weights) widen_batch(config, processes);  // the settings of a run have the batch of all processes
    rounding_of(config.train.precision);  // fails, before there is a folder, where the device lacks it
    if (leaves_nothing(arguments)) temporary.emplace("fast-dev-run");
    RunFolder folder =
        RunFolder::create({.out = temporary ? temporary->path() : Path(arguments.get("out", "runs")),
                           .name = arguments.get("name"),
                           .base = base,
                           .command = arguments.command_line(),
                           .config = to_toml(config),
                           .write_contents = [&](const Path& new_run) {
                             if (weights) write_weights_from_run(new_run, *weights, arguments.get("from"));
                           }});
    run = folder.path();
    if (weights) weights = read_weights_from_run(run);
    return Opening{
        .config = std::move(config), .folder = std::move(folder), .weights_from_run = std::move(weights)};
  };
  return train_as_started(arguments, open, [&] {
    // A run that failed before its first checkpoint leaves no folder.
    if (!run.empty() && !RunFolder::elsewhere(run).begun() && !pretraining_begun(run)) io::remove_all(run);
  });
}

}  // namespace

Command command::train() {
  return {
      .name = "train",
      .about = "train a model: a preset, or a .toml file of settings (default: translate)",
      .positional = "PRESET|FILE",
      .positional_help = "a preset (heed list presets), or a .toml file of settings",
      .max_positional = 1,
      .options = with_machine_options(
          {recipe_option,
           {"from", "RUN",
            "settings and weights of a trained run in place of a preset: fine-tuning, with other settings "
            "and another --attention where given"},
           {"from-checkpoint", "WHICH",
            "checkpoint of the run of --from: best, last or a step (default: best)"},
           {"name", "NAME", "name of the run; numbered when not given"},
           {"out", "FOLDER", "folder of all runs (default: runs)"},
           {"dry-run", "", "print the settings and what the run would take, and stop"},
           {"json", "", "with --dry-run: only what it would take, as one JSON object"},
           {"fast-dev-run", "",
            "two steps of everything on few data, validation, test and report included, to see that it "
            "works; leaves nothing, unless --out or --name is given"},
           {"overfit", "N",
            "train on the same N batches again and again, without dropout and label smoothing, and say "
            "whether the model has learned them"},
           {"trace", "FILE",
            "write a timeline of steps 2 to 4 into this file: modules, ops, gradients, threads and memory, "
            "for chrome://tracing or Perfetto"},
           {"find-lr", "",
            "train nothing: test a range of learning rates on a few steps, show the loss over the rate and "
            "suggest one; writes find_lr.csv and find_lr.svg into --out (default: the present folder)"},
           {"find-lr-from", "RATE", "with --find-lr: rate of the first step (default: 1e-7)"},
           {"find-lr-to", "RATE", "with --find-lr: rate of the last step (default: 1)"},
           {"find-lr-steps", "N", "with --find-lr: number of steps (default: 100)"},
           collective_timeout_option,
           quiet_option}),
      .settings = true,
      .run = run_train,
      .several_processes = true};
}

}  // namespace heed
