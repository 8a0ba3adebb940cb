// Dropout on a GPU: a thread makes one block of the counters and serves the sixteen elements that share it.
#include "heed/core/kernels/elementwise/dropout.h"

#include <cstdint>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/distributed/batch_shard.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int together = 16;  ///< bytes of a block of Philox

/// Sixteen elements moved in whole 16-byte words.
template <class T>
struct alignas(16) Sixteen {
  T of[together];
};

/// y[i] = x[i] scale where the 16 bits of element i are at least `least`, else 0. A thread takes the
/// sixteen elements of a block of the counter, in whole words where `aligned`.
template <class T, bool aligned>
__global__ void __launch_bounds__(cuda::block)
    drop(const T* x, int64_t count, uint64_t seed, uint64_t stream, const int64_t* tick, uint64_t skipped,
         uint32_t least, T scale, T* y) {
  const uint64_t high = Draw::high(stream, *tick);
  const auto lead = static_cast<int64_t>(skipped % together);  // numbers of the first block that are not ours
  for (int64_t at = cuda::global_thread(); at * together < count + lead; at += cuda::grid_size()) {
    const uint32_t bits =
        dropout_sixteen(dropout_block(seed, high, skipped / together + static_cast<uint64_t>(at)), least);
    const int64_t first = at * together - lead;
    const auto kept = [&](int i, T value) { return ((bits >> i) & 1U) != 0 ? value * scale : T(0); };
    if (aligned && first + together <= count) {
      Sixteen<T> own = *reinterpret_cast<const Sixteen<T>*>(x + first);
      for (int i = 0; i < together; ++i) own.of[i] = kept(i, own.of[i]);
      *reinterpret_cast<Sixteen<T>*>(y + first) = own;
    } else {
      for (int i = 0; i < together && first + i < count; ++i) {
        if (first + i >= 0) y[first + i] = kept(i, x[first + i]);
      }
    }
  }
}

}  // namespace

/// Starts `drop` with one thread for sixteen elements. Where this process has part of a batch, numbers begin
/// at `skipped`.
void Dropout::cuda(const Tensor& x, double p, const Draw& draw, const Tensor& y) {
  visit_float("dropout", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = x.data<T>();
    T* to = y.data<T>();
    const uint64_t skipped = skipped_draws(x.size());
    const bool aligned = skipped % together == 0 &&
                         (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % 16 == 0;
    const auto lead = x.size() > 0 ? static_cast<int64_t>(skipped % together) : 0;
    cuda::run(aligned ? drop<T, true> : drop<T, false>, cuda::line(ceil_div(x.size() + lead, together)), from,
              x.size(), draw.seed, draw.stream, draw.tick.data<int64_t>(), skipped, dropout_threshold(p),
              static_cast<T>(dropout_scale(p)), to);
  });
  Count::add(x.size());
}

}  // namespace heed::kernel
