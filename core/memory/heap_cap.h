// Counts the bytes of the heap (operator new) towards the cap of the machine's memory.
#pragma once

#include <cstdint>
#include <new>
#include <string>

namespace heed {

/// Thrown where a block of the heap would exceed the cap. what() has the numbers of the shortage.
class HeapPastCap final : public std::bad_alloc {
 public:
  /// `bytes` are requested, and tensors and heap hold `used`.
  HeapPastCap(int64_t bytes, int64_t used, int64_t cap) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[256];  // a std::string would need the heap
};

/// The text of an error about lack of memory: with the numbers of a HeapPastCap, else without numbers.
std::string out_of_memory_text(const std::bad_alloc& error);

/// Number of bytes by which the heap may exceed the cap: to report an error takes memory even where tensors
/// have reached the cap.
inline constexpr int64_t heap_reserve = int64_t{16} << 20;

/// Counts bytes of the heap: in a program whose operator new calls this (train/main.cpp), heap and tensors
/// together stay within cap_memory(). Frees cached memory of tensors where the cap demands it; where that is
/// not enough, counts nothing and throws HeapPastCap.
void take_heap(int64_t bytes);
/// Subtracts bytes that take_heap() counted.
void give_heap(int64_t bytes) noexcept;

/// The bytes that are counted now; 0 in a program whose operator new does not count.
int64_t heap_bytes();
/// The bytes that the cap leaves for the heap, beside tensors and their cache; 2^60 where there is no cap or
/// nothing is counted.
int64_t heap_left();

}  // namespace heed
