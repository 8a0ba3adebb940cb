// Lists and texts beside the tensors: what the heap holds counts towards the cap of the machine's memory.
#pragma once

#include <cstdint>
#include <new>
#include <string>

namespace heed {

/// Thrown where a block of the heap would go past the cap. what() has the numbers, as the error of a tensor
/// has them.
class HeapPastCap final : public std::bad_alloc {
 public:
  /// Bytes that are asked for, that tensors and heap hold, and the cap.
  HeapPastCap(int64_t bytes, int64_t used, int64_t cap) noexcept;
  const char* what() const noexcept override { return text_; }

 private:
  char text_[256];  // a text of its own would be of the heap
};

/// The text of an error about lack of memory, with the numbers of a HeapPastCap.
std::string out_of_memory_text(const std::bad_alloc& error);

/// The heap may go this many bytes past the cap: an error needs memory even where tensors have reached it.
inline constexpr int64_t heap_reserve = int64_t{16} << 20;

/// Counts bytes of the heap beside those of tensors: a program whose operator new calls this (train/main.cpp)
/// keeps both within cap_memory() together. Gives cached memory of tensors back where the cap demands it.
/// Throws HeapPastCap, and counts nothing, where that is too little.
void take_heap(int64_t bytes);
/// Takes bytes that take_heap() counted off the count again.
void give_heap(int64_t bytes) noexcept;

/// Bytes that are counted now; 0 in a program that counts none.
int64_t heap_bytes();
/// How many more the cap leaves beside what tensors hold or cache; 2^60 where no cap is, or none are counted.
int64_t heap_left();

}  // namespace heed
