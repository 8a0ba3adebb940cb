// Fibers: stacks for the threads of a block, and switches between them.
#pragma once

#include <cstddef>
#include <functional>

#include "heed/core/scope.h"

namespace heed::emulated {

/// Runs an entry function, which never returns, on its own stack. Either the fiber or its caller runs.
class Fiber : NonCopyable {
 public:
  explicit Fiber(std::function<void()> entry);
  ~Fiber();

  void resume();  ///< called outside: continues after pause(), or starts at the entry
  void pause();   ///< called inside: returns to the caller of resume()
  void reset();   ///< called outside: the next resume() starts at the entry

 private:
  static void enter(Fiber* self);

  std::function<void()> entry_;
  void* stack_;                                  // lowest address
  void *inside_ = nullptr, *outside_ = nullptr;  // saved stack pointers
  // What the address sanitizer keeps of both sides at a switch.
  void *fake_inside_ = nullptr, *fake_outside_ = nullptr;
  const void* outer_stack_ = nullptr;
  size_t outer_bytes_ = 0;
};

}  // namespace heed::emulated
