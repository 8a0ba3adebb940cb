// The thread pool.
#include "heed/core/parallel/thread_pool.h"

#include <cblas.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/timeline.h"

namespace heed {
namespace {

constexpr int max_threads = 256;
thread_local bool is_in_job = false;  // this thread computes a piece

/// Tells the CPU that the thread spins.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int default_threads() {
  if (const char* requested = std::getenv("HEED_THREADS"); requested != nullptr && *requested != '\0') {
    const std::string_view digits = requested;
    int count = 0;
    const auto [at, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (fault == std::errc() && at == digits.data() + digits.size() && count >= 1 && count <= max_threads)
      return count;
    fail("HEED_THREADS=", requested,
         " is no number of threads. It must be 1 to 256; unset it to use all cores.");
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());
}

// Each job is open to all workers; pieces are claimed from one counter. The caller waits for the workers that
// have entered, not for one that the system has not woken yet: on a busy machine that may take milliseconds.
// A worker that finds no job spins for a moment before it sleeps, because the next op of a training step
// follows within microseconds.
class Pool {
 public:
  explicit Pool(int count) {
    try {
      for (int i = 1; i < count; ++i) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // The system has no more threads. Fewer threads compute the same bits.
    }
    for (int ready = ready_.load(); ready < size() - 1; ready = ready_.load()) ready_.wait(ready);
  }

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  void run(int64_t pieces, void (*piece)(void*, int64_t), void* context) {
    const std::lock_guard one_job(job_);
    pieces_ = pieces;
    piece_ = piece;
    context_ = context;
    error_ = nullptr;
    next_.store(0, std::memory_order_relaxed);
    entered_.store(open, std::memory_order_release);
    {
      const std::lock_guard lock(mutex_);
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    take();
    entered_.fetch_sub(open, std::memory_order_acq_rel);
    for (int spin = 0; entered_.load(std::memory_order_acquire) != 0; ++spin) {
      if (spin < 4000) {
        relax();
      } else {
        std::this_thread::yield();
      }
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void take() {
    is_in_job = true;
    Timeline* timeline = Timeline::active();
    const int64_t began = timeline != nullptr ? Timeline::now() : 0;
    bool worked = false;
    for (;;) {
      const int64_t piece = next_.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces_) break;
      worked = true;
      try {
        piece_(context_, piece);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        next_.store(pieces_, std::memory_order_relaxed);
      }
    }
    if (timeline != nullptr && worked) timeline->slice("threads", "pieces", nullptr, began);
    is_in_job = false;
  }

  /// Joins the job; false when it is over. The fields of the job do not change while workers are in it.
  bool enter() {
    int now = entered_.load(std::memory_order_relaxed);
    while (now >= open) {
      if (entered_.compare_exchange_weak(now, now + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }

  void work() {
    // Makes the C library map the arena of this thread now, and not during a run.
    void* volatile first = std::malloc(1);
    std::free(first);
    ready_.fetch_add(1);
    ready_.notify_one();
    uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; generation_.load(std::memory_order_acquire) == seen && spin < 4000; ++spin) relax();
      if (generation_.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
      }
      seen = generation_.load(std::memory_order_acquire);
      if (stop_) return;
      if (!enter()) continue;
      take();
      entered_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> workers_;
  std::mutex job_;  // held by the calling thread: jobs of several threads run one after the other
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int64_t> next_{0};
  static constexpr int open = 1 << 20;
  std::atomic<int> entered_{0};  // workers inside the job, and `open` while more may come
  std::atomic<int> ready_{0};    ///< workers that have begun
  int64_t pieces_ = 0;
  void (*piece_)(void*, int64_t) = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> stop_{false};
};

std::unique_ptr<Pool>& pool() {
  static auto one = std::make_unique<Pool>(default_threads());
  return one;
}

}  // namespace

int threads() { return pool()->size(); }

void set_threads(int count) {
  if (count != threads()) pool() = std::make_unique<Pool>(std::clamp(count, 1, max_threads));
}

std::string blas_core() {
  const char* name = openblas_get_corename();
  return name != nullptr ? name : "unknown";
}

void detail::run_pieces(int64_t pieces, void (*piece)(void*, int64_t), void* context) {
  if (pieces <= 0) return;
  if (pieces == 1 || is_in_job || threads() == 1) {
    for (int64_t i = 0; i < pieces; ++i) piece(context, i);
    return;
  }
  pool()->run(pieces, piece, context);
}

}  // namespace heed
