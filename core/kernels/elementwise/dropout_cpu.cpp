// Dropout on the CPU: blocks of random bits in vector lanes.
#include "heed/core/kernels/elementwise/dropout.h"

#include <algorithm>

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

constexpr int64_t block = simd::KeepBits::block;
static_assert(light_grain % (block * simd::KeepBits::lanes) == 0, "tasks are whole vectors of blocks");

/// y[e] = x[e] scale where bit e of `mask` is set, else 0, for the `count` elements of a block.
template <class T>
void apply_mask(uint32_t mask, int64_t count, T scale, const T* x, T* y) {
  constexpr int64_t n = simd::Lanes<T>::count;
  if (count == block) {
#pragma GCC unroll 8
    for (int64_t e = 0; e < block; e += n)
      simd::store(y + e, simd::where_kept<T>(mask >> e, simd::load(x + e) * scale));
    return;
  }
  for (int64_t e = 0; e < count; ++e) y[e] = ((mask >> e) & 1) != 0 ? x[e] * scale : T(0);
}

/// Elements [begin, end) of x, whose numbers follow each other from `number` on.
struct ElementRun {
  int64_t end;
  uint64_t number;
};

/// The elements of x from `begin` to at most `end` whose numbers follow each other.
ElementRun run_from(int64_t begin, int64_t end, int64_t width, const int32_t* places) {
  if (places == nullptr) return {end, static_cast<uint64_t>(begin)};
  const int64_t row = begin / width;
  int64_t next = row + 1;
  while (next * width < end && places[next] == places[next - 1] + 1) ++next;
  return {std::min(end, next * width), static_cast<uint64_t>(places[row] * width + begin % width)};
}

}  // namespace

/// y[i] = x[i] / (1 - p) where the 16 bits of element i are at least the threshold, else 0. One task is a run
/// of elements, drawn a vector of blocks at a time.
template <>
void Dropout::cpu<target_isa>(const Tensor& x, double p, const Draw& draw, const PaddedPlaces& places,
                              const Tensor& y) {
  visit_float("dropout", x.dtype(), [&]<class T>(Type<T>) {
    const T* inputs = x.data<T>();
    T* outputs = y.data<T>();
    const simd::KeepBits bits(draw.seed, Draw::high(draw.stream, *draw.tick.data<int64_t>()),
                              dropout_threshold(p));
    const T scale = static_cast<T>(dropout_scale(p));
    const int64_t width = places.places ? x.extent(2) : 1;
    const int32_t* row_places = places.places ? places.places.data<int32_t>() : nullptr;
    const uint64_t elements_of_earlier_processes =
        skipped_draws(places.places ? places.padded_rows * width : x.size());
    simd::Counters lane = {};  // 0, 1, 2, ...
    for (uint64_t i = 0; i < simd::KeepBits::lanes; ++i) lane[i] = i;
    parallel_rows(x.size(), light_grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const ElementRun run = run_from(i, end, width, row_places);
        for (uint64_t element = run.number + elements_of_earlier_processes; i < run.end;) {
          const simd::Counters masks = bits.keep_masks(lane + element / block);
          auto offset = static_cast<int64_t>(element % block);  // first element in a block
          for (int b = 0; b < simd::KeepBits::lanes && i < run.end; ++b, offset = 0) {
            const int64_t count = std::min(block - offset, run.end - i);
            apply_mask(static_cast<uint32_t>(masks[b]) >> offset, count, scale, inputs + i, outputs + i);
            i += count;
            element += static_cast<uint64_t>(count);
          }
        }
      }
    });
  });
  Count::add(x.size());
}

}  // namespace heed::kernel
