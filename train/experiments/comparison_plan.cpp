// Trains the runs of a comparison one after the other, each in its own process.
#include "heed/train/experiments/comparison_plan.h"

#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/train/experiments/subprocess.h"
#include "heed/train/loop/progress.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// A label as part of a file name.
std::string plain(const std::string& label) {
  std::string out;
  for (const char c : label) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (kept)
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  return out.substr(0, 60);
}

bool finished(const Path& run) { return io::exists(run / "scores.json"); }

/// The total steps of a run; 0: not known yet.
int64_t steps_of_run(const Path& run) {
  const std::optional<Json> manifest = RunFolder::elsewhere(run).read_manifest();
  return manifest ? manifest->at("steps").integer() : 0;
}

/// Shows a run's progress from its metrics. Shows its last step only once it has `ended`: that step's
/// validation scores come after its loss.
void show(Progress& progress, const Path& run, double done_seconds, int64_t left, bool ended) {
  Progress::Now now{.total = steps_of_run(run)};
  double seconds = 0;
  for (const MetricSeries& one : read_metrics(run / "metrics.jsonl")) {
    if (one.values.empty()) continue;
    const double last = one.values.back();
    if (one.name == "loss") {
      now.loss = last;
      now.step = one.steps.back();
    }
    if (one.name == "learning_rate") now.rate = last;
    if (one.name == "gradient_norm") now.norm = last;
    if (one.name.starts_with("valid_")) now.take_score(one.steps.back(), one.name.substr(6), last);
    if (one.name == "tokens_per_second") now.tokens_per_second = last;
    if (one.name == "seconds") seconds = last;
  }
  const auto logged = static_cast<double>(now.step);
  now.step = std::max(now.step, now.validated);
  if (logged == 0 || (now.step >= now.total && !ended)) return;
  const double whole = seconds / logged * static_cast<double>(now.total);
  const double each = done_seconds > 0 ? done_seconds : whole;
  now.seconds_left = whole - seconds + each * static_cast<double>(left);
  progress.step(now);
}

std::string scores_text(const ComparedRun& run) {
  std::string out;
  for (const auto& [name, value] : run.scores)
    out += text(out.empty() ? "" : "  ", score_name(name), " ", to_string(spread_of({value})));
  return out;
}

}  // namespace

std::vector<std::string> split_specs(const std::string& list) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string piece = list.substr(at, end - at);
    const size_t equals = piece.find('='), colon = piece.find(':');
    const bool option = equals != std::string::npos && (colon == std::string::npos || equals < colon);
    if (option && !out.empty())
      out.back() += "," + piece;
    else
      out.push_back(piece);
    at = end + 1;
  }
  return out;
}

bool is_trained(const PlannedRun& plan, const Path& folder) { return finished(folder / "runs" / plan.name); }

PlannedRun plan_run(Config config, const std::string& label) {
  PlannedRun out{.label = label, .seed = config.train.seed, .name = "", .plan = to_toml(config)};
  std::string settings = config.task_name + "\n";
  for (const OptionText& option : options_of(config)) settings += option.name + "=" + option.value + "\n";
  out.name = text(plain(label), "-seed", out.seed, "-", sha256_hex(settings).substr(0, 10));
  return out;
}

std::vector<ComparedRun> make_runs(const std::vector<PlannedRun>& plans, const ComparisonOptions& options) {
  const StopSignals signals;
  Progress progress;
  progress.quiet = options.quiet;
  const Path runs = options.folder / "runs", texts = options.folder / "plans";
  io::make_directories(runs);
  io::make_directories(texts);
  std::vector<ComparedRun> out;
  double done_seconds = 0;
  int64_t done = 0, number = 0;
  auto left = std::count_if(plans.begin(), plans.end(),
                            [&](const PlannedRun& plan) { return !finished(runs / plan.name); });
  for (const PlannedRun& plan : plans) {
    const Path run = runs / plan.name;
    const std::string which = text(++number, " of ", plans.size(), ": ", plan.label, ", seed ", plan.seed);
    std::string failure;
    int code = 0;
    bool trained = false;  // by this call
    if (finished(run)) {
      progress.say("run", which + ", is there");
    } else {
      const bool begun = io::exists(run / "config.toml");
      progress.say("run", which + (begun ? ", goes on" : ""));
      --left;
      std::vector<std::string> arguments{"resume", run.string(), "--quiet"};
      if (!begun) {
        const Path file = texts / (plan.name + ".toml");
        io::write(file, plan.plan);
        arguments = {"train", file.string(), "--out", runs.string(), "--name", plan.name, "--quiet"};
      }
      arguments.insert(arguments.end(), options.machine.begin(), options.machine.end());
      const double began = seconds_now();
      const double each = done > 0 ? done_seconds / static_cast<double>(done) : 0;
      const ChildEnd end = run_child(arguments, [&] {
        if (!progress.quiet) show(progress, run, each, left, false);
      });
      if (!progress.quiet) show(progress, run, each, left, true);
      progress.finish();
      if (const int signal = StopSignals::received(); signal != 0) throw Stopped{signal};
      if (end.code == 0) {
        done_seconds += seconds_now() - began;
        ++done;
        trained = true;
      } else {
        failure = reason(end);
        code = static_cast<int>(fault_of(end));
        progress.say("", failure);
      }
    }
    if (failure.empty()) {
      out.push_back(read_compared(run, plan.label));
      if (trained) progress.say("test", scores_text(out.back()));
    } else {
      out.push_back({.label = plan.label, .folder = "", .failure = failure, .code = code, .seed = plan.seed});
    }
  }
  return out;
}

void write_comparison(const Comparison& comparison, const Path& folder) {
  io::make_directories(folder);
  io::write(folder / "compare.csv", comparison_csv(comparison));
  for (const auto& [name, chart] : comparison_charts(comparison))
    io::write(folder / (name + ".svg"), chart_svg(chart));
  if (const BubbleChart bubbles = comparison_bubbles(comparison); !bubbles.bubbles.empty())
    io::write(folder / "bubbles.svg", bubbles_svg(bubbles));
  io::write(folder / "compare.html", comparison_html(comparison));
}

}  // namespace heed
