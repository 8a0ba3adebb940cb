// Trains the runs of a comparison one after the other, each in its own process.
#include "heed/train/experiments/comparison_plan.h"

#include <algorithm>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/ascii.h"
#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/config/config.h"
#include "heed/train/experiments/subprocess.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

constexpr size_t max_label = 60;  // letters of a run's name
// Metrics of a long run are thousands of lines: they are not read at each look at the subprocess.
constexpr double progress_interval = 1, callback_interval = 10;  // seconds

bool finished(const Path& run) { return io::exists(run / "scores.json"); }

/// Seconds that the manifest of a run expects after its last step, for scoring the test; 0: it has none.
double expected_test_seconds(const Path& run) {
  const std::optional<Json> manifest = RunFolder::elsewhere(run).read_manifest();
  const Json* estimate = manifest ? manifest->find("estimate") : nullptr;
  const Json* seconds = estimate != nullptr ? estimate->find("seconds_of_test") : nullptr;
  return seconds != nullptr && seconds->is_number() ? seconds->real() : 0;
}

/// Shows a run's progress from its metrics. Shows its last step only once it has `ended`: that step's
/// validation scores come after its loss. False: the last step is taken, and the test is being scored.
bool show(Progress& progress, const Path& run, double done_seconds, int64_t left, bool ended) {
  Progress::Now now{.total = total_steps(run)};
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
  if (logged > 0 && now.step >= now.total && !ended) return false;
  if (logged == 0) return true;
  const double all_steps = seconds / logged * static_cast<double>(now.total);
  const double test = expected_test_seconds(run);
  const double each = done_seconds > 0 ? done_seconds : all_steps + test;
  now.seconds_left = all_steps - seconds + (ended ? 0 : test) + each * static_cast<double>(left);
  progress.step(now);
  return true;
}

/// Shows the progress of scoring the test, which began at the second `began`: the share of its expected time
/// that has passed.
void show_test(Progress& progress, const Path& run, double began) {
  const double expected = expected_test_seconds(run), spent = seconds_now() - began;
  const bool known = expected > spent;  // an expectation that was too low tells nothing
  progress.work({.label = "test",
                 .share = known ? spent / expected : -1,
                 .seconds_left = expected - spent,
                 .began = began});
}

std::string scores_text(const ComparedRun& run) {
  return picture::joined(run.scores, "  ", [](const auto& score) {
    return text(score_name(score.first), " ", to_string(spread_of({score.second})));
  });
}

}  // namespace

std::vector<std::string> split_specs(const std::string& list) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string piece = list.substr(at, end - at);
    const size_t equals = piece.find('='), before = piece.find_first_of(":;");  // softmax;1=linear is a spec
    const bool option = equals != std::string::npos && (before == std::string::npos || equals < before);
    if (option && !out.empty())
      out.back() += "," + piece;
    else
      out.push_back(piece);
    at = end + 1;
  }
  return out;
}

std::string file_word(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (is_ascii_alphanumeric(c) || c == '_')
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  return out;
}

Path folder_of(const PlannedRun& plan, const Path& folder) { return folder / "runs" / plan.name; }

int64_t total_steps(const Path& run) {
  const std::optional<Json> manifest = RunFolder::elsewhere(run).read_manifest();
  const Json* steps = manifest ? manifest->find("steps") : nullptr;
  return steps != nullptr && steps->is_integer() ? steps->integer() : 0;
}

bool is_trained(const PlannedRun& plan, const Path& folder) { return finished(folder_of(plan, folder)); }

void stop_if_asked(const TimeBudget& budget) {
  if (const int signal = StopSignals::received(); signal != 0) throw Stopped{signal};
  if (budget.spent()) throw Stopped{};
}

std::string to_string(const Stopped& stopped) {
  return stopped.signal == 0 ? "the budget is spent, everything is saved" : "stopped, and saved";
}

int exit_code(const Stopped& stopped) { return stopped.signal == 0 ? 0 : 128 + stopped.signal; }

PlannedRun plan_run(Config config, const std::string& label, const PlannedRun* base,
                    std::vector<std::string> changes) {
  PlannedRun out{.label = label, .seed = config.train.seed, .name = "", .plan = to_toml(config)};
  if (base != nullptr) out.from = base->name;
  out.changes = std::move(changes);
  std::string settings = config.task_name + "\n" + (out.from.empty() ? "" : out.from + "\n");
  for (const OptionText& option : options_of(config)) settings += option.name + "=" + option.value + "\n";
  out.name =
      text(file_word(label).substr(0, max_label), "-seed", out.seed, "-", sha256_hex(settings).substr(0, 10));
  return out;
}

namespace {

/// Trains runs one after the other, and shows how far they are.
class Trainings {
 public:
  Trainings(const std::vector<PlannedRun>& plans, const ComparisonOptions& options)
      : plans_(plans), options_(options) {
    progress_.quiet = options.quiet;
    io::make_directories(options.folder / "runs");
    io::make_directories(options.folder / "plans");
    left_ = std::count_if(plans.begin(), plans.end(),
                          [&](const PlannedRun& plan) { return !is_trained(plan, options.folder); });
  }

  /// The scores of run number `index`, trained first where it has none; else why it failed.
  ComparedRun make(size_t index) {
    const PlannedRun& plan = plans_[index];
    const Path run = folder_of(plan, options_.folder);
    const std::string which = text(index + 1, " of ", plans_.size(), ": ", plan.label, ", seed ", plan.seed);
    if (finished(run)) {
      progress_.say("run", which + ": trained already");
      return read_compared(run, plan.label);
    }
    if (!plan.from.empty() && !finished(run.parent_path() / plan.from))
      return failed(plan, text("the run whose weights it begins from, ", plan.from, ", has no scores"),
                    Fault::file);
    stop_if_asked(options_.budget);
    const ChildEnd end = train(plan, run, which);
    if (end.code == 0) {
      ComparedRun out = read_compared(run, plan.label);
      progress_.say("test", scores_text(out));
      return out;
    }
    if (end.asked) {
      options_.progressed(plan);
      throw Stopped{StopSignals::received()};
    }
    return failed(plan, reason(end), fault_of(end));
  }

 private:
  ComparedRun failed(const PlannedRun& plan, const std::string& why, Fault fault) {
    progress_.say("", why);
    return {.label = plan.label,
            .folder = "",
            .failure = why,
            .code = static_cast<int>(fault),
            .seed = plan.seed};
  }

  ChildEnd train(const PlannedRun& plan, const Path& run, const std::string& which) {
    const bool begun = io::exists(run / "config.toml");
    progress_.say("run", which + (begun ? ": resumed" : ""));
    --left_;
    std::vector<std::string> arguments{"resume", run.string(), "--quiet"};
    if (!begun) {
      const Path file = options_.folder / "plans" / (plan.name + ".toml");
      io::write_own(file, plan.plan);
      arguments = {"train", file.string()};
      if (!plan.from.empty()) {
        arguments = {"train", "--from", (run.parent_path() / plan.from).string()};
        for (const std::string& change : plan.changes) arguments.insert(arguments.end(), {"--set", change});
      }
      arguments.insert(arguments.end(),
                       {"--out", run.parent_path().string(), "--name", plan.name, "--quiet"});
    }
    arguments.insert(arguments.end(), options_.machine.begin(), options_.machine.end());
    const double began = seconds_now();
    const double each = done_ > 0 ? done_seconds_ / static_cast<double>(done_) : 0;
    double shown_at = began, called_at = began, test_began = 0;
    const ChildEnd end = run_child(
        arguments,
        [&] {
          const double now = seconds_now();
          if (!progress_.quiet && now - shown_at >= progress_interval) {
            if (test_began > 0 || !show(progress_, run, each, left_, false)) {
              if (test_began == 0) test_began = now;
              show_test(progress_, run, test_began);
            }
            shown_at = now;
          }
          if (now - called_at >= callback_interval) {
            options_.progressed(plan);
            called_at = now;
          }
        },
        [&] { return options_.budget.spent(); });
    progress_.erase();
    if (!progress_.quiet) show(progress_, run, each, left_, true);
    progress_.finish();
    if (end.code == 0) {
      done_seconds_ += seconds_now() - began;
      ++done_;
    }
    return end;
  }

  const std::vector<PlannedRun>& plans_;
  const ComparisonOptions& options_;
  Progress progress_;
  double done_seconds_ = 0;
  int64_t done_ = 0, left_ = 0;
};

}  // namespace

std::vector<ComparedRun> make_runs(const std::vector<PlannedRun>& plans, const ComparisonOptions& options) {
  const StopSignals signals;
  Trainings trainings(plans, options);
  std::vector<ComparedRun> out;
  for (size_t i = 0; i < plans.size(); ++i) {
    out.push_back(trainings.make(i));
    options.ended(plans[i], out.back());
  }
  return out;
}

void write_comparison(const Comparison& comparison, const Path& folder) {
  io::make_directories(folder);
  io::write_own(folder / "compare.csv", comparison_csv(comparison));
  for (const auto& [name, chart] : comparison_charts(comparison))
    io::write_own(folder / (name + ".svg"), chart_svg(chart));
  if (const BubbleChart bubbles = comparison_bubbles(comparison); !bubbles.bubbles.empty())
    io::write_own(folder / "bubbles.svg", bubbles_svg(bubbles));
  io::write_own(folder / "compare.html", comparison_html(comparison));
}

}  // namespace heed
