// state.json of a checkpoint: where a run stands, besides its weights and moments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/json.h"
#include "train/task.h"

namespace heed {

/// The numbers with which a run goes on as if it had not stopped.
struct RunState {
  int64_t step = 0;
  int64_t epoch = 0, position = 0;  ///< behind the batches of the last step
  int64_t tick = 0, draws = 0;      ///< of the random numbers
  int64_t validated = -1;           ///< the step of the last validation; -1: none yet
  int64_t best_step = 0;            ///< the step of `best`; 0: none yet
  int64_t without_better = 0;       ///< validations since then
  double seconds = 0;               ///< of training, over all sessions
  double window_loss = 0;           ///< summed since the last line of metrics
  int64_t window_steps = 0;         ///< that it is a sum of
  int64_t skipped = 0;              ///< steps left out because their numbers were not finite
  int64_t skipped_in_a_row = 0;     ///< of them, the last ones
  std::optional<Scores> best{};     ///< of the best validation
};

/// The text of state.json.
std::string to_json(const RunState& state);

/// Reads it. Check sums say that the bytes are those that were written, not that a run can stand there: every
/// number is held to its range and to the others. `step` is that of the checkpoint, `batches_a_step` is
/// train.accumulate. Fault::data naming key, value and range.
RunState read_run_state(const Json& json, int64_t step, int64_t batches_a_step);

}  // namespace heed
