// The weights of another run that a run begins from, stored in its folder.
#pragma once

#include <optional>

#include "heed/core/io/json.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// RUN/initial: the weights and tokenizers that the run begins from, so that it can be begun again without
/// the run that they come from.
Path initial_folder(const Path& run);

/// Stores the weights and tokenizers of a checkpoint of `origin`, the folder of another run, in a new run,
/// and records them in its manifest.
void write_initial(const Path& run, const Checkpoint& from, const Path& origin);

/// The checkpoint that write_initial() stored; none where the run begins from random weights. Fault::data
/// where it is damaged.
std::optional<Checkpoint> read_initial(const Path& run);

/// The key of origin_metadata() in the manifest.
inline constexpr const char* origin_key = "from";

/// Where the weights come from, for the manifest: run, step and SHA-256.
Json origin_metadata(const Checkpoint& initial);

}  // namespace heed
