// save_checkpoint() and load_checkpoint() for a training loop of your own: model, optimizer, data and random
// numbers in one call. The program's own trainer uses loop/checkpoint_manager.h instead.
#pragma once

#include <cstdint>
#include <string_view>

#include "heed/data/batching/data_loader.h"
#include "heed/train/optim/optimizer.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// The state that a training loop resumes from. Leave null what yours does not have.
struct TrainingState {
  Module& model;                   ///< weights and buffers
  Optimizer* optimizer = nullptr;  ///< its moments and step count
  DataLoader* loader = nullptr;    ///< its position
  Rng* rng = nullptr;              ///< its tick and draws
  int64_t step = 0;                ///< steps taken
};

/// Writes FOLDER/ckpt/step_000400, whole or not at all, and removes all but the newest `keep`. The folder is
/// made where it is missing. Fault::file where it cannot be written; older checkpoints are then unchanged.
void save_checkpoint(const Path& folder, const TrainingState& state, int64_t keep = 2);

/// Restores all parts of `state` from what save_checkpoint() wrote, so that the resumed loop is bit-identical
/// to an uninterrupted one; false, and nothing is changed, when the folder has no checkpoint. `which`: last,
/// or a number of steps. Fault::data where the checkpoint is damaged, of another model or loader, or lacks a
/// part.
bool load_checkpoint(const Path& folder, TrainingState& state, std::string_view which = "last");

}  // namespace heed
