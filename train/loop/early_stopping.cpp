// Decides whether patience, a score or time ends a run.
#include "heed/train/loop/early_stopping.h"

namespace heed {

void EarlyStopping::update_best(const Scores& scores) {
  state_.validated = state_.step;
  const double ignored_steps = options_.best_after * static_cast<double>(total_steps_);
  if (state_.step < total_steps_ && options_.best_after > 0 &&
      static_cast<double>(state_.step) <= ignored_steps)
    return;
  if (!state_.best || scores.better_than(*state_.best)) {
    state_.best = scores;
    state_.best_step = state_.step;
    state_.without_better = 0;
  } else {
    ++state_.without_better;
  }
}

bool EarlyStopping::patience_exhausted() const {
  return options_.patience > 0 && state_.without_better >= options_.patience;
}

bool EarlyStopping::score_reached() const {
  if (options_.stop_score == 0 || !state_.best) return false;
  const double best = state_.best->first();
  return state_.best->lower_is_better ? best <= options_.stop_score : best >= options_.stop_score;
}

bool EarlyStopping::out_of_time(double seconds) const {
  return options_.time_limit > 0 && seconds >= options_.time_limit;
}

}  // namespace heed
