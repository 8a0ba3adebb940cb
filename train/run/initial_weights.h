// The weights of another run that a run begins from, kept in its folder.
#pragma once

#include <optional>

#include "heed/core/io/json.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// RUN/initial: the weights and tokenizers that the run begins from, so that it can be begun again without
/// the run that they come from.
Path initial_folder(const Path& run);

/// Keeps the weights and tokenizers of a checkpoint of `origin`, the folder of another run, and says so in
/// the manifest of the run, which is new.
void write_initial(const Path& run, const Checkpoint& from, const Path& origin);

/// What write_initial() kept; none where the run begins from weights drawn at random. Fault::data where it is
/// damaged.
std::optional<Checkpoint> read_initial(const Path& run);

/// The key of the manifest under which origin_facts() stand.
inline constexpr const char* origin_key = "from";

/// Where the weights come from, for the manifest: run, step and SHA-256.
Json origin_facts(const Checkpoint& initial);

}  // namespace heed
