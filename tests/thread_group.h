// A process group whose members are threads of the test.
#pragma once

#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "heed/core/distributed/process_group.h"

namespace heed {

/// Exchanges memory between threads: each provides a block and reads those of the others.
class Rendezvous {
 public:
  explicit Rendezvous(int64_t size) : shown_(static_cast<size_t>(size)) {}

  /// Provides `from`, calls `read` once everybody has provided theirs, and returns when everybody has read.
  void meet(int64_t rank, const void* from,
            const std::function<void(const std::vector<const char*>&)>& read) {
    shown_[static_cast<size_t>(rank)] = static_cast<const char*>(from);
    wait();
    read(shown_);
    wait();
  }
  /// Stops all waiting: calls of the others then fail.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    wake_.notify_all();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    const int64_t round = round_;
    if (++here_ == static_cast<int64_t>(shown_.size())) {
      here_ = 0;
      ++round_;
      wake_.notify_all();
    }
    wake_.wait(lock, [&] { return closed_ || round_ != round; });
    if (round_ == round) fail(Fault::internal, "the other members are gone");
  }

  std::vector<const char*> shown_;
  std::mutex mutex_;
  std::condition_variable wake_;
  int64_t here_ = 0, round_ = 0;
  bool closed_ = false;
};

class ThreadGroup final : public ProcessGroup {
 public:
  ThreadGroup(Rendezvous& place, int64_t rank, int64_t size) : ProcessGroup(rank, size), place_(place) {}

  void all_to_all(const void* from, void* to, int64_t bytes) override {
    place_.meet(rank(), from, [&](const std::vector<const char*>& shown) {
      for (size_t i = 0; i < shown.size(); ++i)
        std::memcpy(static_cast<char*>(to) + static_cast<int64_t>(i) * bytes, shown[i] + rank() * bytes,
                    static_cast<size_t>(bytes));
    });
  }
  void all_gather(const void* from, void* to, int64_t bytes) override {
    place_.meet(rank(), from, [&](const std::vector<const char*>& shown) {
      for (size_t i = 0; i < shown.size(); ++i)
        std::memcpy(static_cast<char*>(to) + static_cast<int64_t>(i) * bytes, shown[i],
                    static_cast<size_t>(bytes));
    });
  }
  void broadcast(void* data, int64_t bytes) override {
    place_.meet(rank(), data, [&](const std::vector<const char*>& shown) {
      if (!is_main()) std::memcpy(data, shown[0], static_cast<size_t>(bytes));
    });
  }
  void abandon(int) override { std::terminate(); }

 private:
  Rendezvous& place_;
};

/// Runs `work` in `size` threads; rethrows the error of the first member that failed; the others then fail
/// where they wait for it. Catch2 assertions are not thread-safe: use none in `work`.
inline void as_members(int64_t size, const std::function<void(ProcessGroup&)>& work) {
  Rendezvous place(size);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadGroup group(place, rank, size);
      try {
        work(group);
      } catch (const CollectiveError&) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
        place.close();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace heed
