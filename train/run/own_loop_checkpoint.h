// save_checkpoint() and load_checkpoint() for a training loop of your own: model, optimizer, data and random
// numbers in one call. The program's own trainer uses loop/checkpoint_manager.h instead.
#pragma once

#include <cstdint>
#include <string_view>

#include "heed/data/batching/data_loader.h"
#include "heed/train/optim/optimizer.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// The state that a training loop resumes from. A null pointer says that the loop has no such part.
struct TrainingState {
  Module& model;                   ///< model, whose weights and buffers are saved
  Optimizer* optimizer = nullptr;  ///< optimizer, whose moments and step count are saved
  DataLoader* loader = nullptr;    ///< loader of the training data, whose position is saved
  Rng* rng = nullptr;              ///< random number generator, whose tick and draws are saved
  int64_t step = 0;                ///< steps taken
};

/// Writes the checkpoint FOLDER/ckpt/step_000400, all of it or nothing, and removes all but the newest `keep`
/// checkpoints. The folder is made where it is missing. Fault::file where writing fails; older checkpoints
/// are then unchanged.
void save_checkpoint(const Path& folder, const TrainingState& state, int64_t keep = 2);

/// Restores all parts of `state` from a checkpoint of save_checkpoint(), so that the resumed loop is
/// bit-identical to an uninterrupted one. Returns false, and changes nothing, when the folder has no
/// checkpoint. `which`: last, or a number of steps. Fault::data where the checkpoint is damaged, of another
/// model or loader, or lacks a part.
bool load_checkpoint(const Path& folder, TrainingState& state, std::string_view which = "last");

}  // namespace heed
