// Measures of queries and the selection of queries by them, on a GPU: one warp measures a query, a block or a
// warp selects in a row.
#include "heed/core/kernels/content/prob_sparse.h"

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/top_k.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Extents of a call.
struct Extent {
  int64_t heads, queries, keys, d, samples;
  const int32_t* lengths;

  /// Number of positions of sequence b that are not padding, at most `max_length`.
  __device__ int64_t length_of(int64_t b, int64_t max_length) const {
    return lengths != nullptr ? std::clamp<int64_t>(lengths[b], 0, max_length) : max_length;
  }
};

/// measure[b, h, i] = max_u s_iu - sum_u s_iu / n over the sampled keys of query i (see SparsityMeasure). One
/// warp per query; its lanes share each product q . k_j.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    measure_queries(HeadView<const T> q, HeadView<const T> k, const T* samples, Extent x, Sampling sampling,
                    int64_t rows, T* measure) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const int64_t i = row % x.queries, h = row / x.queries % x.heads, b = row / x.queries / x.heads;
  const int64_t num_keys = x.length_of(b, x.keys),
                num_visible = sampling.causal ? std::min(num_keys, i + 1) : num_keys;
  if (num_visible == 0 || (sampling.same_tokens && i >= num_keys)) {
    if (cuda::lane() == 0) measure[row] = minus_infinity<T>;
    return;
  }
  const int64_t count =
      sampling.factor > 0 ? std::min(x.samples, logarithmic(sampling.factor, num_keys)) : x.samples;
  const T *query = q.at(b, h, i), *sample = samples + i * x.samples;
  T max_score = minus_infinity<T>, total = 0;
  for (int64_t u = 0; u < count; ++u) {
    const T score = cuda::warp_dot(query, k.at(b, h, sampled_key(sample[u], num_visible, sampling)), x.d);
    max_score = std::max(max_score, score);
    total += score;
  }
  if (cuda::lane() == 0)
    measure[row] = max_score - total / static_cast<T>(sampling.causal ? count : num_visible);
}

/// which[row, :] = indices of the logarithmic(factor, T) greatest of the first T numbers of a row of measure,
/// in ascending order, then -1. One block per row.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    choose_top_queries(const T* measure, Extent x, int64_t factor, int64_t row_width, int32_t* which) {
  __shared__ cuda::TopKScratch shared;
  const int64_t row = blockIdx.x, length = x.length_of(row / x.heads, x.queries);
  cuda::choose_largest(measure + row * x.queries, length, logarithmic(factor, length),
                       which + row * row_width, row_width, shared);
}

/// which[row, :] = the first 2 logarithmic(factor, T) indices i < T where fewer than `factor` numbers before
/// i are at least measure[row, i] > -inf, then -1. One warp per row: its lanes test 32 numbers at a time, of
/// which few are among the largest so far. largest [rows, factor] holds those, unordered.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    choose_causal_top_queries(const T* measure, Extent x, int64_t factor, int64_t num_rows, int64_t row_width,
                              T* largest, int32_t* which) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int64_t length = x.length_of(row / x.heads, x.queries);
  const int64_t max_chosen = 2 * logarithmic(factor, length);
  const T* value = measure + row * x.queries;
  int32_t* out = which + row * row_width;
  largest += row * std::min(factor, x.queries);
  int64_t num_largest = 0, num_chosen = 0;
  T threshold = minus_infinity<T>;  // the least of the largest, once they are as many as `factor`
  for (int64_t first = 0; first < length && num_chosen < max_chosen; first += cuda::lanes) {
    const int64_t i = first + cuda::lane();
    const T own = i < length ? value[i] : minus_infinity<T>;
    unsigned candidates = __ballot_sync(cuda::all_lanes, own > threshold ? 1 : 0);
    for (; candidates != 0 && num_chosen < max_chosen; candidates &= candidates - 1) {
      const int lane = __ffs(static_cast<int>(candidates)) - 1;
      const T candidate = __shfl_sync(cuda::all_lanes, own, lane);
      if (!(candidate > threshold)) continue;
      // The candidate replaces the least of the largest where those are complete.
      int64_t slot = num_largest;
      if (num_largest == factor) {
        int64_t least = x.queries;
        for (int64_t e = cuda::lane(); e < num_largest; e += cuda::lanes)
          if (largest[e] == threshold) least = std::min(least, e);
        slot = cuda::warp_fold(least, [](int64_t a, int64_t b) { return std::min(a, b); });
      } else {
        ++num_largest;
      }
      __syncwarp();
      if (cuda::lane() == 0) {
        largest[slot] = candidate;
        if (num_chosen < row_width) out[num_chosen] = static_cast<int32_t>(first + lane);
      }
      ++num_chosen;
      __syncwarp();
      if (num_largest < factor) continue;
      T least_value = largest[0];
      for (int64_t e = cuda::lane(); e < num_largest; e += cuda::lanes)
        least_value = std::min(least_value, largest[e]);
      threshold = cuda::warp_fold(least_value, [](T a, T b) { return std::min(a, b); });
    }
  }
  for (int64_t e = std::min(num_chosen, row_width) + cuda::lane(); e < row_width; e += cuda::lanes)
    out[e] = -1;
}

/// bias[row, j] = 0 where j <= which[row], else -inf. One warp per row; lanes are keys.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    prefix_bias(const int32_t* which, int64_t num_rows, int64_t keys, T* bias) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  for (int64_t j = cuda::lane(); j < keys; j += cuda::lanes)
    bias[row * keys + j] = j <= which[row] ? T(0) : minus_infinity<T>;
}

Extent extent_of(const Tensor& measure, const Tensor& lengths) {
  return {measure.extent(1), measure.extent(2), measure.extent(2), 0, 0, cuda::pointer<int32_t>(lengths)};
}

}  // namespace

void SparsityMeasure::cuda(const Tensor& q, const Tensor& k, const Tensor& samples, const Tensor& lengths,
                           const Sampling& sampling, const Tensor& measure) {
  const Extent x{q.extent(1), q.extent(2),       k.extent(2),
                 q.extent(3), samples.extent(1), cuda::pointer<int32_t>(lengths)};
  visit_float("sampled_spread", q.dtype(), [&]<class T>(Type<T>) {
    cuda::run(measure_queries<T>, cuda::warp_per_row(measure.size()), HeadView<const T>(q),
              HeadView<const T>(k), static_cast<const T*>(samples.data<T>()), x, sampling, measure.size(),
              measure.data<T>());
  });
  Count::add(2 * measure.size() * x.samples * x.d);
}

void TopQueries::cuda(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which) {
  const Extent x = extent_of(measure, lengths);
  visit_float("prob_sparse", measure.dtype(), [&]<class T>(Type<T>) {
    cuda::run(choose_top_queries<T>, cuda::block_per_row(measure.extent(0) * x.heads),
              static_cast<const T*>(measure.data<T>()), x, factor, which.extent(2), which.data<int32_t>());
  });
  Count::add(measure.size());
}

void CausalTopQueries::cuda(const Tensor& measure, const Tensor& lengths, int64_t factor,
                            const Tensor& which) {
  const Extent x = extent_of(measure, lengths);
  const int64_t rows = measure.extent(0) * x.heads;
  const Tensor largest = empty_like(measure, Shape{rows, std::max<int64_t>(1, std::min(factor, x.queries))});
  visit_float("prob_sparse", measure.dtype(), [&]<class T>(Type<T>) {
    cuda::run(choose_causal_top_queries<T>, cuda::warp_per_row(rows),
              static_cast<const T*>(measure.data<T>()), x, factor, rows, which.extent(2), largest.data<T>(),
              which.data<int32_t>());
  });
  Count::add(measure.size());
}

void PrefixBias::cuda(const Tensor& which, const Tensor& bias) {
  const int64_t keys = bias.extent(3);
  visit_float("look_back", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(prefix_bias<T>, cuda::warp_per_row(which.size()),
              static_cast<const int32_t*>(which.data<int32_t>()), which.size(), keys, bias.data<T>());
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel
