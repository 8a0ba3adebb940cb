// Plans and trains the runs of a comparison.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/train/config/config.h"
#include "heed/train/experiments/comparison.h"
#include "heed/train/experiments/time_budget.h"
#include "heed/train/progress/progress.h"

namespace heed {

/// One run of a comparison.
struct PlannedRun {
  std::string label;                   ///< label of its row in the table
  int64_t seed = 0;                    ///< train.seed of the run
  std::string name;                    ///< folder name: label, seed and a hash of all settings
  std::string plan;                    ///< text of config.toml
  std::string from{};                  ///< name of the run whose trained weights it begins from; empty: none
  std::vector<std::string> changes{};  ///< settings that differ from those of the run `from`, as KEY=VALUE
  GridPoint point{};                   ///< its settings of the grid; empty: no grid
};

/// The run in messages: "softmax, lr=0.001, seed 2".
std::string title_of(const PlannedRun& plan);

/// Splits "fastmax:p=1,softmax" into two specs, as split_spec_list() does. One whose layers take turns is in
/// parentheses, "(gla*3,softmax),linear", which are taken off; fails where they are missing.
std::vector<std::string> split_specs(const std::string& list);

/// Words as part of a file's name: runs of characters other than letters, digits and '_' become one '-'.
std::string file_word(const std::string& words);

/// The folder of a run within the folder of its comparison.
Path folder_of(const PlannedRun& plan, const Path& folder);
/// The number of steps of the run in a folder from its beginning to its end; 0: not known yet.
int64_t total_steps(const Path& run);
/// True if the folder of a comparison holds this run, trained or not.
bool has_begun(const PlannedRun& plan, const Path& folder);
/// True if the folder of a comparison holds this run's scores.
bool is_trained(const PlannedRun& plan, const Path& folder);
/// Writes the settings of a run into the folder plans/ of its comparison; returns the file.
Path write_plan(const PlannedRun& plan, const Path& folder);

/// Plans a run. Two plans have the same name exactly when all their settings are equal. With `base` the run
/// begins from the trained weights of that run; `changes` ("KEY=VALUE") are the settings that differ from its
/// settings, and the name depends on its name, too.
PlannedRun plan_run(Config config, const std::string& label, const PlannedRun* base = nullptr,
                    std::vector<std::string> changes = {});

/// How to make the runs of a comparison.
struct ComparisonOptions {
  Path folder;                         ///< folder of the comparison: holds runs/, plans/ and results
  std::vector<std::string> machine{};  ///< machine options passed on to each run: --threads 2
  bool quiet = false;                  ///< runs print nothing
  TimeBudget budget{};                 ///< time budget of all runs together
  int64_t jobs = 1;  ///< runs trained at once at most; 0: as many as threads and memory allow
  /// Called about every ten seconds while a run trains, and when it was stopped.
  std::function<void(const PlannedRun&)> progressed = [](const PlannedRun&) {};
  /// Called when a run has its scores or has failed, also for a run that an earlier call has trained.
  std::function<void(const PlannedRun&, const ComparedRun&)> ended = [](const PlannedRun&,
                                                                        const ComparedRun&) {};
};

/// Builds the models of planned runs on the data they will read: errors that would stop a training at its
/// start are found before other runs train.
class ModelCheck {
 public:
  /// Fails as a training of this run would. Reads the data unless the plan before had the same data.
  void operator()(const PlannedRun& plan);

 private:
  Config loaded_;              // its task has the data
  std::string data_settings_;  // settings that the data depends on; empty: no data is read
};

/// Builds the model of one planned run of each label, of the runs that have not begun. An error names the
/// label. Throws Stopped on a stop signal.
void check_models(const std::vector<PlannedRun>& plans, const ComparisonOptions& options);

/// Builds the models of these plans and shows progress; does nothing for a single plan. Calls `failed` with
/// the index of each plan whose model cannot be built. Ends when half of the budget is spent: trainings,
/// which find the remaining faults, have the rest. Throws Stopped on a stop signal.
void build_models(const std::vector<const PlannedRun*>& plans, const ComparisonOptions& options,
                  Progress& progress, const std::function<void(size_t, const Error&)>& failed);

/// Trains the runs without scores, each in its own process, up to options.jobs at once, resumes interrupted
/// ones, and reads the scores of all. A failed run has a reason instead of scores, and so has a run that
/// begins from one without scores; other runs go on. Throws Stopped on a stop signal and when the budget is
/// spent, once all runs have stopped; trained steps are kept.
std::vector<ComparedRun> make_runs(const std::vector<PlannedRun>& plans, const ComparisonOptions& options);

/// Thrown when a signal or the budget ended the trainings; everything is saved.
struct Stopped {
  int signal = 0;  ///< number of the signal; 0: the budget was spent
};
/// Throws Stopped if a stop signal has come or the budget is spent.
void stop_if_asked(const TimeBudget& budget);
/// The message of a stop: "stopped, and saved", or that the budget is spent.
std::string to_string(const Stopped& stopped);
/// The exit code of a stop: 128 + the signal; 0 for a spent budget, which was asked for.
int exit_code(const Stopped& stopped);

/// Writes compare.html, compare.csv, compare.md, compare.tex and the charts as SVG.
void write_comparison(const Comparison& comparison, const Path& folder);

}  // namespace heed
