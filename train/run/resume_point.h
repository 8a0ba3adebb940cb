// Finds the checkpoint or the initial weights that a resumed run continues with.
#pragma once

#include <optional>
#include <string_view>

#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// The weights that a resumed run continues with. Both are empty where it was stopped before its first
/// checkpoint and began from weights drawn at random.
struct ResumePoint {
  std::optional<Checkpoint> from;     ///< a checkpoint of its own
  std::optional<Checkpoint> initial;  ///< the weights that it begins from, where it has no checkpoint yet
};

/// Opens the checkpoint that `which` names, as open_checkpoint() does, or else what the run begins from.
/// Fault::data where the run has had a checkpoint or began from weights, and they are not there any more: it
/// would begin again from random weights and overwrite its metrics.
ResumePoint resume_point(const RunFolder& run, std::string_view which = "last");

/// The value of first_checkpoint_key in the manifest of a session that begins after `step` steps; `before` is
/// the manifest until then.
Json first_checkpoint(const std::optional<Json>& before, int64_t step);

}  // namespace heed
