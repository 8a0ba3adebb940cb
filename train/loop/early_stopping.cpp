// Stops a run early: patience is exhausted, time is up, or a signal asks for it.
#include "heed/train/loop/early_stopping.h"

#include "heed/train/loop/stop_signals.h"

namespace heed {

void EarlyStopping::update_best(const Scores& scores) {
  state_.validated = state_.step;
  const double least = options_.best_after * static_cast<double>(total_);
  if (state_.step < total_ && options_.best_after > 0 && static_cast<double>(state_.step) <= least) return;
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

bool EarlyStopping::out_of_time(double seconds) const {
  return options_.time_limit > 0 && seconds >= options_.time_limit;
}

StopRequest collect_stop_request(ProcessGroup& group, bool out_of_time) {
  const int own = 4 * StopSignals::received() + (out_of_time ? 2 : 0) + (SaveSignal::take() ? 1 : 0);
  const std::vector<double> all = group.all_gather(own);
  StopRequest request{.out_of_time = (static_cast<int>(all[0]) & 2) != 0};
  for (const double one : all) {
    const int asked = static_cast<int>(one);
    if (request.signal == 0) request.signal = asked / 4;
    request.save |= (asked & 1) != 0;
  }
  return request;
}

}  // namespace heed
