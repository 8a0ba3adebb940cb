// Counts the bytes of the heap towards the cap of the machine's memory.
#pragma once

#include <cstdint>
#include <new>
#include <string>

namespace heed {

/// Thrown where a block of the heap would exceed the cap. what() has the numbers, as in the error of a
/// tensor.
class HeapPastCap final : public std::bad_alloc {
 public:
  /// Bytes that are asked for, that tensors and heap hold, and the cap.
  HeapPastCap(int64_t bytes, int64_t used, int64_t cap) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[256];  // a std::string would need the heap
};

/// The text of an error about lack of memory, with the numbers of a HeapPastCap.
std::string out_of_memory_text(const std::bad_alloc& error);

/// The heap may go this many bytes past the cap: an error needs memory even where tensors have reached it.
inline constexpr int64_t heap_reserve = int64_t{16} << 20;

/// Counts bytes of the heap: a program whose operator new calls this (train/main.cpp) keeps heap and tensors
/// together within cap_memory(). Frees cached memory of tensors where the cap demands it; where that is too
/// little, counts nothing and throws HeapPastCap.
void take_heap(int64_t bytes);
/// Subtracts bytes that take_heap() counted.
void give_heap(int64_t bytes) noexcept;

/// The bytes counted now; 0 in a program that counts none.
int64_t heap_bytes();
/// The bytes that the cap leaves for the heap, beside tensors and their cache; 2^60 without a cap or a count.
int64_t heap_left();

}  // namespace heed
