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

}  // namespace

/// Computes y with one thread per 16 elements. Where this process has part of a batch, its elements follow
/// those of other processes in the numbering of random bits.
void Dropout::cuda(const Tensor& x, double p, const Draw& draw, const Tensor& y) {
  visit_float("dropout", x.dtype(), [&]<class T>(Type<T>) {
    const T* inputs = x.data<T>();
    T* outputs = y.data<T>();
    const uint64_t elements_of_earlier_processes = skipped_draws(x.size());
    const bool aligned = elements_of_earlier_processes % block_size == 0 && cuda::packs<block_size>(inputs) &&
                         cuda::packs<block_size>(outputs);
    const auto offset = x.size() > 0 ? static_cast<int64_t>(elements_of_earlier_processes % block_size) : 0;
    cuda::run(aligned ? drop<T, true> : drop<T, false>,
              cuda::grid_over(ceil_div(x.size() + offset, block_size)), inputs, x.size(), draw.seed,
              draw.stream, draw.tick.data<int64_t>(), elements_of_earlier_processes, dropout_threshold(p),
              static_cast<T>(dropout_scale(p)), outputs);
  });
  Count::add(x.size());
}

}  // namespace heed::kernel
