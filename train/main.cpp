// The program heed. Its operator new counts what lists and texts hold towards --memory.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "heed/core/error.h"
#include "heed/core/memory/heap_cap.h"
#include "heed/train/program.h"

namespace {

/// Bytes from which on a block counts: smaller ones are many, and hold little.
constexpr size_t min_counted_bytes = 4096;

/// Bytes of a block that count.
int64_t counted_bytes(void* block) {
  const size_t bytes = malloc_usable_size(block);
  return bytes < min_counted_bytes ? 0 : static_cast<int64_t>(bytes);
}

}  // namespace

void* operator new(size_t size) {
  void* block = nullptr;
  while ((block = std::malloc(size == 0 ? 1 : size)) == nullptr) {
    const std::new_handler make_room = std::get_new_handler();
    if (make_room == nullptr) throw std::bad_alloc();
    make_room();
  }
  // The pages of a large block are taken when it is first written.
  if (const int64_t bytes = counted_bytes(block); bytes > 0) {
    try {
      heed::take_heap(bytes);
    } catch (...) {
      std::free(block);
      throw;
    }
  }
  return block;
}

void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  if (const int64_t bytes = counted_bytes(block); bytes > 0) heed::give_heap(bytes);
  std::free(block);
}

void operator delete(void* block, size_t) noexcept { operator delete(block); }

int main(int count, char** arguments) {
  const int code = heed::run_program(count, arguments);
  if (code == static_cast<int>(heed::Fault::memory)) {
    // Threads of OpenBLAS that found no memory look for it for ever, and an ordinary end waits for them.
    std::fflush(nullptr);
    std::quick_exit(code);
  }
  return code;
}
