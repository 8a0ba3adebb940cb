// Trains the runs of a comparison, each in its own process, one after the other or several at once.
#include <algorithm>
#include <csignal>
#include <list>
#include <optional>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/experiments/parallel_jobs.h"
#include "heed/train/experiments/run_progress.h"
#include "heed/train/experiments/subprocess.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

// Seconds between two readings of a run's metrics, which are thousands of lines, and between two calls of
// ComparisonOptions::progressed.
constexpr double progress_interval = 1, callback_interval = 10;
constexpr int wait_milliseconds = 200;  // between two looks at all runs

/// The test scores of a run in one line.
std::string scores_text(const ComparedRun& run) {
  return picture::joined(run.scores, "  ", [](const auto& score) {
    return text(score_name(score.first), " ", to_string(spread_of({score.second})));
  });
}

/// A training in its process.
struct RunningTraining {
  size_t index;  // number of its plan in the list
  ChildProcess process;
  double began = seconds_now(), called_at = seconds_now();
  double test_began = 0;   // 0: all steps are not taken yet
  RunProgress progress{};  // as it was read last

  RunningTraining(size_t index_of_plan, const std::vector<std::string>& command)
      : index(index_of_plan), process(command) {}

  void read(const Path& run) {
    progress = read_progress(run, /*has_ended=*/false);
    if (progress.is_testing && test_began == 0) test_began = seconds_now();
  }
};

/// Trains runs and shows their progress.
class Trainings {
 public:
  Trainings(const std::vector<PlannedRun>& plans, const ComparisonOptions& options)
      : plans_(plans), options_(options), ended_(plans.size()) {
    progress_.quiet = options.quiet;
    io::make_directories(options.folder / "runs");
    std::vector<const PlannedRun*> left;
    for (const PlannedRun& plan : plans) {
      if (!is_trained(plan, options.folder)) left.push_back(&plan);
    }
    num_left_ = static_cast<int64_t>(left.size());
    jobs_ = options.jobs == 1 || left.empty() ? 1 : num_jobs(left, options, progress_);
    machine_ = machine_options_of_job(options.machine, jobs_);
  }

  /// Returns the scores of all runs, in the order of the plans, or why they failed.
  std::vector<ComparedRun> make() {
    for (;;) {
      for (size_t i = 0; i < plans_.size() && !must_stop_; ++i) {
        if (!ended_[i] && !is_running(i)) begin(i);
      }
      if (running_.empty()) break;
      look_at_all();
    }
    if (must_stop_) throw Stopped{StopSignals::received()};
    std::vector<ComparedRun> out;
    for (std::optional<ComparedRun>& run : ended_) out.push_back(std::move(*run));
    return out;
  }

 private:
  bool is_running(size_t index) const {
    return std::ranges::count(running_, index, &RunningTraining::index) > 0;
  }

  /// True if a run of this name has not ended, but those from `index` on do not count where they wait.
  bool is_awaited(const std::string& name, size_t index) const {
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (plans_[i].name == name && !ended_[i] && (is_running(i) || i < index)) return true;
    }
    return false;
  }

  std::string title_of(size_t index) const {
    return text(index + 1, " of ", plans_.size(), ": ", heed::title_of(plans_[index]));
  }

  /// Takes the scores of a run that has some, or begins its training where that is possible now.
  void begin(size_t index) {
    const PlannedRun& plan = plans_[index];
    const Path run = folder_of(plan, options_.folder);
    // Two plans may be of one run, and a run may begin from the weights of another.
    if (is_awaited(plan.name, index) || is_awaited(plan.from, index)) return;
    if (is_trained(plan, options_.folder)) {
      progress_.say("run", title_of(index) + ": trained already");
      return end(index, read_compared(run, plan.label));
    }
    if (!plan.from.empty() && !io::exists(run.parent_path() / plan.from / "scores.json"))
      return fail_run(index, text("the run whose weights it begins from, ", plan.from, ", has no scores"),
                      Fault::file);
    if (static_cast<int64_t>(running_.size()) == jobs_) return;
    must_stop_ = stop_signal(options_.budget.spent()) != 0;
    if (must_stop_) return;
    progress_.say("run", title_of(index) + (has_begun(plan, options_.folder) ? ": resumed" : ""));
    --num_left_;
    running_.emplace_back(index, command_of(plan, run));
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
    words.insert(words.end(), machine_.begin(), machine_.end());
    return words;
  }

  /// Waits a moment; ends the runs whose processes have ended, and shows the progress of the others.
  void look_at_all() {
    const int milliseconds = std::max(wait_milliseconds / static_cast<int>(running_.size()), 1);
    const int signal = stop_signal(options_.budget.spent());
    const bool must_save = SaveSignal::take();
    for (auto training = running_.begin(); training != running_.end();) {
      if (must_save) training->process.send(SIGUSR1);
      if (signal != 0) training->process.ask_to_stop(signal);
      if (training->process.read(milliseconds)) {
        ++training;
        continue;
      }
      take_end(*training);
      training = running_.erase(training);
    }
    const double now = seconds_now();
    for (RunningTraining& training : running_) {
      if (now - training.called_at < callback_interval) continue;
      options_.progressed(plans_[training.index]);
      training.called_at = now;
    }
    if (!progress_.quiet && now - shown_at_ >= progress_interval && !running_.empty()) show();
  }

  /// Shows the steps of all running trainings: of one as `heed train` does, of several a line each.
  void show() {
    shown_at_ = seconds_now();
    for (RunningTraining& training : running_)
      training.read(folder_of(plans_[training.index], options_.folder));
    if (jobs_ == 1) return show_alone(running_.front());
    std::vector<std::string> lines;
    for (const RunningTraining& training : running_) {
      const PlannedRun& plan = plans_[training.index];
      const std::string name = text(training.index + 1, "/", plans_.size(), " ", heed::title_of(plan));
      lines.push_back(run_line(name, training.progress, training.test_began, progress_.columns()));
    }
    progress_.together(lines);
  }

  /// Shows a training as the only one that runs; the time left is that of all.
  void show_alone(const RunningTraining& training) {
    const RunProgress& run = training.progress;
    if (run.is_testing) return progress_.work(test_progress(run, training.test_began));
    if (run.steps.step > 0) progress_.step(with_time_of_others(run));
  }

  Progress::Now with_time_of_others(const RunProgress& run) const {
    Progress::Now now = run.steps;
    const double seconds_each =
        num_trained_ > 0 ? trained_seconds_ / static_cast<double>(num_trained_) : run.seconds;
    now.seconds_left += seconds_each * static_cast<double>(num_left_);
    return now;
  }

  /// Takes the scores of a training whose process has ended, or why it has none.
  void take_end(RunningTraining& training) {
    const size_t index = training.index;
    const PlannedRun& plan = plans_[index];
    const Path run = folder_of(plan, options_.folder);
    const ChildEnd ended = training.process.end();
    progress_.erase();
    if (jobs_ == 1 && !progress_.quiet) {
      const RunProgress last = read_progress(run, /*has_ended=*/true);
      if (last.steps.step > 0) progress_.step(with_time_of_others(last));
      progress_.finish();
    }
    if (ended.code == 0) {
      trained_seconds_ += seconds_now() - training.began;
      ++num_trained_;
      ComparedRun scored = read_compared(run, plan.label);
      progress_.say("test", (jobs_ > 1 ? title_of(index) + ": " : "") + scores_text(scored));
      return end(index, std::move(scored));
    }
    if (!ended.stop_requested) return fail_run(index, reason(ended), fault_of(ended));
    must_stop_ = true;
    options_.progressed(plan);
  }

  void fail_run(size_t index, const std::string& why, Fault fault) {
    const PlannedRun& plan = plans_[index];
    progress_.say(jobs_ > 1 ? "failed" : "", (jobs_ > 1 ? title_of(index) + ": " : "") + why);
    end(index, {.label = plan.label,
                .folder = "",
                .failure = why,
                .code = static_cast<int>(fault),
                .seed = plan.seed});
  }

  void end(size_t index, ComparedRun run) {
    run.point = plans_[index].point;
    ended_[index] = std::move(run);
    options_.ended(plans_[index], *ended_[index]);
  }

  const std::vector<PlannedRun>& plans_;
  const ComparisonOptions& options_;
  Progress progress_;
  std::vector<std::optional<ComparedRun>> ended_;  // by plan; without a value: it has not ended
  std::list<RunningTraining> running_;
  std::vector<std::string> machine_;  // machine options of each run
  int64_t jobs_ = 1;                  // runs at once at most
  bool must_stop_ = false;            // whether no further run begins
  double shown_at_ = seconds_now();
  double trained_seconds_ = 0;  // seconds of the num_trained_ runs
  int64_t num_trained_ = 0, num_left_ = 0;
};

}  // namespace

std::vector<ComparedRun> make_runs(const std::vector<PlannedRun>& plans, const ComparisonOptions& options) {
  const StopSignals signals;
  return Trainings(plans, options).make();
}

}  // namespace heed
