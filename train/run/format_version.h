// Format versions of checkpoints and run folders, and the error for a newer one.
#pragma once

#include <cstdint>

#include "heed/core/error.h"
#include "heed/core/io/json.h"

namespace heed {

/// The format of a checkpoint: "format" in its MANIFEST.json. Raise it when older programs would misread the
/// files, and document here how each older format is read.
/// 1: heed 0.1, and files that name no format.
inline constexpr int64_t checkpoint_format = 1;

/// The format of a run folder: "format" in its manifest.json; it covers config.toml too.
/// 1: heed 0.1, whose files name no format; machine and program are those of the last session
/// (sessions_of()). 2: "sessions" lists machine and program of every session. 3: settings (in config.toml and
/// in "settings" of manifest.json) and series of metrics.jsonl have their present names; "anchors" are
/// "baselines". train/run/renamed_settings.cpp has the table of older names.
inline constexpr int64_t run_format = 3;

/// An intact file that a newer heed wrote and this program cannot read.
class NewerFormat : public Error {
 public:
  /// `message` names the file, its format, and the newest one that this program reads.
  explicit NewerFormat(const std::string& message) : Error(Fault::data, message) {}
};

/// The value of "format" in an object; 1 where there is none. Throws NewerFormat above `newest` with the text
/// "was written by a newer heed (0.9.0, format 3; this program reads up to 2)", and Fault::data for an
/// illegal value.
int64_t format_of(const Json& object, int64_t newest);

}  // namespace heed
