// A flag instead of a sudden end.
#include "train/stop_signals.h"

#include <atomic>
#include <csignal>

namespace heed {
namespace {

std::atomic<int> stop_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // so a handler may touch it

void on_signal(int number) {
  if (stop_signal != 0) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  stop_signal = number;
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int StopSignals::received() { return stop_signal; }

}  // namespace heed
