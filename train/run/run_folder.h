// The folder of a run: its name, its files, who may write in it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/json.h"
#include "train/lock.h"
#include "train/metrics_log.h"

namespace heed {

/// How a new run is to be called.
struct RunOptions {
  Path out = "runs";         ///< the folder of all runs
  std::string name = {};     ///< as the user wants it; numbered after `base` when empty
  std::string base = "run";  ///< translate gives translate-001, translate-002, ...
  std::string command = {};  ///< the command line, told to those who find the run busy
  std::string config = {};   ///< config.toml, there from the moment that the folder is
};

/// A run's folder and the names in it. One that was created or resumed holds the run's lock.
class RunFolder {
 public:
  /// Makes a new folder and locks it before anybody can see it, so of several that start at once with one
  /// name exactly one gets it. A usage Error when the name is taken or is no plain name, Fault::busy when its
  /// run is running.
  static RunFolder create(const RunOptions& options);
  /// Locks a run that is there and removes what a killed process left half-written in it. Fault::file when it
  /// is no run's folder or has links among its files, Fault::busy when somebody holds it.
  static RunFolder resume(const Path& run, std::string_view command);
  /// A run of which only the name is used: by processes that train it together with the one that holds it,
  /// perhaps on machines that do not have the folder.
  static RunFolder elsewhere(const Path& run) { return RunFolder(run); }
  /// A run to be looked at only, without its lock. NewerFormat where a newer heed wrote it (train/format.h).
  static RunFolder look(const Path& run);

  const Path& path() const { return path_; }
  Path config() const { return path_ / "config.toml"; }
  Path manifest() const { return path_ / "manifest.json"; }
  Path metrics() const { return path_ / "metrics.jsonl"; }
  Path metrics_table() const { return path_ / "metrics.csv"; }
  Path tensorboard() const { return path_ / "tb"; }
  Path report() const { return path_ / "report.html"; }
  Path samples() const { return path_ / "samples.txt"; }
  Path checkpoints() const { return path_ / "ckpt"; }

  /// Whether there is a checkpoint or a line of metrics; either may come before the other.
  bool begun() const;
  MetricsLog metrics_log() const { return MetricsLog(metrics(), tensorboard()); }
  /// What manifest.json says; none where there is none yet. Fault::data where it is no object of JSON,
  /// NewerFormat where a newer heed wrote it.
  std::optional<Json> read_manifest() const;
  /// Writes manifest.json: one object, indented.
  void write_manifest(const Json& facts) const;

 private:
  explicit RunFolder(Path path) : path_(std::move(path)) {}

  Path path_;
  std::optional<RunLock> lock_;
};

/// What every manifest begins with: version, source, compiler, CPU, its threads, OPENBLAS_CORETYPE, start
/// time, command line. The caller adds BLAS core, seed, threads and data hashes.
Json manifest_basics(std::span<const std::string> arguments);

}  // namespace heed
