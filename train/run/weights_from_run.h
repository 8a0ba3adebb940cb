// The weights of another run that a run begins from (heed train --from), stored in its folder.
#pragma once

#include <optional>

#include "heed/core/io/json.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// RUN/initial: the folder of the weights and tokenizers that the run begins from. With them it can be begun
/// again without the other run.
Path weights_from_run_folder(const Path& run);

/// Stores the weights and tokenizers of `checkpoint`, which is of the run in the folder `origin`, in a new
/// run, and records them in its manifest.
void write_weights_from_run(const Path& run, const Checkpoint& checkpoint, const Path& origin);

/// The checkpoint that write_weights_from_run() stored; none where the run begins from random weights.
/// Fault::data where it is damaged.
std::optional<Checkpoint> read_weights_from_run(const Path& run);

/// The key of origin_metadata() in the manifest.
inline constexpr const char* origin_key = "from";

/// The origin of stored weights, for the manifest: run, step and SHA-256.
Json origin_metadata(const Checkpoint& weights_from_run);

}  // namespace heed
