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
/// the 16 elements of a Philox block, in 16-byte loads where `aligned`. `skipped` elements belong to earlier
/// processes.
template <class T, bool aligned>
__global__ void __launch_bounds__(cuda::block)
    drop(const T* x, int64_t count, uint64_t seed, uint64_t stream, const int64_t* tick, uint64_t skipped,
         uint32_t threshold, T scale, T* y) {
  using Pack = cuda::Pack<T, block_size>;
  const uint64_t high = Draw::high(stream, *tick);
  const auto offset = static_cast<int64_t>(skipped % block_size);  // place of x[0] in the first block
  for (int64_t block = cuda::global_thread(); block * block_size < count + offset;
       block += cuda::grid_size()) {
    const uint32_t mask = dropout_keep_mask(
        dropout_block(seed, high, skipped / block_size + static_cast<uint64_t>(block)), threshold);
    const int64_t first = block * block_size - offset;
    const auto dropped = [&](int e, T value) { return ((mask >> e) & 1U) != 0 ? value * scale : T(0); };
    if (aligned && first + block_size <= count) {
      Pack elements = *reinterpret_cast<const Pack*>(x + first);
      for (int e = 0; e < block_size; ++e) elements.x[e] = dropped(e, elements.x[e]);
      *reinterpret_cast<Pack*>(y + first) = elements;
    } else {
      for (int e = 0; e < block_size && first + e < count; ++e) {
        if (first + e >= 0) y[first + e] = dropped(e, x[first + e]);
      }
    }
  }
}

}  // namespace

/// Starts `drop` with one thread per 16 elements. Where this process has part of a batch, its elements are
/// numbered from `skipped` on.
void Dropout::cuda(const Tensor& x, double p, const Draw& draw, const Tensor& y) {
  visit_float("dropout", x.dtype(), [&]<class T>(Type<T>) {
    const T* from = x.data<T>();
    T* to = y.data<T>();
    const uint64_t skipped = skipped_draws(x.size());
    const bool aligned =
        skipped % block_size == 0 && cuda::packs<block_size>(from) && cuda::packs<block_size>(to);
    const auto offset = x.size() > 0 ? static_cast<int64_t>(skipped % block_size) : 0;
    cuda::run(aligned ? drop<T, true> : drop<T, false>,
              cuda::grid_over(ceil_div(x.size() + offset, block_size)), from, x.size(), draw.seed,
              draw.stream, draw.tick.data<int64_t>(), skipped, dropout_threshold(p),
              static_cast<T>(dropout_scale(p)), to);
  });
  Count::add(x.size());
}

}  // namespace heed::kernel
