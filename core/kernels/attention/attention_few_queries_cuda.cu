// Attention of few queries on a device, for example in decoding, where tiles of queries would be mostly
// empty. One block per query handles 128 keys at a time. Where queries are too few to fill the device,
// several blocks share the keys of a query and a second kernel joins their sums.
#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/kernels/attention/attention_device.h"

namespace heed::kernel {
namespace {

constexpr int threads = 128;
constexpr int lanes_per_key = 8;  // lanes that share the product of one key with the query

/// A call whose keys are cut into `splits` parts, each for one block, with at most `threads` parts. P is the
/// number of columns that a thread reads at once.
template <class T>
struct FewQueriesCall : DeviceForwardCall<T> {
  int64_t splits = 1, keys_per_split = 0;
  T* split_sums = nullptr;   ///< [B, H, Tq, splits, dv]: sums of weights times values; null for one split
  T* split_stats = nullptr;  ///< [B, H, Tq, splits, 2]: row_max and row_sum; null for one split

  /// Number of groups of threads: the keys are dealt to them, and the threads of a group share the columns.
  HEED_BOTH int num_groups(int P) const {
    const int64_t packs = this->dv / P;
    return packs > 0 && packs < threads ? threads / static_cast<int>(packs) : 1;
  }
  // Shared memory of a block: the query [d], output sums [groups, dv], and weights [threads] of 128 keys.
  HEED_BOTH int64_t sums_offset() const { return this->d; }
  HEED_BOTH int64_t weights_offset(int P) const { return sums_offset() + num_groups(P) * this->dv; }
  int64_t shared_elements(int P) const { return weights_offset(P) + threads; }
};

/// dots[n] = query . keys[n] for n < count, with rows of keys `ld` apart. Eight lanes share a key and read
/// neighbouring packs of P columns; each has four keys at a time.
template <class T, int P>
__device__ void dot_with_keys(const T* query, const T* keys, int64_t ld, int64_t width, int count, T* dots) {
  constexpr int keys_at_once = threads / lanes_per_key, keys_per_thread = 4;
  const int lane = static_cast<int>(threadIdx.x) % lanes_per_key,
            first_key = static_cast<int>(threadIdx.x) / lanes_per_key;
  // All threads have the same number of iterations, since they exchange sums.
  for (int begin = 0; begin < count; begin += keys_at_once * keys_per_thread) {
    T sum[keys_per_thread] = {};
    for (int64_t c = lane * P; c < width; c += lanes_per_key * P) {
      const auto q = *reinterpret_cast<const cuda::Pack<T, P>*>(query + c);
#pragma unroll
      for (int e = 0; e < keys_per_thread; ++e) {
        // Keys past the count repeat the last one; their sums are not used.
        const int key = min(begin + first_key + e * keys_at_once, count - 1);
        const auto k = *reinterpret_cast<const cuda::Pack<T, P>*>(keys + key * ld + c);
#pragma unroll
        for (int p = 0; p < P; ++p) sum[e] += q.x[p] * k.x[p];
      }
    }
#pragma unroll
    for (int e = 0; e < keys_per_thread; ++e) {
#pragma unroll
      for (int bits = lanes_per_key / 2; bits > 0; bits /= 2)
        sum[e] += __shfl_xor_sync(cuda::all_lanes, sum[e], bits);
      const int key = begin + first_key + e * keys_at_once;
      if (lane == 0 && key < count) dots[key] = sum[e];
    }
  }
}

/// sums[group, :] = correction sums[group, :] + sum over keys n of the group of weights[n] values[n]. A group
/// has every num_groups-th key; a thread has P columns of a group.
template <class T, int P>
__device__ void add_weighted_values(const T* weights, const T* values, int64_t ld, int64_t width, int count,
                                    int num_groups, T correction, T* sums) {
  const int packs = static_cast<int>(width / P);
  for (int e = static_cast<int>(threadIdx.x); e < packs * num_groups; e += threads) {
    const int group = e / packs, c = e % packs * P;
    cuda::Pack<T, P> part{};
#pragma unroll 8
    for (int n = group; n < count; n += num_groups) {
      const auto value = *reinterpret_cast<const cuda::Pack<T, P>*>(values + n * ld + c);
#pragma unroll
      for (int p = 0; p < P; ++p) part.x[p] += weights[n] * value.x[p];
    }
    T* group_sum = sums + group * width + c;
#pragma unroll
    for (int p = 0; p < P; ++p) group_sum[p] = group_sum[p] * correction + part.x[p];
  }
}

/// The log-sum-exp of a row from its largest score and the sum of its weights.
template <class T>
__device__ RowLse<T> lse_of(T row_max, T row_sum) {
  return row_sum == T(0) ? RowLse<T>::of_empty_row() : RowLse<T>::of(row_max, log2(row_sum));
}

/// out and lse of one query row (b, h, i) over one split of its keys, by one block: an online softmax over
/// 128 keys at a time, one score per thread.
template <class T, int P>
__global__ void __launch_bounds__(threads) forward_rows(FewQueriesCall<T> x) {
  const int num_groups = x.num_groups(P), thread = static_cast<int>(threadIdx.x);
  T* query = cuda::shared<T>();
  T* sums = query + x.sums_offset();
  T* weights = query + x.weights_offset(P);
  __shared__ T scratch[cuda::lanes];
  const int64_t row = blockIdx.x, i = row % x.Tq, h = row / x.Tq % x.H, b = row / x.Tq / x.H;
  if (i >= x.num_queries(b)) return;  // past the end of a packed sequence
  const int64_t kv_head = h / x.group, split = blockIdx.y, key_begin = split * x.keys_per_split,
                key_end = min(x.num_keys_before(b, i + 1), key_begin + x.keys_per_split);
  const T* q = x.qs.at(b, h, i);
  for (int64_t c = thread; c < x.d; c += threads) query[c] = q[c];
  for (int64_t c = thread; c < num_groups * x.dv; c += threads) sums[c] = T(0);
  T row_max = split == 0 ? x.sink_log2(h) : minus_infinity<T>,
    row_sum = row_max == minus_infinity<T> ? T(0) : T(1);
  __syncthreads();
  for (int64_t j = key_begin; j < key_end; j += threads) {
    const int count = static_cast<int>(min(key_end - j, int64_t{threads}));
    // Scores of up to 128 keys, one per thread.
    dot_with_keys<T, P>(query, x.ks.at(b, kv_head, j), x.ks.ld, x.d, count, weights);
    __syncthreads();
    T score = minus_infinity<T>, softcap_grad;
    if (thread < count) {
      score = score_of(static_cast<const AttentionScores<T>&>(x), x.scale_log2(), b, h, i, j + thread,
                       weights[thread], softcap_grad);
    }
    // weights [128] = 2^(score - row_max), and sums [groups, dv] += weights v.
    const T tile_max = cuda::block_max(score, minus_infinity<T>, scratch),
            new_max = tile_max > row_max ? tile_max : row_max;
    const T base = new_max == minus_infinity<T> ? T(0) : new_max, correction = exp2(row_max - base);
    const T weight = exp2(score - base);
    weights[thread] = weight;
    row_sum = row_sum * correction + cuda::block_sum(weight, scratch);
    row_max = new_max;
    __syncthreads();
    add_weighted_values<T, P>(weights, x.vs.at(b, kv_head, j), x.vs.ld, x.dv, count, num_groups, correction,
                              sums);
    __syncthreads();
  }
  // The row of out and its lse; or, for one of several splits, its sums, row_max and row_sum.
  const bool is_only_split = x.splits == 1;
  const T inverse = !is_only_split ? T(1) : row_sum == T(0) ? T(0) : T(1) / row_sum;
  const int64_t split_row = row * x.splits + split;
  T* result = is_only_split ? x.outs.at(b, h, i) : x.split_sums + split_row * x.dv;
  for (int64_t c = thread; c < x.dv; c += threads) {
    T total = T(0);
    for (int group = 0; group < num_groups; ++group) total += sums[group * x.dv + c];
    result[c] = total * inverse;
  }
  if (thread > 0) return;
  if (is_only_split) {
    x.lse.put(row, lse_of(row_max, row_sum));
  } else {
    x.split_stats[2 * split_row] = row_max;
    x.split_stats[2 * split_row + 1] = row_sum;
  }
}

/// out and lse of one query row (b, h, i) from its splits, by one block: out = sum_s f_s sums_s / sum_s f_s
/// row_sum_s with f_s = 2^(row_max_s - the largest row_max). Threads are splits, then columns.
template <class T>
__global__ void __launch_bounds__(threads) join_splits(FewQueriesCall<T> x) {
  __shared__ T factors[threads], scratch[cuda::lanes];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t row = blockIdx.x, i = row % x.Tq, h = row / x.Tq % x.H, b = row / x.Tq / x.H;
  if (i >= x.num_queries(b)) return;  // past the end of a packed sequence
  const T* stats = x.split_stats + (row * x.splits + thread) * 2;
  const T split_max = thread < x.splits ? stats[0] : minus_infinity<T>,
          row_max = cuda::block_max(split_max, minus_infinity<T>, scratch);
  const T factor = exp2(split_max - (row_max == minus_infinity<T> ? T(0) : row_max));
  factors[thread] = factor;
  const T row_sum = cuda::block_sum(thread < x.splits ? factor * stats[1] : T(0), scratch);
  __syncthreads();
  const T inverse = row_sum == T(0) ? T(0) : T(1) / row_sum;
  for (int64_t c = thread; c < x.dv; c += threads) {
    const T* sums = x.split_sums + row * x.splits * x.dv + c;
    T total = T(0);
#pragma unroll 8
    for (int64_t split = 0; split < x.splits; ++split) total += factors[split] * sums[split * x.dv];
    x.outs.at(b, h, i)[c] = total * inverse;
  }
  if (thread == 0) x.lse.put(row, lse_of(row_max, row_sum));
}

/// Number of keys of a split, from the shape alone: all keys unless that leaves the device idle. Joining
/// costs as much as a few hundred keys.
int64_t num_keys_per_split(int64_t rows, int64_t keys) {
  constexpr int64_t enough_blocks = 512, few_keys = 4 * threads;
  if (keys < few_keys) return std::max<int64_t>(keys, 1);
  const int64_t splits = std::clamp<int64_t>(enough_blocks / std::max<int64_t>(rows, 1), 1, threads);
  return ceil_div(ceil_div(keys, splits), threads) * threads;
}

/// True where every row of `width` numbers starts and ends at a multiple of P numbers, aligned for packs of
/// P.
template <int P, class T>
bool has_whole_packs(const HeadView<const T>& x, int64_t width) {
  return cuda::packs<P>(x.data) && x.batch % P == 0 && x.head % P == 0 && x.ld % P == 0 && width % P == 0;
}

}  // namespace

/// Launches one block of 128 threads for each query row (b, h, i) and split of its keys; where keys are
/// split, a second kernel with one block per row joins the splits. Reads rows of whole packs in packs of 16
/// bytes.
template <class T>
void few_queries_attention(const DeviceForwardCall<T>& dense) {
  FewQueriesCall<T> call{dense};
  const int64_t rows = call.B * call.H * call.Tq;
  call.keys_per_split = num_keys_per_split(rows, call.Tk);
  call.splits = std::max<int64_t>(1, ceil_div(call.Tk, call.keys_per_split));  // one without keys, too
  Tensor split_sums, split_stats;
  if (call.splits > 1) {
    split_sums = Tensor(Shape{rows, call.splits, call.dv}, dtype_of<T>, Device::cuda);
    split_stats = Tensor(Shape{rows, call.splits, 2}, dtype_of<T>, Device::cuda);
    call.split_sums = split_sums.data<T>();
    call.split_stats = split_stats.data<T>();
  }
  const auto launch = [&]<int P>(std::integral_constant<int, P>) {
    cuda::run(forward_rows<T, P>,
              {.blocks = dim3(static_cast<unsigned>(rows), static_cast<unsigned>(call.splits)),
               .threads = dim3(threads),
               .shared_bytes = static_cast<int>(call.shared_elements(P)) * static_cast<int>(sizeof(T))},
              call);
  };
  constexpr int pack_size = 16 / sizeof(T);
  if (has_whole_packs<pack_size>(call.ks, call.d) && has_whole_packs<pack_size>(call.vs, call.dv))
    launch(std::integral_constant<int, pack_size>());
  else
    launch(std::integral_constant<int, 1>());
  if (call.splits > 1) {
    cuda::run(join_splits<T>, {.blocks = dim3(static_cast<unsigned>(rows)), .threads = dim3(threads)}, call);
  }
}

template void few_queries_attention(const DeviceForwardCall<float>& call);
template void few_queries_attention(const DeviceForwardCall<double>& call);

}  // namespace heed::kernel
