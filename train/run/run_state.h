// The file state.json of a checkpoint: step, epoch, position in the data, best score. Weights and optimizer
// moments are files beside it (loop/checkpoint_manager.h).
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
  int64_t epoch = 0;             ///< epoch of the next batch
  int64_t position = 0;          ///< number of the next batch in its epoch
  int64_t tick = 0;              ///< tick of the random numbers, see Rng
  int64_t draws = 0;             ///< numbers drawn in this tick, see Rng
  int64_t validated = -1;        ///< the step of the last validation; -1: none yet
  int64_t best_step = 0;         ///< the step of `best`; 0: none yet
  int64_t without_better = 0;    ///< validations since best_step
  double seconds = 0;            ///< seconds of training, over all sessions
  double window_loss = 0;        ///< sum of losses since the last line of metrics
  int64_t window_steps = 0;      ///< number of losses in window_loss
  int64_t skipped = 0;           ///< steps skipped because their numbers were not finite
  int64_t skipped_in_a_row = 0;  ///< consecutive skipped steps before the next one
  std::optional<Scores> best{};  ///< scores of the best validation
};

/// Writes state.json: its text.
std::string to_json(const RunState& state);

/// Reads state.json. Checksums prove that the bytes are those that were written, not that the numbers are
/// legal: every number is checked against its range and the others. `step` is the checkpoint's,
/// `batches_a_step` is train.grad_accumulation. Fault::data that names key, value and range.
RunState read_run_state(const Json& json, int64_t step, int64_t batches_a_step);

}  // namespace heed
