// Measures and choices of queries on a GPU: a warp measures a query, a block or a warp chooses in a row.
#include "heed/core/kernels/content/prob_sparse.h"

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/top_k.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Extents of the samples, and how many positions of a sequence are real.
struct Extent {
  int64_t heads, queries, keys, d, samples;
  const int32_t* lengths;

  __device__ int64_t real(int64_t b, int64_t most) const {
    return lengths != nullptr ? std::clamp<int64_t>(lengths[b], 0, most) : most;
  }
};

/// measure[b, h, i] = max_u s_u - sum_u s_u / n over the sampled keys of query i, as on the CPU. One warp per
/// query; its lanes share each product q . k_j.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    measure_queries(HeadView<const T> q, HeadView<const T> k, const T* samples, Extent x, Sampling sampling,
                    int64_t rows, T* measure) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const int64_t i = row % x.queries, h = row / x.queries % x.heads, b = row / x.queries / x.heads;
  const int64_t real = x.real(b, x.keys), open = sampling.look_back ? std::min(real, i + 1) : real;
  if (open == 0 || (sampling.same_tokens && i >= real)) {
    if (cuda::lane() == 0) measure[row] = cuda::lowest<T>();
    return;
  }
  const int64_t count =
      sampling.factor > 0 ? std::min(x.samples, logarithmic(sampling.factor, real)) : x.samples;
  const T *query = q.at(b, h, i), *sample = samples + i * x.samples;
  T most = cuda::lowest<T>(), total = 0;
  for (int64_t u = 0; u < count; ++u) {
    const auto j = sampling.fractions ? static_cast<int64_t>(sample[u] * static_cast<T>(open))
                                      : std::max<int64_t>(0, static_cast<int64_t>(sample[u])) % open;
    const T score = cuda::warp_dot(query, k.at(b, h, std::min(j, open - 1)), x.d);
    most = std::max(most, score);
    total += score;
  }
  if (cuda::lane() == 0) measure[row] = most - total / static_cast<T>(sampling.look_back ? count : open);
}

template <class T>
__global__ void __launch_bounds__(cuda::block)
    choose_standouts(const T* measure, Extent x, int64_t factor, int64_t room, int32_t* which) {
  __shared__ cuda::Choice shared;
  const int64_t row = blockIdx.x, length = x.real(row / x.heads, x.queries);
  cuda::choose_largest(measure + row * x.queries, length, logarithmic(factor, length), which + row * room,
                       room, shared);
}

/// Few places reach the best so far, so lanes search for them in parallel; `best` [rows, factor] holds the
/// greatest so far, unordered.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    choose_records(const T* measure, Extent x, int64_t factor, int64_t rows, int64_t room, T* best,
                   int32_t* which) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const int64_t length = x.real(row / x.heads, x.queries);
  const int64_t most = 2 * logarithmic(factor, length), kept = std::min(factor, x.queries);
  const T* value = measure + row * x.queries;
  int32_t* out = which + row * room;
  best += row * kept;
  int64_t full = 0, chosen = 0;
  T least = cuda::lowest<T>();  // of the best, once they are as many as `factor`
  for (int64_t first = 0; first < length && chosen < most; first += cuda::lanes) {
    const int64_t i = first + cuda::lane();
    const T own = i < length ? value[i] : cuda::lowest<T>();
    unsigned open = __ballot_sync(cuda::all_lanes, own > least ? 1 : 0);
    for (; open != 0 && chosen < most; open &= open - 1) {
      const int from = __ffs(static_cast<int>(open)) - 1;
      const T number = __shfl_sync(cuda::all_lanes, own, from);
      if (!(number > least)) continue;
      int64_t place = full;
      if (full == factor) {  // instead of the least
        int64_t at = x.queries;
        for (int64_t e = cuda::lane(); e < full; e += cuda::lanes)
          if (best[e] == least) at = std::min(at, e);
        place = cuda::warp_fold(at, [](int64_t a, int64_t b) { return std::min(a, b); });
      } else {
        ++full;
      }
      __syncwarp();
      if (cuda::lane() == 0) {
        best[place] = number;
        if (chosen < room) out[chosen] = static_cast<int32_t>(first + from);
      }
      ++chosen;
      __syncwarp();
      if (full < factor) continue;
      T low = best[0];
      for (int64_t e = cuda::lane(); e < full; e += cuda::lanes) low = std::min(low, best[e]);
      least = cuda::warp_fold(low, [](T a, T b) { return std::min(a, b); });
    }
  }
  for (int64_t e = std::min(chosen, room) + cuda::lane(); e < room; e += cuda::lanes) out[e] = -1;
}

template <class T>
__global__ void __launch_bounds__(cuda::block)
    look_back(const int32_t* which, int64_t rows, int64_t keys, T* bias) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  for (int64_t j = cuda::lane(); j < keys; j += cuda::lanes)
    bias[row * keys + j] = j <= which[row] ? T(0) : cuda::lowest<T>();
}

Extent extent_of(const Tensor& measure, const Tensor& lengths) {
  return {measure.extent(1), measure.extent(2), measure.extent(2), 0, 0, cuda::pointer<int32_t>(lengths)};
}

}  // namespace

void SampledSpread::cuda(const Tensor& q, const Tensor& k, const Tensor& samples, const Tensor& lengths,
                         const Sampling& sampling, const Tensor& measure) {
  const Extent x{q.extent(1), q.extent(2),       k.extent(2),
                 q.extent(3), samples.extent(1), cuda::pointer<int32_t>(lengths)};
  visit_float("sampled_spread", q.dtype(), [&]<class T>(Type<T>) {
    cuda::run(measure_queries<T>, cuda::warps(measure.size()), HeadView<const T>(q), HeadView<const T>(k),
              static_cast<const T*>(samples.data<T>()), x, sampling, measure.size(), measure.data<T>());
  });
  Count::add(2 * measure.size() * x.samples * x.d);
}

void Standouts::cuda(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which) {
  const Extent x = extent_of(measure, lengths);
  visit_float("prob_sparse", measure.dtype(), [&]<class T>(Type<T>) {
    cuda::run(choose_standouts<T>, cuda::blocks(measure.extent(0) * x.heads),
              static_cast<const T*>(measure.data<T>()), x, factor, which.extent(2), which.data<int32_t>());
  });
  Count::add(measure.size());
}

void Records::cuda(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which) {
  const Extent x = extent_of(measure, lengths);
  const int64_t rows = measure.extent(0) * x.heads;
  const Tensor best = empty_like(measure, Shape{rows, std::max<int64_t>(1, std::min(factor, x.queries))});
  visit_float("prob_sparse", measure.dtype(), [&]<class T>(Type<T>) {
    cuda::run(choose_records<T>, cuda::warps(rows), static_cast<const T*>(measure.data<T>()), x, factor, rows,
              which.extent(2), best.data<T>(), which.data<int32_t>());
  });
  Count::add(measure.size());
}

void LookBack::cuda(const Tensor& which, const Tensor& bias) {
  const int64_t keys = bias.extent(3);
  visit_float("look_back", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(look_back<T>, cuda::warps(which.size()), static_cast<const int32_t*>(which.data<int32_t>()),
              which.size(), keys, bias.data<T>());
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel
