// A stack of its own for each thread of a block, and switching between them.
#pragma once

#include <cstddef>
#include <functional>

namespace heed::emulated {

/// Runs an entry function that never returns on a stack of its own. Only one side runs at a time.
class Fiber {
 public:
  explicit Fiber(std::function<void()> entry);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();  ///< from outside: goes on where pause() was called, or at the entry
  void pause();   ///< from inside: back to whoever resumed
  void reset();   ///< from outside: forgets where it was; the next resume() starts at the entry

 private:
  static void enter(Fiber* self);

  std::function<void()> entry_;
  void* stack_;                                  // lowest address
  void *inside_ = nullptr, *outside_ = nullptr;  // saved stack pointers
  // What the address sanitizer wants to know of both sides.
  void *fake_inside_ = nullptr, *fake_outside_ = nullptr;
  const void* outer_stack_ = nullptr;
  size_t outer_bytes_ = 0;
};

}  // namespace heed::emulated
