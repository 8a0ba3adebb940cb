// Trains the runs of a comparison one after the other, each in its own process.
#include "heed/train/experiments/comparison_plan.h"

#include <algorithm>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/layered_spec.h"
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

constexpr size_t max_label = 60;  // bytes of a label in a run's name
// Seconds between two readings of a run's metrics, which are thousands of lines, and between two calls of
// ComparisonOptions::progressed.
constexpr double progress_interval = 1, callback_interval = 10;

bool has_scores(const Path& run) { return io::exists(run / "scores.json"); }

/// The seconds of scoring the test that the manifest of a run predicts; 0: it predicts none.
double expected_test_seconds(const Path& run) {
  const std::optional<Json> manifest = RunFolder::elsewhere(run).read_manifest();
  const Json* estimate = manifest ? manifest->find("estimate") : nullptr;
  const Json* seconds = estimate != nullptr ? estimate->find("seconds_of_test") : nullptr;
  return seconds != nullptr && seconds->is_number() ? seconds->real() : 0;
}

/// Shows the progress of a run by its metrics. The last step is shown only if the run `has_ended`, since its
/// validation scores are logged after its loss. `seconds_each` (0: unknown) is the time of each of the
/// `num_left` runs that follow. Returns false if the last step is taken and the test is being scored.
bool show_steps(Progress& progress, const Path& run, double seconds_each, int64_t num_left, bool has_ended) {
  Progress::Now now{.total = total_steps(run)};
  double seconds = 0;
  for (const MetricSeries& series : read_metrics(run / "metrics.jsonl")) {
    if (series.values.empty()) continue;
    const double last = series.values.back();
    if (series.name == "loss") {
      now.loss = last;
      now.step = series.steps.back();
    }
    if (series.name == "learning_rate") now.rate = last;
    if (series.name == "gradient_norm") now.norm = last;
    if (series.name.starts_with("valid_")) now.take_score(series.steps.back(), series.name.substr(6), last);
    if (series.name == "tokens_per_second") now.tokens_per_second = last;
    if (series.name == "examples_per_second") now.examples_per_second = last;
    if (series.name == "seconds") seconds = last;
  }
  const auto logged_steps = static_cast<double>(now.step);
  now.step = std::max(now.step, now.validated);
  if (logged_steps > 0 && now.step >= now.total && !has_ended) return false;
  if (logged_steps == 0) return true;
  const double seconds_of_steps = seconds / logged_steps * static_cast<double>(now.total);
  const double seconds_of_test = expected_test_seconds(run);
  if (!(seconds_each > 0)) seconds_each = seconds_of_steps + seconds_of_test;
  now.seconds_left = seconds_of_steps - seconds + (has_ended ? 0 : seconds_of_test) +
                     seconds_each * static_cast<double>(num_left);
  progress.step(now);
  return true;
}

/// Shows how much of the expected time of scoring the test, which began at the second `began`, has passed.
void show_test(Progress& progress, const Path& run, double began) {
  const double expected = expected_test_seconds(run), spent = seconds_now() - began;
  const bool is_known = expected > spent;  // else the test takes longer than expected, and its end is unknown
  progress.work({.label = "test",
                 .share = is_known ? spent / expected : -1,
                 .seconds_left = expected - spent,
                 .began = began});
}

/// The test scores of a run in one line.
std::string scores_text(const ComparedRun& run) {
  return picture::joined(run.scores, "  ", [](const auto& score) {
    return text(score_name(score.first), " ", to_string(spread_of({score.second})));
  });
}

}  // namespace

std::vector<std::string> split_specs(const std::string& list) {
  std::vector<std::string> specs = split_spec_list(list);
  for (std::string& spec : specs) {
    const bool is_grouped = spec.size() > 2 && spec.front() == '(' && spec.back() == ')';
    if (!is_grouped && spec.find_first_of("()*") != spec.npos)
      fail("--attention ", shown(list), ": '", shown(spec),
           "' is not one attention. Put one whose layers differ in parentheses: '(gla*3,softmax),linear'.");
    if (is_grouped) spec = spec.substr(1, spec.size() - 2);
  }
  return specs;
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

bool has_begun(const PlannedRun& plan, const Path& folder) {
  return io::exists(folder_of(plan, folder) / "config.toml");
}

bool is_trained(const PlannedRun& plan, const Path& folder) { return has_scores(folder_of(plan, folder)); }

Path write_plan(const PlannedRun& plan, const Path& folder) {
  const Path file = folder / "plans" / (plan.name + ".toml");
  io::make_directories(file.parent_path());
  io::write_own(file, plan.plan);
  return file;
}

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

/// Trains runs one after the other, and shows their progress.
class Trainings {
 public:
  Trainings(const std::vector<PlannedRun>& plans, const ComparisonOptions& options)
      : plans_(plans), options_(options) {
    progress_.quiet = options.quiet;
    io::make_directories(options.folder / "runs");
    num_left_ = std::ranges::count_if(
        plans, [&](const PlannedRun& plan) { return !is_trained(plan, options.folder); });
  }

  /// Returns the scores of a run, which is trained first if it has none, or why it failed.
  ComparedRun make(size_t index) {
    const PlannedRun& plan = plans_[index];
    const Path run = folder_of(plan, options_.folder);
    const std::string title = text(index + 1, " of ", plans_.size(), ": ", plan.label, ", seed ", plan.seed);
    if (has_scores(run)) {
      progress_.say("run", title + ": trained already");
      return read_compared(run, plan.label);
    }
    if (!plan.from.empty() && !has_scores(run.parent_path() / plan.from))
      return failed(plan, text("the run whose weights it begins from, ", plan.from, ", has no scores"),
                    Fault::file);
    stop_if_asked(options_.budget);
    const ChildEnd end = train(plan, run, title);
    if (end.code == 0) {
      ComparedRun scored = read_compared(run, plan.label);
      progress_.say("test", scores_text(scored));
      return scored;
    }
    if (end.stop_requested) {
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

  /// The command line that begins a run, or resumes it.
  std::vector<std::string> command_of(const PlannedRun& plan, const Path& run) const {
    std::vector<std::string> words;
    if (has_begun(plan, options_.folder)) {
      words = {"resume", run.string()};
    } else {
      const Path settings = write_plan(plan, options_.folder);
      words = {"train", settings.string()};
      if (!plan.from.empty()) words = {"train", "--from", (run.parent_path() / plan.from).string()};
      for (const std::string& change : plan.changes) words.insert(words.end(), {"--set", change});
      words.insert(words.end(), {"--out", run.parent_path().string(), "--name", plan.name});
    }
    words.emplace_back("--quiet");
    words.insert(words.end(), options_.machine.begin(), options_.machine.end());
    return words;
  }

  /// Trains a run in a subprocess and shows its progress until it ends.
  ChildEnd train(const PlannedRun& plan, const Path& run, const std::string& title) {
    progress_.say("run", title + (has_begun(plan, options_.folder) ? ": resumed" : ""));
    --num_left_;
    const std::vector<std::string> command = command_of(plan, run);
    const double began = seconds_now();
    const double seconds_each = num_trained_ > 0 ? trained_seconds_ / static_cast<double>(num_trained_) : 0;
    double shown_at = began, called_at = began, test_began = 0;
    const auto report = [&] {
      const double now = seconds_now();
      if (!progress_.quiet && now - shown_at >= progress_interval) {
        if (test_began == 0 && !show_steps(progress_, run, seconds_each, num_left_, /*has_ended=*/false))
          test_began = now;
        if (test_began > 0) show_test(progress_, run, test_began);
        shown_at = now;
      }
      if (now - called_at >= callback_interval) {
        options_.progressed(plan);
        called_at = now;
      }
    };
    const ChildEnd end = run_child(command, report, [&] { return options_.budget.spent(); });
    progress_.erase();
    if (!progress_.quiet) show_steps(progress_, run, seconds_each, num_left_, /*has_ended=*/true);
    progress_.finish();
    if (end.code == 0) {
      trained_seconds_ += seconds_now() - began;
      ++num_trained_;
    }
    return end;
  }

  const std::vector<PlannedRun>& plans_;
  const ComparisonOptions& options_;
  Progress progress_;
  double trained_seconds_ = 0;  // seconds of the num_trained_ runs
  int64_t num_trained_ = 0, num_left_ = 0;
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
