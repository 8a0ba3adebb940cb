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

enum class State : uint8_t { fresh, ready, in_warp, in_block, ended };

/// A barrier of the lanes of a mask at one op, and the values that they exchange.
struct WarpBarrier {
  const char* what;
  unsigned mask, arrived = 0, left = 0;
  alignas(16) std::byte values[warp * slot];
};

struct Worker;

struct Thread {
  uint3 index;
  State state = State::fresh;
  WarpBarrier* barrier = nullptr;
  Worker* worker = nullptr;
};

constexpr size_t guard = 64;
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
  Thread* now = nullptr;
  size_t last = 0;  // end of the running warp, in running order
  size_t position = 0;
  bool backward = false;
  std::exception_ptr failure;

  size_t at(size_t place) const { return backward ? threads.size() - 1 - place : place; }
  Thread& thread(size_t place) { return threads[at(place)]; }
  size_t number(const Thread& thread) const { return static_cast<size_t>(&thread - threads.data()); }

  void run(uint3 index, size_t shared_bytes);
  void run_warp(size_t first, size_t end);
  void resume(Thread& thread);
  void start(Thread& thread);
  void wait();
  void reset_workers();
  void prepare_memory(size_t bytes);
  void check_memory(size_t bytes) const;
  [[noreturn]] void stuck(size_t first, size_t end);
};

thread_local Block* current = nullptr;

Block& block() {
  if (current == nullptr)
    fail(Fault::internal, "emulated device: a device function is called outside of a kernel.");
  return *current;
}

/// A fiber that runs threads of the block, one after the other.
struct Worker {
  explicit Worker(Block& of) : block(of), fiber([this] { work(); }) {}

  [[noreturn]] void work() {
    for (;;) {
      Thread& thread = *block.now;
      try {
        (*block.body)();
      } catch (...) {
        block.failure = std::current_exception();
      }
      thread.state = State::ended;
      thread.worker = nullptr;
      // Starts the next thread of the warp on this fiber, without a switch.
      if (block.failure == nullptr && block.position + 1 < block.last &&
          block.thread(block.position + 1).state == State::fresh) {
        ++block.position;
        Thread& next = block.thread(block.position);
        next.worker = this;
        block.start(next);
        continue;
      }
      block.idle.push_back(this);
      fiber.pause();
    }
  }

  Block& block;
  Fiber fiber;
};

void Block::start(Thread& thread) {
  now = &thread;
  threadIdx = thread.index;
}

void Block::resume(Thread& thread) {
  if (thread.worker == nullptr) {
    if (idle.empty()) {
      workers.push_back(std::make_unique<Worker>(*this));
      idle.push_back(workers.back().get());
    }
    thread.worker = idle.back();
    idle.pop_back();
  }
  start(thread);
  thread.worker->fiber.resume();
  if (failure != nullptr) {
    const std::exception_ptr what = std::exchange(failure, nullptr);
    reset_workers();
    std::rethrow_exception(what);
  }
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
  for (auto& list : open) list.clear();
  for (Thread& thread : threads) thread.worker = nullptr;
}

/// Pauses the running thread until run_warp() resumes it.
void Block::wait() { now->worker->fiber.pause(); }

/// Fails where lanes of a warp wait at a barrier that others of its mask do not reach.
void Block::stuck(size_t first, size_t end) {
  std::string waiting, others;
  const char* what = "";
  unsigned mask = 0;
  for (size_t i = std::min(at(first), at(end - 1)); i <= std::max(at(first), at(end - 1)); ++i) {
    if (threads[i].state == State::in_warp) {
      what = threads[i].barrier->what;
      mask |= threads[i].barrier->mask;
      waiting += text(waiting.empty() ? "" : ", ", i);
    } else {
      others += text(others.empty() ? "" : ", ", i,
                     threads[i].state == State::in_block ? " (waits for the block)" : " (has ended)");
    }
  }
  reset_workers();
  fail(Fault::internal, "emulated device: ", what, " is not reached by every lane of its mask: thread ",
       waiting, " of block [", blockIdx.x, ", ", blockIdx.y, ", ", blockIdx.z, "] waits",
       others.empty() ? std::string() : text(", but not thread ", others),
       ". Let every lane of the mask reach it, or name only those that do.");
}

void Block::run_warp(size_t first, size_t end) {
  last = end;
  for (;;) {
    bool moved = false, waits = false;
    for (position = first; position < end; ++position) {
      Thread& one = thread(position);
      const bool is_complete = one.state == State::in_warp && one.barrier->arrived == one.barrier->mask;
      if (one.state == State::fresh || one.state == State::ready || is_complete) {
        resume(one);
        moved = true;
      } else if (one.state == State::in_warp) {
        waits = true;
      }
    }
    if (moved) continue;
    if (waits) stuck(first, end);
    return;
  }
}

void Block::prepare_memory(size_t bytes) {
  memory.resize(bytes + guard + 16);
  std::fill(memory.begin(), memory.end(), std::byte{nan_byte});
}

void Block::check_memory(size_t bytes) const {
  const auto* end = static_cast<const std::byte*>(block_memory()) + bytes;
  for (size_t i = 0; i < guard - 16; ++i) {
    if (end[i] != std::byte{nan_byte})
      fail(Fault::internal, "emulated device: a kernel writes behind its ", bytes,
           " bytes of shared memory.");
  }
}

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
      if (thread.state == State::in_block)
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

/// The block of this thread of the pool.
Block& own_block() {
  thread_local Block one;
  return one;
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
    Block& one = own_block();
    one.backward = backward;
    begin_grid(one, blocks, threads, body);
    const AtScopeEnd end_grid([] { current = nullptr; });
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = backward ? begin + end - 1 - i : i;
      const auto row = place / blocks.x;
      one.run({static_cast<unsigned>(place % blocks.x), static_cast<unsigned>(row % blocks.y),
               static_cast<unsigned>(row / blocks.y)},
              shared_bytes);
    }
  });
}

void* block_memory() {
  const auto at = reinterpret_cast<uintptr_t>(block().memory.data());
  return reinterpret_cast<void*>((at + 15) / 16 * 16);
}

void wait_for_block() {
  Block& own = block();
  own.now->state = State::in_block;
  own.wait();
}

const std::byte* wait_for_warp(const char* what, unsigned mask, const void* value, size_t bytes) {
  Block& own = block();
  Thread& thread = *own.now;
  const size_t number = own.number(thread), first = number / warp * warp;
  const size_t lanes = std::min<size_t>(warp, own.threads.size() - first);
  const unsigned bit = 1U << (number % warp);
  if ((mask & bit) == 0)
    fail(Fault::internal, "emulated device: ", what, ": lane ", number % warp, " is not in its own mask.");
  if (lanes < warp && (mask >> lanes) != 0)
    fail(Fault::internal, "emulated device: ", what, ": the mask names lanes past the ", lanes,
         " of this warp.");
  auto& open = own.open[number / warp];
  const auto found =
      std::find_if(open.begin(), open.end(), [&](const WarpBarrier* m) { return m->mask == mask; });
  WarpBarrier* barrier = found == open.end() ? nullptr : *found;
  if (barrier == nullptr) {
    if (own.unused.empty()) {
      own.barriers.push_back(std::make_unique<WarpBarrier>());
      own.unused.push_back(own.barriers.back().get());
    }
    barrier = own.unused.back();
    own.unused.pop_back();
    *barrier = WarpBarrier{};
    barrier->what = what;
    barrier->mask = mask;
    std::memset(barrier->values, nan_byte, sizeof barrier->values);
    open.push_back(barrier);
  } else if (std::strcmp(barrier->what, what) != 0) {
    fail(Fault::internal, "emulated device: lane ", number % warp, " is at ", what,
         " while others of its mask are at ", barrier->what, ".");
  }
  if (bytes > 0) std::memcpy(barrier->values + number % warp * slot, value, bytes);
  barrier->arrived |= bit;
  thread.barrier = barrier;
  if (barrier->arrived == mask) {
    open.erase(std::find(open.begin(), open.end(), barrier));
    thread.state = State::ready;
    return barrier->values;  // the last lane does not wait
  }
  thread.state = State::in_warp;
  own.wait();
  thread.state = State::ready;
  return barrier->values;
}

void leave_warp() {
  Block& own = block();
  Thread& thread = *own.now;
  WarpBarrier* barrier = thread.barrier;
  thread.barrier = nullptr;
  barrier->left |= 1U << (own.number(thread) % warp);
  if (barrier->left == barrier->mask) own.unused.push_back(barrier);
}

}  // namespace heed::emulated
