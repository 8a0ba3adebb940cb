// A comparison that trains: which runs it needs, and which of them are there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/comparison.h"
#include "train/config.h"

namespace heed {

/// One run that a comparison needs.
struct PlannedRun {
  std::string label;
  int64_t seed = 0;
  std::string name;  ///< of its folder: label, seed, and a hash of every setting
  std::string plan;  ///< config.toml, as text
};

/// "fastmax:p=1,softmax" as two specs: a comma begins a new one unless key=value follows it.
std::vector<std::string> split_specs(const std::string& list);

/// Whether the folder of a comparison holds the scores of this run.
bool is_trained(const PlannedRun& plan, const Path& folder);

/// A run of this config. Two plans have one name exactly when every setting is the same.
PlannedRun plan_run(Config config, const std::string& label);

/// How the runs of a comparison are made.
struct ComparisonOptions {
  Path folder;                         ///< of the comparison: runs/, plans/ and what it says
  std::vector<std::string> machine{};  ///< options of the machine, handed to each run: --threads 2
  bool quiet = false;
};

/// Trains what is not there yet, each in a process of its own, goes on with what was stopped, and reads all.
/// What has been scored is never trained again. A run that fails has a reason in place of scores. Throws
/// Stopped when a signal asked for it; what was trained is kept.
std::vector<ComparedRun> make_runs(const std::vector<PlannedRun>& plans, const ComparisonOptions& options);

/// A signal ended the work; everything was saved.
struct Stopped {
  int signal;
};

/// Writes compare.html, compare.csv and the pictures as SVG.
void write_comparison(const Comparison& comparison, const Path& folder);

}  // namespace heed
