// Runs the threads of a block one at a time, each until it waits or ends.
#include "heed/core/cuda/emulator/block.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/cuda/emulator/fiber.h"
#include "heed/core/error.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/scope.h"

namespace heed::emulated {
namespace {

enum class State : uint8_t { fresh, ready, waits_for_warp, waits_for_block, ended };

/// A barrier of the lanes of a mask at one op, and the values that they exchange. Lanes are bits of the
/// masks.
struct WarpBarrier {
  const char* op;
  unsigned mask, arrived = 0, has_left = 0;
  alignas(16) std::byte values[warp * slot];
};

struct Worker;

/// A thread of the block, which runs on a worker between its first instruction and its end.
struct Thread {
  uint3 index;
  State state = State::fresh;
  WarpBarrier* barrier = nullptr;
  Worker* worker = nullptr;
};

constexpr size_t guard_bytes = 64;        // behind shared memory: a kernel that writes there fails
constexpr unsigned char nan_byte = 0xff;  // fills memory with NaN of every float type

/// The block that a thread of the pool runs.
struct Block {
  std::vector<Thread> threads;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<Worker*> idle;
  std::vector<std::unique_ptr<WarpBarrier>> barriers;
  std::vector<WarpBarrier*> unused;             // barriers without waiting lanes
  std::vector<std::vector<WarpBarrier*>> open;  // incomplete barriers of each warp
  std::vector<std::byte> memory;                // dynamic shared memory and its guard
  const std::function<void()>* body = nullptr;
  Thread* running = nullptr;
  size_t position = 0;  // place of the running thread in running order
  size_t warp_end = 0;  // position behind the running warp
  bool backward = false;
  std::exception_ptr failure;

  size_t index_at(size_t place) const { return backward ? threads.size() - 1 - place : place; }
  Thread& thread(size_t place) { return threads[index_at(place)]; }
  size_t number(const Thread& thread) const { return static_cast<size_t>(&thread - threads.data()); }

  void run(uint3 index, size_t shared_bytes);
  void run_warp(size_t first, size_t end);
  void resume(Thread& thread);
  void make_current(Thread& thread);
  void pause();
  WarpBarrier* new_barrier(const char* op, unsigned mask);
  void reset_workers();
  void prepare_memory(size_t bytes);
  void check_memory(size_t bytes) const;
  [[noreturn]] void fail_at_warp_barrier(size_t first, size_t end);
};

thread_local Block* current = nullptr;

Block& block() {
  if (current == nullptr)
    fail(Fault::internal, "emulated device: a device function is called outside of a kernel.");
  return *current;
}

/// A fiber that runs threads of the block, one after the other.
struct Worker {
  explicit Worker(Block& of) : block(of), fiber([this] { run_threads(); }) {}

  /// Runs the block's current thread to its end, then, without a switch of fibers, the next one of its warp
  /// if that is fresh; else pauses until Block::resume() hands it another thread.
  [[noreturn]] void run_threads() {
    for (;;) {
      Thread& thread = *block.running;
      try {
        (*block.body)();
      } catch (...) {
        block.failure = std::current_exception();
      }
      thread.state = State::ended;
      thread.worker = nullptr;
      if (block.failure == nullptr && block.position + 1 < block.warp_end &&
          block.thread(block.position + 1).state == State::fresh) {
        ++block.position;
        Thread& next = block.thread(block.position);
        next.worker = this;
        block.make_current(next);
        continue;
      }
      block.idle.push_back(this);
      fiber.pause();
    }
  }

  Block& block;
  Fiber fiber;
};

void Block::make_current(Thread& thread) {
  running = &thread;
  threadIdx = thread.index;
}

/// Runs the thread, and fresh ones behind it, until one waits or the worker has none left. Takes an idle
/// worker for a fresh thread, and throws what the thread has thrown.
void Block::resume(Thread& thread) {
  if (thread.worker == nullptr) {
    if (idle.empty()) {
      workers.push_back(std::make_unique<Worker>(*this));
      idle.push_back(workers.back().get());
    }
    thread.worker = idle.back();
    idle.pop_back();
  }
  make_current(thread);
  thread.worker->fiber.resume();
  if (failure != nullptr) {
    const std::exception_ptr error = std::exchange(failure, nullptr);
    reset_workers();
    std::rethrow_exception(error);
  }
}

/// A barrier that no lane has reached, for the lanes of `mask`; the values of all lanes are NaN.
WarpBarrier* Block::new_barrier(const char* op, unsigned mask) {
  if (unused.empty()) {
    barriers.push_back(std::make_unique<WarpBarrier>());
    unused.push_back(barriers.back().get());
  }
  WarpBarrier* barrier = unused.back();
  unused.pop_back();
  *barrier = WarpBarrier{.op = op, .mask = mask, .values = {}};
  std::memset(barrier->values, nan_byte, sizeof barrier->values);
  return barrier;
}

/// Makes all workers idle after a failure; waiting threads are never resumed.
void Block::reset_workers() {
  idle.clear();
  for (auto& worker : workers) {
    worker->fiber.reset();
    idle.push_back(worker.get());
  }
  unused.clear();
  for (auto& barrier : barriers) unused.push_back(barrier.get());
  for (auto& barriers_of_warp : open) barriers_of_warp.clear();
  for (Thread& thread : threads) thread.worker = nullptr;
}

/// Pauses the running thread until run_warp() resumes it.
void Block::pause() { running->worker->fiber.pause(); }

/// Fails since lanes of a warp wait at a barrier that others of its mask do not reach.
void Block::fail_at_warp_barrier(size_t first, size_t end) {
  std::string waiting, others;
  const char* op = "";
  const auto [lowest, highest] = std::minmax({index_at(first), index_at(end - 1)});
  for (size_t i = lowest; i <= highest; ++i) {
    if (threads[i].state == State::waits_for_warp) {
      op = threads[i].barrier->op;
      waiting += text(waiting.empty() ? "" : ", ", i);
    } else {
      others += text(others.empty() ? "" : ", ", i,
                     threads[i].state == State::waits_for_block ? " (waits for the block)" : " (has ended)");
    }
  }
  reset_workers();
  fail(Fault::internal, "emulated device: ", op, " is not reached by every lane of its mask: thread ",
       waiting, " of block [", blockIdx.x, ", ", blockIdx.y, ", ", blockIdx.z, "] waits",
       others.empty() ? std::string() : text(", but not thread ", others),
       ". Let every lane of the mask reach it, or name only those that do.");
}

/// Runs the threads of a warp until each has ended or waits for the block.
void Block::run_warp(size_t first, size_t end) {
  warp_end = end;
  for (bool has_run = true; has_run;) {
    bool waits = false;
    has_run = false;
    for (position = first; position < end; ++position) {
      Thread& next = thread(position);
      const bool waits_for_warp = next.state == State::waits_for_warp;
      const bool is_complete = waits_for_warp && next.barrier->arrived == next.barrier->mask;
      if (next.state == State::fresh || next.state == State::ready || is_complete) {
        resume(next);
        has_run = true;
      } else if (waits_for_warp) {
        waits = true;
      }
    }
    if (!has_run && waits) fail_at_warp_barrier(first, end);
  }
}

/// Fills shared memory and the guard bytes behind it with NaN.
void Block::prepare_memory(size_t bytes) {
  memory.resize(bytes + guard_bytes + 16);
  std::fill(memory.begin(), memory.end(), std::byte{nan_byte});
}

/// Fails where the guard bytes have changed.
void Block::check_memory(size_t bytes) const {
  const auto* end = static_cast<const std::byte*>(block_memory()) + bytes;
  for (size_t i = 0; i < guard_bytes - 16; ++i) {
    if (end[i] != std::byte{nan_byte})
      fail(Fault::internal, "emulated device: a kernel writes behind its ", bytes,
           " bytes of shared memory.");
  }
}

/// Runs all threads of a block, warp by warp, from one barrier of the block to the next.
void Block::run(uint3 index, size_t shared_bytes) {
  blockIdx = index;
  prepare_memory(shared_bytes);
  for (Thread& thread : threads) thread.state = State::fresh;
  const size_t count = threads.size();
  for (;;) {
    for (size_t first = 0; first < count;) {
      // Warps consist of neighbouring thread numbers, also where threads run backward.
      const size_t size = backward && first == 0 && count % warp != 0 ? count % warp : warp;
      const size_t end = std::min(count, first + size);
      run_warp(first, end);
      first = end;
    }
    size_t waiting = 0;
    const Thread* absent = nullptr;
    for (const Thread& thread : threads) {
      if (thread.state == State::waits_for_block)
        ++waiting;
      else
        absent = &thread;
    }
    if (waiting == 0) break;
    if (absent != nullptr) {
      const size_t number_of_absent = number(*absent);
      reset_workers();
      fail(Fault::internal, "emulated device: __syncthreads is not reached by every thread of block [",
           index.x, ", ", index.y, ", ", index.z, "]: thread ", number_of_absent, " has ended while ",
           waiting, " wait. Let all threads reach every barrier.");
    }
    for (Thread& thread : threads) thread.state = State::ready;
  }
  check_memory(shared_bytes);
}

/// Makes `block` the current one of this thread, for a grid of `blocks` of `threads`.
void begin_grid(Block& block, dim3 blocks, dim3 threads, const std::function<void()>& body) {
  if (current != nullptr) fail(Fault::internal, "emulated device: a kernel starts a kernel.");
  current = &block;
  gridDim = blocks;
  blockDim = threads;
  block.body = &body;
  block.threads.assign(size_t{threads.x} * threads.y * threads.z, Thread{});
  block.open.resize((block.threads.size() + warp - 1) / warp);
  size_t i = 0;
  for (unsigned z = 0; z < threads.z; ++z) {
    for (unsigned y = 0; y < threads.y; ++y) {
      for (unsigned x = 0; x < threads.x; ++x) block.threads[i++].index = {x, y, z};
    }
  }
}

bool order_is_backward() {
  const char* order = std::getenv("HEED_EMULATED_ORDER");
  if (order == nullptr || std::string(order) == "forward") return false;
  if (std::string(order) != "backward")
    fail("HEED_EMULATED_ORDER: '", order, "' is no order of threads. Known: forward, backward.");
  return true;
}

}  // namespace

void run_grid(dim3 blocks, dim3 threads, size_t shared_bytes, const std::function<void()>& body) {
  static const bool backward = order_is_backward();
  const int64_t count = int64_t{blocks.x} * blocks.y * blocks.z;
  const int64_t size = int64_t{threads.x} * threads.y * threads.z;
  parallel_rows(count, std::max<int64_t>(1, 2048 / size), [&](int64_t begin, int64_t end) {
    thread_local Block block;  // reused for all blocks of this thread of the pool
    block.backward = backward;
    begin_grid(block, blocks, threads, body);
    const AtScopeEnd end_grid([] { current = nullptr; });
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = backward ? begin + end - 1 - i : i;
      const auto row = place / blocks.x;
      block.run({static_cast<unsigned>(place % blocks.x), static_cast<unsigned>(row % blocks.y),
                 static_cast<unsigned>(row / blocks.y)},
                shared_bytes);
    }
  });
}

void* block_memory() {
  const auto address = reinterpret_cast<uintptr_t>(block().memory.data());
  return reinterpret_cast<void*>((address + 15) / 16 * 16);
}

void wait_for_block() {
  block().running->state = State::waits_for_block;
  block().pause();
}

const std::byte* wait_for_warp(const char* op, unsigned mask, const void* value, size_t bytes) {
  Block& here = block();
  Thread& thread = *here.running;
  const size_t number = here.number(thread), first = number / warp * warp;
  const size_t lanes = std::min<size_t>(warp, here.threads.size() - first);
  const unsigned bit = 1U << (number % warp);
  if ((mask & bit) == 0)
    fail(Fault::internal, "emulated device: ", op, ": lane ", number % warp, " is not in its own mask.");
  if (lanes < warp && (mask >> lanes) != 0)
    fail(Fault::internal, "emulated device: ", op, ": the mask names lanes past the ", lanes,
         " of this warp.");
  auto& open = here.open[number / warp];
  const auto found =
      std::find_if(open.begin(), open.end(), [&](const WarpBarrier* other) { return other->mask == mask; });
  WarpBarrier* barrier = found == open.end() ? nullptr : *found;
  if (barrier == nullptr) {
    barrier = here.new_barrier(op, mask);
    open.push_back(barrier);
  } else if (std::strcmp(barrier->op, op) != 0) {
    fail(Fault::internal, "emulated device: lane ", number % warp, " is at ", op,
         " while others of its mask are at ", barrier->op, ".");
  }
  if (bytes > 0) std::memcpy(barrier->values + number % warp * slot, value, bytes);
  barrier->arrived |= bit;
  thread.barrier = barrier;
  if (barrier->arrived == mask) {
    open.erase(std::find(open.begin(), open.end(), barrier));
    thread.state = State::ready;
    return barrier->values;  // the last lane does not wait
  }
  thread.state = State::waits_for_warp;
  here.pause();
  thread.state = State::ready;
  return barrier->values;
}

void leave_warp() {
  Thread& thread = *block().running;
  WarpBarrier* barrier = std::exchange(thread.barrier, nullptr);
  barrier->has_left |= 1U << (block().number(thread) % warp);
  if (barrier->has_left == barrier->mask) block().unused.push_back(barrier);
}

}  // namespace heed::emulated
