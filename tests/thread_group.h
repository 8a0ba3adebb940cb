// A group whose members are threads of the test.
#pragma once

#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/group.h"

namespace heed {

/// Where threads meet: each shows a piece of memory, and reads those of the others.
class MeetingPlace {
 public:
  explicit MeetingPlace(int64_t size) : shown_(static_cast<size_t>(size)) {}

  /// Shows `from`, calls `read` when everybody has shown theirs, and returns when everybody has read.
  void meet(int64_t rank, const void* from,
            const std::function<void(const std::vector<const char*>&)>& read) {
    shown_[static_cast<size_t>(rank)] = static_cast<const char*>(from);
    wait();
    read(shown_);
    wait();
  }
  /// Nobody is to be waited for any more.
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

class ThreadGroup final : public Group {
 public:
  ThreadGroup(MeetingPlace& place, int64_t rank, int64_t size) : Group(rank, size), place_(place) {}

  void trade(const void* from, void* to, int64_t bytes) override {
    place_.meet(rank(), from, [&](const std::vector<const char*>& shown) {
      for (size_t i = 0; i < shown.size(); ++i)
        std::memcpy(static_cast<char*>(to) + static_cast<int64_t>(i) * bytes, shown[i] + rank() * bytes,
                    static_cast<size_t>(bytes));
    });
  }
  void gather(const void* from, void* to, int64_t bytes) override {
    place_.meet(rank(), from, [&](const std::vector<const char*>& shown) {
      for (size_t i = 0; i < shown.size(); ++i)
        std::memcpy(static_cast<char*>(to) + static_cast<int64_t>(i) * bytes, shown[i],
                    static_cast<size_t>(bytes));
    });
  }
  void spread(void* data, int64_t bytes) override {
    place_.meet(rank(), data, [&](const std::vector<const char*>& shown) {
      if (!leads()) std::memcpy(data, shown[0], static_cast<size_t>(bytes));
    });
  }
  void abandon(int) override { std::terminate(); }

 private:
  MeetingPlace& place_;
};

/// Runs `work` in as many threads; rethrows what the first member that failed threw, and the others then fail
/// where they wait for it. No assertion of a test may stand in `work`: it is not made for threads.
inline void as_members(int64_t size, const std::function<void(Group&)>& work) {
  MeetingPlace place(size);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadGroup group(place, rank, size);
      try {
        work(group);
      } catch (const Agreed&) {
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
