// Turns SIGINT, SIGTERM, SIGHUP, SIGXCPU and SIGUSR1 into flags that the training loop reads after each step.
#include "heed/train/loop/stop_signals.h"

#include <atomic>
#include <mutex>
#include <optional>

namespace heed {
namespace {

std::atomic<int> stop_signal = 0;      // number of the signal that asked to stop, or 0
std::atomic<bool> save_asked = false;  // whether SIGUSR1 has come
// Signal handlers may use lock-free atomics only.
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

bool is_user_request(int number) { return number == SIGINT || number == SIGTERM; }

/// Sets stop_signal; a second request of the user ends the process at once.
void on_stop(int number) {
  const int previous = stop_signal;
  if (is_user_request(previous) && is_user_request(number)) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  if (previous == 0 || is_user_request(number)) stop_signal = number;
}

void on_save(int) { save_asked = true; }

/// The handlers of all signals of StopSignals.
struct Handlers {
  HandledSignal interrupt{SIGINT, on_stop}, terminate{SIGTERM, on_stop}, hangup{SIGHUP, on_stop},
      cpu_time{SIGXCPU, on_stop};
  SaveSignal save;
};

std::mutex handlers_mutex;
int num_alive = 0;                 // number of StopSignals objects that exist
std::optional<Handlers> handlers;  // set while any exists

}  // namespace

HandledSignal::HandledSignal(int number, void (*handler)(int)) : number_(number) {
  ::sigaction(number_, nullptr, &before_);
  if (before_.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(number_, &action, nullptr);
}

HandledSignal::~HandledSignal() { ::sigaction(number_, &before_, nullptr); }

SaveSignal::SaveSignal() : handled_(SIGUSR1, on_save) {
  // A parent process that forwards SIGUSR1 starts its children with it blocked, so that it does not kill one
  // that has no handler yet.
  sigset_t sigusr1;
  ::sigemptyset(&sigusr1);
  ::sigaddset(&sigusr1, SIGUSR1);
  ::pthread_sigmask(SIG_UNBLOCK, &sigusr1, nullptr);
}

bool SaveSignal::take() { return save_asked.exchange(false); }

StopSignals::StopSignals() {
  const std::lock_guard lock(handlers_mutex);
  if (num_alive++ == 0) handlers.emplace();
}

StopSignals::~StopSignals() {
  const std::lock_guard lock(handlers_mutex);
  if (--num_alive > 0) return;
  handlers.reset();
  stop_signal = 0;
}

int StopSignals::received() { return stop_signal; }

bool StopSignals::any_alive() {
  const std::lock_guard lock(handlers_mutex);
  return num_alive > 0;
}

void StopSignals::become_ordinary() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    struct sigaction action = {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler == on_stop) std::signal(number, SIG_DFL);
  }
}

}  // namespace heed
