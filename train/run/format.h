// Formats of what a run leaves behind: which a program reads, and what it says of one that is newer.
#pragma once

#include <cstdint>

#include "core/error.h"
#include "core/json.h"

namespace heed {

/// The format of a checkpoint, "format" in its MANIFEST.json. It grows when older programs would misread the
/// files; whoever raises it says here how those of each older format are read.
/// 1: heed 0.1, and whatever names no format.
inline constexpr int64_t checkpoint_format = 1;

/// The format of a run folder, "format" in its manifest.json, which speaks for config.toml too.
/// 1: heed 0.1, which names none: machine and program are those of the last session alone (sessions_of()).
/// 2: "sessions" lists them all.
inline constexpr int64_t run_format = 2;

/// Something that a newer heed wrote: it is whole, and not for this program.
class NewerFormat : public Error {
 public:
  explicit NewerFormat(const std::string& what) : Error(Fault::data, what) {}
};

/// The format that an object of ours names, 1 where it names none. NewerFormat above `newest`, whose text is
/// "was written by a newer heed (0.9.0, format 3; this program reads up to 2)"; Fault::data for what is no
/// format.
int64_t format_of(const Json& object, int64_t newest);

}  // namespace heed
