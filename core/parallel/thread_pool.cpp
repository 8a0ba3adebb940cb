// The thread pool: workers that spin for a moment between jobs, and sleep in longer pauses.
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
thread_local bool is_in_job = false;  // whether this thread is computing a piece
// Iterations of a waiting thread that spins, some microseconds, before it sleeps or yields.
constexpr int max_spins = 4000;

/// Tells the CPU that the thread spins.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// HEED_THREADS, or the number of cores that this process may use.
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

// Each job is open to all workers, which claim its pieces from one counter. The caller waits for the workers
// that have entered the job, not for those that the system has not woken yet: on a busy machine that may take
// milliseconds. A worker that finds no job spins for a moment before it sleeps, because the next op of a
// training step follows within microseconds.
class Pool {
 public:
  explicit Pool(int count) {
    try {
      for (int i = 1; i < count; ++i) workers_.emplace_back([this] { run_worker(); });
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

  /// Runs one job: calls piece(context, i) for each i < pieces on all threads, the caller's included.
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
    compute_pieces();
    entered_.fetch_sub(open, std::memory_order_acq_rel);
    for (int spin = 0; entered_.load(std::memory_order_acquire) != 0; ++spin) {
      if (spin < max_spins)
        relax();
      else
        std::this_thread::yield();
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  /// Computes pieces of the job until none is left. The first exception ends the job.
  void compute_pieces() {
    is_in_job = true;
    Timeline* timeline = Timeline::active();
    const int64_t began = timeline != nullptr ? Timeline::now() : 0;
    bool has_piece = false;
    for (;;) {
      const int64_t piece = next_.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces_) break;
      has_piece = true;
      try {
        piece_(context_, piece);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        next_.store(pieces_, std::memory_order_relaxed);
      }
    }
    if (timeline != nullptr && has_piece) timeline->slice("threads", "pieces", nullptr, began);
    is_in_job = false;
  }

  /// Joins the job; false when it is over. The fields of the job do not change while workers are in it.
  bool enter() {
    int entered = entered_.load(std::memory_order_relaxed);
    while (entered >= open) {
      if (entered_.compare_exchange_weak(entered, entered + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }

  /// The loop of a worker: waits for a job, takes part in it, and ends when the pool is destroyed.
  void run_worker() {
    // Makes the C library map the heap arena of this thread now, not later while memory is being measured.
    void* volatile block = std::malloc(1);
    std::free(block);
    ready_.fetch_add(1);
    ready_.notify_one();
    uint64_t last_generation = 0;
    for (;;) {
      const auto has_news = [&] { return generation_.load(std::memory_order_acquire) != last_generation; };
      for (int spin = 0; !has_news() && spin < max_spins; ++spin) relax();
      if (!has_news()) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, has_news);
      }
      last_generation = generation_.load(std::memory_order_acquire);
      if (stop_) return;
      if (!enter()) continue;
      compute_pieces();
      entered_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> workers_;
  std::mutex job_;  // held by the thread that runs a job: jobs of several threads run one after the other
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};  // number of jobs, and of the end of the pool, so far
  std::atomic<int64_t> next_{0};         // next piece of the job
  static constexpr int open = 1 << 20;   // more than any number of workers
  std::atomic<int> entered_{0};          // number of workers inside the job, plus `open` while more may enter
  std::atomic<int> ready_{0};            // number of workers that have started
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
