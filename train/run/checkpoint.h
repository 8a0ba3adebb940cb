// Checkpoints: folders of files that are written as a whole, verified when read, and never half there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace heed {

/// A file to be written into a checkpoint.
struct NamedBytes {
  std::string name;  ///< letters, digits, '.', '_' and '-'; no folder
  std::string bytes;
};

/// A checkpoint in memory, its check sums verified.
struct Checkpoint {
  Path folder;
  int64_t step = 0;
  std::map<std::string, std::string> files;

  /// The bytes of a file; Fault::data that names the folder when it has none of this name.
  const std::string& file(std::string_view name) const;
};

/// Writes RUN/ckpt/step_000400 with these files and a MANIFEST.json of their sizes and check sums (CRC-32C
/// and SHA-256). It is made under a temporary name in the same folder, synced, and renamed as a whole, so
/// that whatever stops the program leaves either all of it or none. One of the same step is replaced. Returns
/// the folder. Fault::file when the disk refuses; then the older checkpoints are as they were.
Path write_checkpoint(const Path& run, int64_t step, const std::vector<NamedBytes>& files);

/// Reads and verifies a checkpoint: `which` is "last", "best" or a number of steps. Fault::data when there is
/// none or when it is damaged: the Error names file, tensor and bytes, and the newest intact checkpoint with
/// the command that uses it. One of a newer format (train/format.h) is said to be that.
Checkpoint open_checkpoint(const Path& run, std::string_view which = "last");

/// The steps of the checkpoints of a run, rising. Not verified.
std::vector<int64_t> list_checkpoints(const Path& run);

/// RUN/ckpt/step_000400.
Path checkpoint_folder(const Path& run, int64_t step);

/// Removes all but the newest `keep_last` checkpoints, and keeps `best` too.
void prune_checkpoints(const Path& run, int64_t keep_last, std::optional<int64_t> best);

/// Removes the checkpoints after a step, the newest first: a kill in between leaves a run whose last one is
/// whole.
void drop_checkpoints_after(const Path& run, int64_t step);

/// Records which step is the best so far, atomically.
void mark_best(const Path& run, int64_t step);

/// The step recorded last; none when there is no record or it cannot be read.
std::optional<int64_t> best_step(const Path& run);

/// Removes what a killed run left half-written. To be called by the holder of the run's lock only.
void clean_checkpoints(const Path& run);

}  // namespace heed
