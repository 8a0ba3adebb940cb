// Checkpoints on disk: folders of files, written atomically and verified when read, whatever the files hold.
// Which files, and when: loop/checkpoint_manager.h decides it for the trainer, run/own_loop_checkpoint.h for
// a training loop of your own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// A file to write into a checkpoint.
struct NamedBytes {
  std::string name;   ///< letters, digits, '.', '_' and '-'; no folder
  std::string bytes;  ///< the whole file
};

/// A checkpoint whose checksums were verified.
struct Checkpoint {
  Path folder;                               ///< ckpt/step-N of the run
  int64_t step = 0;                          ///< N: steps taken
  std::map<std::string, std::string> files;  ///< bytes of each file that is held in memory, by name

  /// The path of a file, such as one that is not held in memory.
  Path path(std::string_view name) const { return folder / name; }
  /// The bytes of a file in memory. Fault::data that names the folder when there is no such file.
  const std::string& file(std::string_view name) const;
};

/// Writes RUN/ckpt/step_000400 with these files and a MANIFEST.json of their sizes and checksums (CRC-32C and
/// SHA-256), and returns its path. Replaces a checkpoint of the same step. The folder is written under a
/// temporary name, synced and renamed: a crash leaves all of it or nothing. Fault::file when writing fails;
/// older checkpoints are then unchanged.
Path write_checkpoint(const Path& run, int64_t step, const std::vector<NamedBytes>& files);

/// Which files of a checkpoint are held in memory: all, or all but those of tensors, whose names end in
/// ".safetensors". load() reads the weights from their path, one tensor after the other.
enum class HeldFiles { all, all_but_tensors };

/// Reads and verifies a checkpoint, all of its files: `which` is "last", "best" or a number of steps.
/// Fault::data when it is missing or damaged, or of a newer format (train/run/format_version.h): the error
/// names file, tensor and bytes, and the newest intact checkpoint with the command that uses it.
Checkpoint open_checkpoint(const Path& run, std::string_view which = "last", HeldFiles held = HeldFiles::all);

/// The steps of a run's checkpoints in ascending order. Does not verify them.
std::vector<int64_t> list_checkpoints(const Path& run);

/// The folder of a step's checkpoint: RUN/ckpt/step_000400.
Path checkpoint_folder(const Path& run, int64_t step);

/// Removes all checkpoints but the newest `keep_last` and that of step `best`.
void prune_checkpoints(const Path& run, int64_t keep_last, std::optional<int64_t> best);

/// Removes the checkpoints after a step. The newest is removed first: after a crash in between, no older one
/// is missing.
void drop_checkpoints_after(const Path& run, int64_t step);

/// Records the step of the best checkpoint, atomically.
void mark_best(const Path& run, int64_t step);

/// The step that mark_best() recorded; none when there is no record. Fault::data, with advice, where the
/// record is damaged.
std::optional<int64_t> best_step(const Path& run);

/// Removes the temporary files and folders of a killed run. Only the holder of the run's lock may call it.
void clean_checkpoints(const Path& run);

}  // namespace heed
