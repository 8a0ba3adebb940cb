// The folder of a run: its name, its files and its lock.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "heed/core/io/json.h"
#include "heed/train/run/metrics_log.h"
#include "heed/train/run/run_lock.h"

namespace heed {

/// Settings of a new run's folder.
struct RunOptions {
  Path out = "runs";      ///< the folder of all runs
  std::string name = {};  ///< name that the user chose; empty: `base` and a number
  std::string base =
      "run";  ///< prefix of a numbered name: "translate" gives translate-001, translate-002, ...
  std::string command = {};  ///< the command line, shown when another process finds the run busy
  std::string config = {};   ///< text of config.toml, written before the folder becomes visible
  /// Writes the other files of the new run into `folder` before it gets its name. A run whose start is killed
  /// or fails has no name, so it is never taken for one that begins from random weights.
  std::function<void(const Path& folder)> write_contents = [](const Path&) {};
};

/// A run's folder and the paths in it. Those that create(), resume() and hold() give hold the run's lock.
class RunFolder {
 public:
  /// Makes a new folder and locks it before it gets its name: of several processes that start with one name,
  /// exactly one gets it. A usage error when the name is taken or illegal, Fault::busy when its run is
  /// running.
  static RunFolder create(const RunOptions& options);
  /// Locks an existing run and removes the half-written files of a killed process. Fault::file when the
  /// folder is no run or has links among its files, Fault::busy when another process holds the lock.
  static RunFolder resume(const Path& run, std::string_view command);
  /// Locks an existing run to rename or remove it; its files may be unreadable. Fault::file when the path
  /// itself is no folder of a run, even when it is a link to one; Fault::busy, with the holder, when the run
  /// is in use.
  static RunFolder hold(const Path& run, std::string_view command);
  /// Names a run without opening or locking it: the processes of a distributed run other than the first use
  /// it, perhaps on machines that do not have the folder.
  static RunFolder elsewhere(const Path& run) { return RunFolder(run); }
  /// No folder, for a run that writes nothing.
  static RunFolder none() { return RunFolder({}); }
  bool is_none() const { return path_.empty(); }  ///< true for none(): nothing is written
  /// Opens a run for reading, without its lock. Fault::file where there is no run; NewerFormat when a newer
  /// heed wrote it (train/run/format_version.h).
  static RunFolder look(const Path& run);

  /// Renames the folder within its parent folder, in one step. A usage error when the name is taken or
  /// illegal.
  void rename(const std::string& name);
  /// Removes the folder. Links in it are removed, but not their targets. A process that is killed meanwhile
  /// leaves no run.
  void remove() &&;

  const Path& path() const { return path_; }                 ///< the folder itself
  Path config() const { return path_ / "config.toml"; }      ///< every setting of the run, in TOML
  Path manifest() const { return path_ / "manifest.json"; }  ///< program, machine, data and results, in JSON
  Path metrics() const { return path_ / "metrics.jsonl"; }   ///< one JSON object a line
  /// The metrics as a table of comma-separated values, written with the report.
  Path metrics_table() const { return path_ / "metrics.csv"; }
  Path tensorboard() const { return path_ / "tb"; }       ///< folder of TensorBoard event files
  Path report() const { return path_ / "report.html"; }   ///< the page of a finished run
  Path samples() const { return path_ / "samples.txt"; }  ///< outputs on the test split
  Path checkpoints() const { return path_ / "ckpt"; }  ///< folder of checkpoints: ckpt/step-N and best.json

  /// Whether training has written a checkpoint or a line of metrics; either may come first.
  bool begun() const;
  /// Appends to metrics() and to tensorboard().
  MetricsLog metrics_log() const { return MetricsLog(metrics(), tensorboard()); }
  /// The object in manifest.json; none when there is no such file. Fault::data when it is no JSON object,
  /// NewerFormat when a newer heed wrote it.
  std::optional<Json> read_manifest() const;
  /// Writes manifest.json: one JSON object, indented.
  void write_manifest(const Json& metadata) const;
  /// Records `step` in the manifest as that of the run's first checkpoint, unless one is recorded already or
  /// there is no manifest.
  void note_checkpoint(int64_t step) const;

 private:
  explicit RunFolder(Path path) : path_(std::move(path)) {}

  Path path_;
  std::optional<RunLock> lock_;
};

/// The key of the manifest with the step of the run's first checkpoint; null until there is one. It tells a
/// run that has lost its checkpoints from one that was stopped before its first.
inline constexpr const char* first_checkpoint_key = "first_checkpoint";

/// The keys of a manifest that describe program and machine: version, source, compiler, CPU, its threads,
/// OPENBLAS_CORETYPE, start time, command line. The caller adds BLAS core, seed, threads and hashes of the
/// data.
Json manifest_basics(std::span<const std::string> arguments);

}  // namespace heed
