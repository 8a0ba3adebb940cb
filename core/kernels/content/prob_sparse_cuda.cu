// Measures of queries and the selection of queries by them, on a GPU: one warp measures a query, a block or a
// warp selects in a row.
#include "heed/core/kernels/content/prob_sparse.h"

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/top_k.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Extents of a call; keys, d and samples are of SparsityMeasure only.
struct Extents {
  int64_t heads, queries;
  const int32_t* lengths;
  int64_t keys = 0, d = 0, samples = 0;

  /// Number of positions of sequence b that are not padding, at most `max_length`.
  __device__ int64_t length_of(int64_t b, int64_t max_length) const {
    return lengths != nullptr ? std::clamp<int64_t>(lengths[b], 0, max_length) : max_length;
  }
};

/// measure[b, h, i] = max_u s_iu - sum_u s_iu / n over the sampled keys of query i (see SparsityMeasure). One
/// warp per query; its lanes share each product q . k_j.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    measure_queries(HeadView<const T> q, HeadView<const T> k, const T* samples, Extents extents,
                    Sampling sampling, int64_t rows, T* measure) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const int64_t i = row % extents.queries, h = row / extents.queries % extents.heads,
                b = row / extents.queries / extents.heads;
  const int64_t num_keys = extents.length_of(b, extents.keys),
                num_visible = sampling.causal ? std::min(num_keys, i + 1) : num_keys;
  if (num_visible == 0 || (sampling.same_tokens && i >= num_keys)) {
    if (cuda::lane() == 0) measure[row] = minus_infinity<T>;
    return;
  }
  const int64_t count = sampling.factor > 0
                            ? std::min(extents.samples, logarithmic(sampling.factor, num_keys))
                            : extents.samples;
  const T *query = q.at(b, h, i), *sample = samples + i * extents.samples;
  T max_score = minus_infinity<T>, total = 0;
  for (int64_t u = 0; u < count; ++u) {
    const T score =
        cuda::warp_dot(query, k.at(b, h, sampled_key(sample[u], num_visible, sampling)), extents.d);
    max_score = std::max(max_score, score);
    total += score;
  }
  if (cuda::lane() == 0)
    measure[row] = max_score - total / static_cast<T>(sampling.causal ? count : num_visible);
}

/// which[row, :] = indices of the logarithmic(factor, T) greatest of the first T numbers of a row of measure,
/// above -inf, in ascending order, then -1. One block per row.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    choose_top_queries(const T* measure, Extents extents, int64_t factor, int64_t row_width, int32_t* which) {
  __shared__ cuda::TopKScratch shared;
  const int64_t row = blockIdx.x, length = extents.length_of(row / extents.heads, extents.queries);
  cuda::choose_largest(measure + row * extents.queries, length, logarithmic(factor, length),
                       which + row * row_width, row_width, shared);
}

/// which[row, :] = the first 2 logarithmic(factor, T) indices i < T where fewer than `factor` numbers before
/// i are at least measure[row, i] > -inf, then -1. One warp per row: its lanes test 32 numbers at a time, of
/// which few are among the `factor` largest so far. largest [rows, factor] holds those, unordered.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    choose_causal_top_queries(const T* measure, Extents extents, int64_t factor, int64_t num_rows,
                              int64_t row_width, T* largest, int32_t* which) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int64_t length = extents.length_of(row / extents.heads, extents.queries);
  const int64_t max_chosen = 2 * logarithmic(factor, length);
  const T* measure_row = measure + row * extents.queries;
  int32_t* which_row = which + row * row_width;
  largest += row * std::min(factor, extents.queries);
  int64_t num_largest = 0, num_chosen = 0;
  T threshold = minus_infinity<T>;  // the least of `largest` once that holds `factor` numbers; -inf before
  for (int64_t first = 0; first < length && num_chosen < max_chosen; first += cuda::lanes) {
    const int64_t i = first + cuda::lane();
    const T measure_of_lane = i < length ? measure_row[i] : minus_infinity<T>;
    unsigned candidates = __ballot_sync(cuda::all_lanes, measure_of_lane > threshold ? 1 : 0);
    for (; candidates != 0 && num_chosen < max_chosen; candidates &= candidates - 1) {
      const int lane = __ffs(static_cast<int>(candidates)) - 1;
      const T candidate = __shfl_sync(cuda::all_lanes, measure_of_lane, lane);
      if (!(candidate > threshold)) continue;
      // The candidate is appended, or replaces the least of `largest` where that is full.
      int64_t slot = num_largest;
      if (num_largest == factor) {
        int64_t slot_of_least = extents.queries;
        for (int64_t e = cuda::lane(); e < num_largest; e += cuda::lanes)
          if (largest[e] == threshold) slot_of_least = std::min(slot_of_least, e);
        slot = cuda::warp_fold(slot_of_least, [](int64_t a, int64_t b) { return std::min(a, b); });
      } else {
        ++num_largest;
      }
      __syncwarp();
      if (cuda::lane() == 0) {
        largest[slot] = candidate;
        if (num_chosen < row_width) which_row[num_chosen] = static_cast<int32_t>(first + lane);
      }
      ++num_chosen;
      __syncwarp();
      if (num_largest < factor) continue;
      T least = largest[0];
      for (int64_t e = cuda::lane(); e < num_largest; e += cuda::lanes) least = std::min(least, largest[e]);
      threshold = cuda::warp_fold(least, [](T a, T b) { return std::min(a, b); });
    }
  }
  for (int64_t e = std::min(num_chosen, row_width) + cuda::lane(); e < row_width; e += cuda::lanes)
    which_row[e] = -1;
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

/// Extents of a selection from measure [B, H, N].
Extents extents_of(const Tensor& measure, const Tensor& lengths) {
  return {
      .heads = measure.extent(1), .queries = measure.extent(2), .lengths = cuda::pointer<int32_t>(lengths)};
}

}  // namespace

/// Computes measure with one warp per query.
void SparsityMeasure::cuda(const Tensor& q, const Tensor& k, const Tensor& samples, const Tensor& lengths,
                           const Sampling& sampling, const Tensor& measure) {
  const Extents extents{.heads = q.extent(1),
                        .queries = q.extent(2),
                        .lengths = cuda::pointer<int32_t>(lengths),
                        .keys = k.extent(2),
                        .d = q.extent(3),
                        .samples = samples.extent(1)};
  visit_float("sampled_spread", q.dtype(), [&]<class T>(Type<T>) {
    cuda::run(measure_queries<T>, cuda::warp_per_row(measure.size()), HeadView<const T>(q),
              HeadView<const T>(k), static_cast<const T*>(samples.data<T>()), extents, sampling,
              measure.size(), measure.data<T>());
  });
  Count::add(2 * measure.size() * extents.samples * extents.d);
}

/// Computes which with one block per row of measure.
void TopQueries::cuda(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which) {
  const Extents extents = extents_of(measure, lengths);
  visit_float("prob_sparse", measure.dtype(), [&]<class T>(Type<T>) {
    cuda::run(choose_top_queries<T>, cuda::block_per_row(measure.extent(0) * extents.heads),
              static_cast<const T*>(measure.data<T>()), extents, factor, which.extent(2),
              which.data<int32_t>());
  });
  Count::add(measure.size());
}

/// Computes which with one warp per row of measure.
void CausalTopQueries::cuda(const Tensor& measure, const Tensor& lengths, int64_t factor,
                            const Tensor& which) {
  const Extents extents = extents_of(measure, lengths);
  const int64_t rows = measure.extent(0) * extents.heads;
  const Tensor largest =
      empty_like(measure, Shape{rows, std::max<int64_t>(1, std::min(factor, extents.queries))});
  visit_float("prob_sparse", measure.dtype(), [&]<class T>(Type<T>) {
    cuda::run(choose_causal_top_queries<T>, cuda::warp_per_row(rows),
              static_cast<const T*>(measure.data<T>()), extents, factor, rows, which.extent(2),
              largest.data<T>(), which.data<int32_t>());
  });
  Count::add(measure.size());
}

/// Computes bias with one warp per row.
void PrefixBias::cuda(const Tensor& which, const Tensor& bias) {
  const int64_t keys = bias.extent(3);
  visit_float("prefix_bias", bias.dtype(), [&]<class T>(Type<T>) {
    cuda::run(prefix_bias<T>, cuda::warp_per_row(which.size()),
              static_cast<const int32_t*>(which.data<int32_t>()), which.size(), keys, bias.data<T>());
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel
