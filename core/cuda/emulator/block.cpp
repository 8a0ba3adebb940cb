// Runs the threads of a block until each has ended, one at a time.
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

namespace heed::emulated {
namespace {

enum class State : uint8_t { fresh, ready, in_warp, in_block, ended };

/// Lanes of a mask that wait for each other at one op.
struct Meeting {
  const char* what;
  unsigned mask, arrived = 0, left = 0;
  alignas(16) std::byte values[warp * slot];
};

struct Worker;

struct Thread {
  uint3 index;
  State state = State::fresh;
  Meeting* meeting = nullptr;
  Worker* worker = nullptr;
};

constexpr size_t guard = 64;
constexpr unsigned char unwritten = 0xff;  // bytes of which every float is made NaN

/// The block that this thread of the pool is running.
struct Block {
  std::vector<Thread> threads;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<Worker*> idle;
  std::vector<std::unique_ptr<Meeting>> meetings;
  std::vector<Meeting*> spare;              // meetings nobody is in
  std::vector<std::vector<Meeting*>> open;  // of each warp: not yet complete
  std::vector<std::byte> memory;            // dynamic shared memory and its guard
  const std::function<void()>* body = nullptr;
  Thread* now = nullptr;
  size_t last = 0;  // of the threads in the warp that runs, in running order
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
  void forget();
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

/// A fiber that runs threads of the block, one to its end after the other.
struct Worker {
  explicit Worker(Block& of) : block(of), fiber([this] { work(); }) {}

  [[noreturn]] void work() {
    for (;;) {
      Thread& mine = *block.now;
      try {
        (*block.body)();
      } catch (...) {
        block.failure = std::current_exception();
      }
      mine.state = State::ended;
      mine.worker = nullptr;
      // The next thread of the warp starts here, without a switch.
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
    forget();
    std::rethrow_exception(what);
  }
}

/// After a failure: whatever still waits never goes on.
void Block::forget() {
  idle.clear();
  for (auto& worker : workers) {
    worker->fiber.reset();
    idle.push_back(worker.get());
  }
  spare.clear();
  for (auto& meeting : meetings) spare.push_back(meeting.get());
  for (auto& list : open) list.clear();
  for (Thread& thread : threads) thread.worker = nullptr;
}

/// From within a thread: lets others run until what it waits for has happened.
void Block::wait() {
  Thread& mine = *now;
  mine.worker->fiber.pause();
}

void Block::stuck(size_t first, size_t end) {
  std::string waiting, others;
  const char* what = "";
  unsigned mask = 0;
  for (size_t i = std::min(at(first), at(end - 1)); i <= std::max(at(first), at(end - 1)); ++i) {
    if (threads[i].state == State::in_warp) {
      what = threads[i].meeting->what;
      mask |= threads[i].meeting->mask;
      waiting += text(waiting.empty() ? "" : ", ", i);
    } else {
      others += text(others.empty() ? "" : ", ", i,
                     threads[i].state == State::in_block ? " (waits for the block)" : " (has ended)");
    }
  }
  forget();
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
      const bool met = one.state == State::in_warp && one.meeting->arrived == one.meeting->mask;
      if (one.state == State::fresh || one.state == State::ready || met) {
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
  std::fill(memory.begin(), memory.end(), std::byte{unwritten});
}

void Block::check_memory(size_t bytes) const {
  const auto* end = static_cast<const std::byte*>(block_memory()) + bytes;
  for (size_t i = 0; i < guard - 16; ++i) {
    if (end[i] != std::byte{unwritten})
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
      // Warps are cut by the threads' numbers, also where these run backward.
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
      forget();
      fail(Fault::internal, "emulated device: __syncthreads is not reached by every thread of block [",
           index.x, ", ", index.y, ", ", index.z, "]: thread ", number_of_absent, " has ended while ",
           waiting, " wait. Let all threads reach every barrier.");
    }
    for (Thread& thread : threads) thread.state = State::ready;
  }
  check_memory(shared_bytes);
}

/// This thread of the pool's block, made when first wanted.
Block& own_block() {
  thread_local Block one;
  return one;
}

/// Makes the block what device functions find while a grid runs.
class Running {
 public:
  Running(Block& block, dim3 blocks, dim3 threads, const std::function<void()>& body) {
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
  ~Running() { current = nullptr; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

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
    const Running running(one, blocks, threads, body);
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

void meet_block() {
  Block& here = block();
  here.now->state = State::in_block;
  here.wait();
}

const std::byte* meet_warp(const char* what, unsigned mask, const void* mine, size_t bytes) {
  Block& here = block();
  Thread& me = *here.now;
  const size_t number = here.number(me), first = number / warp * warp;
  const size_t lanes = std::min<size_t>(warp, here.threads.size() - first);
  const unsigned bit = 1U << (number % warp);
  if ((mask & bit) == 0)
    fail(Fault::internal, "emulated device: ", what, ": lane ", number % warp, " is not in its own mask.");
  if (lanes < warp && (mask >> lanes) != 0)
    fail(Fault::internal, "emulated device: ", what, ": the mask names lanes past the ", lanes,
         " of this warp.");
  auto& open = here.open[number / warp];
  const auto found =
      std::find_if(open.begin(), open.end(), [&](const Meeting* m) { return m->mask == mask; });
  Meeting* meeting = found == open.end() ? nullptr : *found;
  if (meeting == nullptr) {
    if (here.spare.empty()) {
      here.meetings.push_back(std::make_unique<Meeting>());
      here.spare.push_back(here.meetings.back().get());
    }
    meeting = here.spare.back();
    here.spare.pop_back();
    *meeting = Meeting{};
    meeting->what = what;
    meeting->mask = mask;
    std::memset(meeting->values, unwritten, sizeof meeting->values);
    open.push_back(meeting);
  } else if (std::strcmp(meeting->what, what) != 0) {
    fail(Fault::internal, "emulated device: lane ", number % warp, " is at ", what,
         " while others of its mask are at ", meeting->what, ".");
  }
  if (bytes > 0) std::memcpy(meeting->values + number % warp * slot, mine, bytes);
  meeting->arrived |= bit;
  me.meeting = meeting;
  if (meeting->arrived == mask) {
    open.erase(std::find(open.begin(), open.end(), meeting));
    me.state = State::ready;
    return meeting->values;  // the last to come goes straight on
  }
  me.state = State::in_warp;
  here.wait();
  me.state = State::ready;
  return meeting->values;
}

void leave_warp() {
  Block& here = block();
  Thread& me = *here.now;
  Meeting* meeting = me.meeting;
  me.meeting = nullptr;
  meeting->left |= 1U << (here.number(me) % warp);
  if (meeting->left == meeting->mask) here.spare.push_back(meeting);
}

}  // namespace heed::emulated
