// The file state.json of a checkpoint: step, epoch, position in the data, best score. The checkpoint has
// other files for weights and optimizer moments (loop/checkpoint_manager.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "heed/core/io/json.h"
#include "heed/train/metrics/scores.h"

namespace heed {

/// The numbers that make a resumed run bit-identical to an uninterrupted one.
struct RunState {
  int64_t step = 0;              ///< steps taken
  int64_t epoch = 0;             ///< epoch of the next batch, from 0
  int64_t position = 0;          ///< number of the next batch in its epoch, from 0
  int64_t tick = 0;              ///< tick of the random numbers, see Rng
  int64_t draws = 0;             ///< random numbers drawn in this tick, see Rng
  int64_t validated = -1;        ///< step of the last validation; -1: none yet
  int64_t best_step = 0;         ///< step of the best validation; 0: none yet
  int64_t without_better = 0;    ///< number of validations since best_step
  double seconds = 0;            ///< seconds of training, over all sessions
  double window_loss = 0;        ///< sum of the losses since the last line of metrics
  int64_t window_steps = 0;      ///< number of losses in window_loss
  int64_t skipped = 0;           ///< number of steps skipped because loss or gradient was not finite
  int64_t skipped_in_a_row = 0;  ///< number of consecutive skipped steps up to the last step
  std::optional<Scores> best{};  ///< scores of the best validation
};

/// The text of state.json.
std::string to_json(const RunState& state);

/// Reads state.json of a checkpoint of `step`; `batches_per_step` is train.grad_accumulation. Every number is
/// checked against its range and the other numbers, since the checksums of a checkpoint do not prove that its
/// numbers are legal. Fault::data that names key, value and range.
RunState read_run_state(const Json& json, int64_t step, int64_t batches_per_step);

}  // namespace heed
