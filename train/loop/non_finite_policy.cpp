// Skips steps whose loss or gradient is not finite, up to train.skip_limit in a row; else stops the run.
#include "heed/train/loop/non_finite_policy.h"

#include <cmath>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/settings_in_errors.h"
#include "heed/train/config/setting_name.h"
#include "heed/train/loop/find_non_finite.h"

namespace heed {

NonFinitePolicy::NonFinitePolicy(const TrainOptions& options, Module& model, const Optimizer& optimizer,
                                 ProcessGroup& group, RunState& state, StepLog& log, Progress& progress,
                                 const CheckpointManager& checkpoints)
    : options_(options),
      model_(model),
      optimizer_(optimizer),
      group_(group),
      state_(state),
      log_(log),
      progress_(progress),
      checkpoints_(checkpoints) {}

void NonFinitePolicy::keep_buffers() {
  if (options_.on_nan != OnNan::skip) return;
  const std::vector<Named> all = buffers(model_);
  saved_.resize(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    SavedBuffer& saved = saved_[i];
    saved.buffer = all[i].tensor;
    saved.before = *saved.buffer;
    // The copy reuses the memory of the previous step's copy where the shape is unchanged.
    if (!saved.values || saved.values.shape() != saved.before.shape())
      saved.values = Tensor::zeros(saved.before.shape(), saved.before.dtype(), saved.before.device());
    launch<kernel::Copy>(saved.before.device(), saved.before, saved.values);
  }
}

void NonFinitePolicy::restore_buffers() {
  for (const SavedBuffer& saved : saved_) {
    launch<kernel::Copy>(saved.before.device(), saved.values, saved.before);
    *saved.buffer = saved.before;
  }
}

void NonFinitePolicy::failed(const StepResult& step, const std::string& bad) {
  std::string found = group_.size() > 1 ? first_message(group_, bad) : bad;
  if (found.empty()) found = no_bad_value;
  group_.together([&] { skip_or_stop(step, found); });
}

void NonFinitePolicy::skip_or_stop(const StepResult& step, const std::string& bad) {
  const std::string lower =
      text(" Lower ", setting_name("train.learning_rate"), " (now ", options_.schedule.learning_rate, ")");
  const std::string what =
      text(std::isfinite(step.loss) ? "the gradient norm" : "the loss", " became ",
           std::isfinite(step.loss) ? step.norm : step.loss, " at step ", state_.step, ": ", bad, ".");
  if (options_.on_nan == OnNan::stop)
    fail(Fault::numeric, "train: ", what, checkpoints_.last_good(), lower, ", or leave such steps out: ",
         advice("train.on_nan = skip (--on-nan skip).", "train.on_nan = skip.",
                "FitOptions::on_nan = OnNan::skip."));
  if (!std::isfinite(optimizer_.value_norm()) || !find_bad_buffer(model_).empty())
    fail(Fault::numeric, "train: ", what, checkpoints_.last_good(),
         " The weights themselves are not finite, so leaving steps out does not help.", lower, ".");
  ++state_.skipped;
  ++state_.skipped_in_a_row;
  log_.log({{"skipped", static_cast<double>(state_.skipped)}});
  progress_.say("skipped", what);
  if (state_.skipped_in_a_row >= options_.skip_limit)
    fail(Fault::numeric, "train: ", what, checkpoints_.last_good(), " ", state_.skipped_in_a_row,
         " steps in a row were left out", advice(" (train.skip_limit).", " (train.skip_limit).", "."), lower,
         ".");
}

}  // namespace heed
