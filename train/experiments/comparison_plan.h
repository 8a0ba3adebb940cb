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
  std::string from{};                  ///< name of the run whose weights it begins from; empty: none
  std::vector<std::string> changes{};  ///< settings that differ from those of the run `from`, as KEY=VALUE
};

/// Splits "fastmax:p=1,softmax" into two specs: a comma starts a new one unless key=value follows.
std::vector<std::string> split_specs(const std::string& list);

/// A text as part of a file's name: letters, digits, '_' and '-'.
std::string file_word(const std::string& words);

/// The folder of a run within that of its comparison.
Path folder_of(const PlannedRun& plan, const Path& folder);
/// The steps that the run in a folder will take in all; 0: not known yet.
int64_t total_steps(const Path& run);
/// True if the folder of a comparison holds this run's scores.
bool is_trained(const PlannedRun& plan, const Path& folder);

/// The planned run of a config. Two plans have the same name exactly when all settings are equal. With `base`
/// it begins from the trained weights of that run, whose settings it has but for `changes` ("KEY=VALUE"); its
/// name depends on that run's, too.
PlannedRun plan_run(Config config, const std::string& label, const PlannedRun* base = nullptr,
                    std::vector<std::string> changes = {});

/// How to make the runs of a comparison.
struct ComparisonOptions {
  Path folder;                         ///< folder of the comparison: holds runs/, plans/ and results
  std::vector<std::string> machine{};  ///< machine options passed on to each run: --threads 2
  bool quiet = false;                  ///< runs print nothing
  TimeBudget budget{};                 ///< time budget of all runs together
  /// Called about every ten seconds while a run trains, and when it was stopped.
  std::function<void(const PlannedRun&)> progressed = [](const PlannedRun&) {};
  /// Called when a run has its scores or has failed, also for one that an earlier call has made.
  std::function<void(const PlannedRun&, const ComparedRun&)> ended = [](const PlannedRun&,
                                                                        const ComparedRun&) {};
};

/// Builds models of planned runs with their own settings, on the data they will read: what would stop a
/// training at its start is known before others have trained.
class ModelCheck {
 public:
  /// Fails as a training of this run would. Reads the data only where those of the plan before are others.
  void operator()(const PlannedRun& plan);

 private:
  Config loaded_;     // its task has the data
  std::string data_;  // the settings that they depend on
};

/// Checks one planned run of each label that has not begun, unless it is the only one. Its error names the
/// label. Throws Stopped on a stop signal.
void check_models(const std::vector<PlannedRun>& plans, const ComparisonOptions& options);

/// Builds the models of these plans, with progress, unless there is one alone; `failed` is called with the
/// place of each that cannot be built. It ends when half of the budget is spent, so that the trainings, which
/// find the other faults, have the rest. Throws Stopped on a stop signal.
void build_models(const std::vector<const PlannedRun*>& plans, const ComparisonOptions& options,
                  Progress& progress, const std::function<void(size_t, const Error&)>& failed);

/// Trains the missing runs, each in its own process, resumes interrupted ones, and reads all. Never trains a
/// scored run again. A failed run has a reason instead of scores, and so has one whose base has none. Throws
/// Stopped on a stop signal and when the budget is spent; what was trained is kept.
std::vector<ComparedRun> make_runs(const std::vector<PlannedRun>& plans, const ComparisonOptions& options);

/// Thrown when a signal or the budget ended the work; everything is saved.
struct Stopped {
  int signal = 0;  ///< its number; 0: the budget was spent
};
/// Throws Stopped if a stop signal has come or the budget is spent.
void stop_if_asked(const TimeBudget& budget);
/// What a program says that was stopped: "stopped, and saved" or that the budget is spent.
std::string to_string(const Stopped& stopped);
/// Its exit code: 128 + the signal; 0 where the budget was spent, which was asked for.
int exit_code(const Stopped& stopped);

/// Writes compare.html, compare.csv and the charts as SVG.
void write_comparison(const Comparison& comparison, const Path& folder);

}  // namespace heed
