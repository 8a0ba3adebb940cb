// The elements that one dropout keeps, on the CPU: blocks of random bits in vector lanes.
#pragma once

#include <algorithm>

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {

/// Applies a DropoutMask to runs of elements of a tensor that holds T.
template <class T>
class DroppedElements {
 public:
  /// `shape` is that of the tensor [..., W], whose elements are numbered in order or by mask.places.
  DroppedElements(const Shape& shape, const DropoutMask& mask)
      : bits_(mask.draw.seed, mask.p > 0 ? Draw::high(mask.draw.stream, *mask.draw.tick.data<int64_t>()) : 0,
              dropout_threshold(mask.p)),
        scale_(static_cast<T>(dropout_scale(mask.p))) {
    if (mask.places.places) {
      width_ = shape[-1];
      places_ = mask.places.places.data<int32_t>();
    }
    elements_of_earlier_processes_ = skipped_draws(places_ ? mask.places.padded_rows * width_ : shape.size());
  }

  /// y[i] = x[i] / (1 - p) where element first + i is kept, else 0, for i < count. y may be x.
  void operator()(int64_t first, int64_t count, const T* x, T* y) const {
    simd::Counters lane = {};  // 0, 1, 2, ...
    for (uint64_t i = 0; i < simd::KeepBits::lanes; ++i) lane[i] = i;
    for (int64_t i = 0; i < count;) {
      const Run run = run_from(first + i, first + count);
      const int64_t end = run.end - first;
      for (uint64_t element = run.number + elements_of_earlier_processes_; i < end;) {
        const simd::Counters masks = bits_.keep_masks(lane + element / block);
        auto offset = static_cast<int64_t>(element % block);  // first element in a block
        for (int b = 0; b < simd::KeepBits::lanes && i < end; ++b, offset = 0) {
          const int64_t part = std::min(block - offset, end - i);
          apply(static_cast<uint32_t>(masks[b]) >> offset, part, x + i, y + i);
          i += part;
          element += static_cast<uint64_t>(part);
        }
      }
    }
  }

 private:
  static constexpr int64_t block = simd::KeepBits::block;

  /// Elements up to `end` whose numbers follow each other from `number` on.
  struct Run {
    int64_t end;
    uint64_t number;
  };

  /// The elements from `begin` to at most `end` whose numbers follow each other.
  Run run_from(int64_t begin, int64_t end) const {
    if (places_ == nullptr) return {end, static_cast<uint64_t>(begin)};
    const int64_t row = begin / width_;
    int64_t next = row + 1;
    while (next * width_ < end && places_[next] == places_[next - 1] + 1) ++next;
    return {std::min(end, next * width_), static_cast<uint64_t>(places_[row] * width_ + begin % width_)};
  }

  /// y[e] = x[e] scale where bit e of `mask` is set, else 0, for the `count` elements of a block.
  void apply(uint32_t mask, int64_t count, const T* x, T* y) const {
    constexpr int64_t n = simd::Lanes<T>::count;
    if (count == block) {
#pragma GCC unroll 8
      for (int64_t e = 0; e < block; e += n)
        simd::store(y + e, simd::where_kept<T>(mask >> e, simd::load(x + e) * scale_));
      return;
    }
    for (int64_t e = 0; e < count; ++e) y[e] = ((mask >> e) & 1) != 0 ? x[e] * scale_ : T(0);
  }

  simd::KeepBits bits_;
  T scale_;
  int64_t width_ = 1;
  const int32_t* places_ = nullptr;
  uint64_t elements_of_earlier_processes_ = 0;
};

}  // namespace heed::kernel
