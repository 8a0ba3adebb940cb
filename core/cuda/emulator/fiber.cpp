// Switches between stacks: by a few instructions on x86-64, by ucontext elsewhere.
#include "heed/core/cuda/emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "heed/core/error.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace heed::emulated {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t stack_bytes = size_t{512} << 10;
#else
constexpr size_t stack_bytes = size_t{128} << 10;
#endif
constexpr size_t guard_bytes = 4096;

}  // namespace

#if defined(__x86_64__)

// Pushes the registers that a called function keeps, stores the stack pointer to `save`, and returns on the
// stack `load`, which was left by an earlier call.
extern "C" void heed_emulated_switch(void** save, void* load);
asm(R"(
.text
.globl heed_emulated_switch
.hidden heed_emulated_switch
.type heed_emulated_switch,@function
heed_emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size heed_emulated_switch,.-heed_emulated_switch
)");

namespace {

// The argument of Fiber::enter(): a new stack passes none in registers.
thread_local Fiber* starting = nullptr;

}  // namespace

void Fiber::reset() {
  auto* top = reinterpret_cast<uint64_t*>(static_cast<std::byte*>(stack_) + guard_bytes + stack_bytes);
  *--top = 0;  // keeps the alignment of a called function, and ends a walk up the stack
  *--top = reinterpret_cast<uint64_t>(static_cast<void (*)()>([] { enter(starting); }));
  for (int i = 0; i < 6; ++i) *--top = 0;
  inside_ = top;
  fake_inside_ = nullptr;
}

#else

void Fiber::reset() {
  auto* context = static_cast<ucontext_t*>(inside_);
  getcontext(context);
  context->uc_stack.ss_sp = static_cast<std::byte*>(stack_) + guard_bytes;
  context->uc_stack.ss_size = stack_bytes;
  context->uc_link = nullptr;
  const auto self = reinterpret_cast<uint64_t>(this);
  makecontext(
      context,
      reinterpret_cast<void (*)()>(static_cast<void (*)(unsigned, unsigned)>([](unsigned high, unsigned low) {
        enter(reinterpret_cast<Fiber*>((static_cast<uint64_t>(high) << 32) | low));
      })),
      2, static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  fake_inside_ = nullptr;
}

#endif

Fiber::Fiber(std::function<void()> entry) : entry_(std::move(entry)) {
  stack_ = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack_ == MAP_FAILED) fail(Fault::memory, "emulated device: no memory for the stack of a thread.");
  mprotect(stack_, guard_bytes, PROT_NONE);
#if !defined(__x86_64__)
  inside_ = new ucontext_t;
  outside_ = new ucontext_t;
#endif
  reset();
}

Fiber::~Fiber() {
  munmap(stack_, guard_bytes + stack_bytes);
#if !defined(__x86_64__)
  delete static_cast<ucontext_t*>(inside_);
  delete static_cast<ucontext_t*>(outside_);
#endif
}

void Fiber::enter(Fiber* self) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->outer_stack_, &self->outer_bytes_);
#endif
  self->entry_();
  std::abort();  // an entry never returns
}

void Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_outside_, static_cast<std::byte*>(stack_) + guard_bytes, stack_bytes);
#endif
#if defined(__x86_64__)
  starting = this;
  heed_emulated_switch(&outside_, inside_);
#else
  swapcontext(static_cast<ucontext_t*>(outside_), static_cast<ucontext_t*>(inside_));
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_outside_, nullptr, nullptr);
#endif
}

void Fiber::pause() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_inside_, outer_stack_, outer_bytes_);
#endif
#if defined(__x86_64__)
  heed_emulated_switch(&inside_, outside_);
#else
  swapcontext(static_cast<ucontext_t*>(inside_), static_cast<ucontext_t*>(outside_));
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_inside_, &outer_stack_, &outer_bytes_);
#endif
}

}  // namespace heed::emulated
