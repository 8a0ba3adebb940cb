// Finds the checkpoint, or the weights of another run, that a resumed run continues with.
#pragma once

#include <optional>
#include <string_view>

#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// The weights that a resumed run continues with. Both are empty where it was stopped before its first
/// checkpoint and began from weights drawn at random.
struct ResumePoint {
  std::optional<Checkpoint> checkpoint;        ///< the run's own checkpoint
  std::optional<Checkpoint> weights_from_run;  ///< weights of another run, where it has no checkpoint yet
};

/// Opens the checkpoint that `which` names, as open_checkpoint() does, or else the weights of another run
/// that the run begins from. Fault::data where it has had either and has lost it: it would begin again from
/// random weights and overwrite its metrics.
ResumePoint resume_point(const RunFolder& run, std::string_view which = "last");

/// The value of first_checkpoint_key in the manifest of a session that begins after `step` steps;
/// `old_manifest` is the manifest until then.
Json first_checkpoint(const std::optional<Json>& old_manifest, int64_t step);

}  // namespace heed
