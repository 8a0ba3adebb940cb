// Dropout on a GPU: one thread for the 16 elements of a Philox block.
#include "heed/core/kernels/elementwise/dropout.h"

#include <cstdint>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/distributed/batch_shard.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int block_size = 16;  ///< elements of a Philox block

/// y[i] = x[i] scale where the 16 random bits of element i are at least `threshold`, else 0. A thread handles
/// the 16 elements of a Philox block, in 16-byte loads where `aligned`. In the whole batch,
/// `elements_of_earlier_processes` precede x[0].
template <class T, bool aligned>
__global__ void __launch_bounds__(cuda::block)
    drop(const T* x, int64_t count, uint64_t seed, uint64_t stream, const int64_t* tick,
         uint64_t elements_of_earlier_processes, uint32_t threshold, T scale, T* y) {
  using Pack = cuda::Pack<T, block_size>;
  const uint64_t high = Draw::high(stream, *tick);
  // Index of x[0] in its block.
  const auto offset = static_cast<int64_t>(elements_of_earlier_processes % block_size);
  for (int64_t block = cuda::global_thread(); block * block_size < count + offset;
       block += cuda::grid_size()) {
    const uint32_t mask = dropout_keep_mask(
        dropout_block(seed, high, elements_of_earlier_processes / block_size + static_cast<uint64_t>(block)),
        threshold);
    const int64_t first = block * block_size - offset;
    const auto output = [&](int e, T input) { return ((mask >> e) & 1U) != 0 ? input * scale : T(0); };
    if (aligned && first + block_size <= count) {
      Pack elements = *reinterpret_cast<const Pack*>(x + first);
      for (int e = 0; e < block_size; ++e) elements.x[e] = output(e, elements.x[e]);
      *reinterpret_cast<Pack*>(y + first) = elements;
    } else {
      for (int e = 0; e < block_size && first + e < count; ++e) {
        if (first + e >= 0) y[first + e] = output(e, x[first + e]);
      }
    }
  }
}

/// drop() for packed x [1, N, width], whose element (n, c) has the number places[n] width + c. A thread
/// handles 16 elements of a row: those of a Philox block where `width` and the numbers before x are multiples
/// of 16. Whole ones are loaded at once where `aligned`.
template <class T, bool aligned>
__global__ void __launch_bounds__(cuda::block)
    drop_packed(const T* x, int64_t rows, int width, const int32_t* places, uint64_t seed, uint64_t stream,
                const int64_t* tick, uint64_t elements_of_earlier_processes, uint32_t threshold, T scale,
                T* y) {
  const uint64_t high = Draw::high(stream, *tick);
  const int blocks_per_row = (width + block_size - 1) / block_size;
  for (int64_t item = cuda::global_thread(); item < rows * blocks_per_row; item += cuda::grid_size()) {
    const int64_t row = item / blocks_per_row;
    const int column = static_cast<int>(item % blocks_per_row) * block_size;
    const uint64_t number =
        elements_of_earlier_processes + static_cast<uint64_t>(places[row]) * width + column;
    const int count = min(width - column, block_size), skipped = static_cast<int>(number % block_size);
    uint32_t mask = dropout_keep_mask(dropout_block(seed, high, number / block_size), threshold) >> skipped;
    if (skipped + count > block_size)
      mask |= dropout_keep_mask(dropout_block(seed, high, number / block_size + 1), threshold)
              << (block_size - skipped);
    const T* from = x + row * width + column;
    T* to = y + row * width + column;
    const auto output = [&](int e, T input) { return ((mask >> e) & 1U) != 0 ? input * scale : T(0); };
    if (aligned && count == block_size) {
      using Pack = cuda::Pack<T, block_size>;
      Pack elements = *reinterpret_cast<const Pack*>(from);
      for (int e = 0; e < block_size; ++e) elements.x[e] = output(e, elements.x[e]);
      *reinterpret_cast<Pack*>(to) = elements;
    } else {
      for (int e = 0; e < count; ++e) to[e] = output(e, from[e]);
    }
  }
}

}  // namespace

/// Computes y with one thread per 16 elements. Where this process has part of a batch, its elements follow
/// those of other processes in the numbering of random bits.
void Dropout::cuda(const Tensor& x, double p, const Draw& draw, const PaddedPlaces& places, const Tensor& y) {
  Count::add(x.size());
  visit_float("dropout", x.dtype(), [&]<class T>(Type<T>) {
    const T* inputs = x.data<T>();
    T* outputs = y.data<T>();
    if (places.places) {
      const int64_t rows = x.extent(1), width = x.extent(2);
      const bool whole_packs =
          width % block_size == 0 && cuda::packs<block_size>(inputs) && cuda::packs<block_size>(outputs);
      cuda::run(whole_packs ? drop_packed<T, true> : drop_packed<T, false>,
                cuda::grid_over(rows * ceil_div(width, block_size)), inputs, rows, static_cast<int>(width),
                places.places.data<int32_t>(), draw.seed, draw.stream, draw.tick.data<int64_t>(),
                skipped_draws(places.padded_rows * width), dropout_threshold(p),
                static_cast<T>(dropout_scale(p)), outputs);
      return;
    }
    const uint64_t elements_of_earlier_processes = skipped_draws(x.size());
    const bool aligned = elements_of_earlier_processes % block_size == 0 && cuda::packs<block_size>(inputs) &&
                         cuda::packs<block_size>(outputs);
    const auto offset = x.size() > 0 ? static_cast<int64_t>(elements_of_earlier_processes % block_size) : 0;
    cuda::run(aligned ? drop<T, true> : drop<T, false>,
              cuda::grid_over(ceil_div(x.size() + offset, block_size)), inputs, x.size(), draw.seed,
              draw.stream, draw.tick.data<int64_t>(), elements_of_earlier_processes, dropout_threshold(p),
              static_cast<T>(dropout_scale(p)), outputs);
  });
}

}  // namespace heed::kernel
