// Attention of few queries on a device, as in decoding, where tiles of queries would be mostly empty. One
// block per query handles 128 keys at a time. Where queries are too few to fill the device, several blocks
// share the keys of a query and a second kernel joins their sums.
#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/kernels/attention/attention_few_queries_device.h"

namespace heed::kernel {
namespace {

constexpr int threads = 128;
constexpr int lanes_of_key = 8;  // that compute the product of one key with the query

template <class T>
struct RowsCall : AttentionScores<T> {
  HeadView<const T> qs, ks, vs;
  HeadView<T> outs;
  RowLogs<T> lse;
  int64_t splits, keys_of_split;  ///< blocks that share a query's keys, up to `threads`
  T* sums = nullptr;              ///< [B, H, Tq, splits, dv], where there are several
  T* split_stats = nullptr;       ///< [B, H, Tq, splits, 2]: the largest score and the sum of the weights

  /// Number of threads that share P columns of the values.
  HEED_BOTH int groups(int P) const {
    const int64_t packs = this->dv / P;
    return packs > 0 && packs < threads ? threads / static_cast<int>(packs) : 1;
  }
};

/// to[n] = query . keys[n] for n < count. Neighbouring lanes read neighbouring parts of a row.
template <class T, int P>
__device__ void put_products(const T* query, const T* keys, int64_t ld, int64_t width, int count, T* to) {
  constexpr int keys_at_once = threads / lanes_of_key, each = 4;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_key,
            first = static_cast<int>(threadIdx.x) / lanes_of_key;
  for (int done = 0; done < count; done += keys_at_once * each) {  // the same number of iterations for every
                                                                   // thread
    T product[each] = {};
    for (int64_t c = lane * P; c < width; c += lanes_of_key * P) {
      const auto left = *reinterpret_cast<const cuda::Pack<T, P>*>(query + c);
#pragma unroll
      for (int e = 0; e < each; ++e) {
        const int key = min(done + first + e * keys_at_once, count - 1);  // rows past the count are read but
                                                                          // not used
        const auto right = *reinterpret_cast<const cuda::Pack<T, P>*>(keys + key * ld + c);
#pragma unroll
        for (int p = 0; p < P; ++p) product[e] += left.x[p] * right.x[p];
      }
    }
#pragma unroll
    for (int e = 0; e < each; ++e) {
#pragma unroll
      for (int bits = lanes_of_key / 2; bits > 0; bits /= 2)
        product[e] += __shfl_xor_sync(cuda::all_lanes, product[e], bits);
      const int key = done + first + e * keys_at_once;
      if (lane == 0 && key < count) to[key] = product[e];
    }
  }
}

/// sum[group] = sum[group] correction + the group's part of sum over n of weights[n] values[n].
template <class T, int P>
__device__ void add_values(const T* weights, const T* values, int64_t ld, int64_t width, int count,
                           int groups, T correction, T* sum) {
  const int packs = static_cast<int>(width / P);
  for (int e = static_cast<int>(threadIdx.x); e < packs * groups; e += threads) {
    const int group = e / packs, c = e % packs * P;
    cuda::Pack<T, P> part{};
#pragma unroll 8
    for (int n = group; n < count; n += groups) {
      const auto value = *reinterpret_cast<const cuda::Pack<T, P>*>(values + n * ld + c);
#pragma unroll
      for (int p = 0; p < P; ++p) part.x[p] += weights[n] * value.x[p];
    }
    T* group_sum = sum + group * width + c;
#pragma unroll
    for (int p = 0; p < P; ++p) group_sum[p] = group_sum[p] * correction + part.x[p];
  }
}

template <class T>
__device__ RowLog<T> lse_of(T max_score, T weight_sum) {
  return weight_sum == T(0) ? RowLog<T>::of_no_keys() : RowLog<T>::of(max_score, log2(weight_sum));
}

/// out and lse of one query row (b, h, i) over one split of its keys, by one block: 128 keys at a time with
/// an online softmax. Shared memory holds the query, the sums of the groups, and one weight per thread.
template <class T, int P>
__global__ void __launch_bounds__(threads) forward_rows(RowsCall<T> x) {
  const int groups = x.groups(P), me = static_cast<int>(threadIdx.x);
  T* query = cuda::shared<T>();
  T* sum = query + x.d;
  T* weights = sum + groups * x.dv;
  __shared__ T scratch[cuda::lanes];
  const int64_t row = blockIdx.x, i = row % x.Tq, h = row / x.Tq % x.H, b = row / x.Tq / x.H;
  const int64_t shared_head = h / x.group, split = blockIdx.y, first = split * x.keys_of_split,
                keys = min(x.keys_before(b, i + 1), first + x.keys_of_split);
  const T* q = x.qs.at(b, h, i);
  for (int64_t c = me; c < x.d; c += threads) query[c] = q[c];
  for (int64_t c = me; c < groups * x.dv; c += threads) sum[c] = T(0);
  T max_score = split == 0 ? x.sink_of(h) : -infinity<T>,
    weight_sum = max_score == -infinity<T> ? T(0) : T(1);
  __syncthreads();
  for (int64_t j = first; j < keys; j += threads) {
    const int count = static_cast<int>(min(keys - j, int64_t{threads}));
    // Scores of up to 128 keys, one per thread.
    put_products<T, P>(query, x.ks.at(b, shared_head, j), x.ks.ld, x.d, count, weights);
    __syncthreads();
    T score = -infinity<T>, cap_grad;
    if (me < count) {
      score = score_of(static_cast<const AttentionScores<T>&>(x), x.scale_log2(), b, h, i, j + me,
                       weights[me], cap_grad);
    }
    // weights [128] relative to the largest score so far, and sum [groups, dv] += weights v.
    const T tile_max = cuda::block_max(score, -infinity<T>, scratch),
            new_max = tile_max > max_score ? tile_max : max_score;
    const T base = new_max == -infinity<T> ? T(0) : new_max, correction = exp2(max_score - base);
    const T weight = exp2(score - base);
    weights[me] = weight;
    weight_sum = weight_sum * correction + cuda::block_sum(weight, scratch);
    max_score = new_max;
    __syncthreads();
    add_values<T, P>(weights, x.vs.at(b, shared_head, j), x.vs.ld, x.dv, count, groups, correction, sum);
    __syncthreads();
  }
  // The row of out and its lse; or, for one of several splits, its sums, largest score and sum of weights.
  const bool alone = x.splits == 1;
  const T inverse = !alone ? T(1) : weight_sum == T(0) ? T(0) : T(1) / weight_sum;
  const int64_t place = row * x.splits + split;
  T* to = alone ? x.outs.at(b, h, i) : x.sums + place * x.dv;
  for (int64_t c = me; c < x.dv; c += threads) {
    T all = T(0);
    for (int group = 0; group < groups; ++group) all += sum[group * x.dv + c];
    to[c] = all * inverse;
  }
  if (me > 0) return;
  if (alone) {
    x.lse.put(row, lse_of(max_score, weight_sum));
  } else {
    x.split_stats[2 * place] = max_score;
    x.split_stats[2 * place + 1] = weight_sum;
  }
}

/// Joins the splits of each query, whose weights are relative to different scores.
template <class T>
__global__ void __launch_bounds__(threads) join_splits(RowsCall<T> x) {
  __shared__ T factors[threads], scratch[cuda::lanes];
  const int me = static_cast<int>(threadIdx.x);
  const int64_t row = blockIdx.x, i = row % x.Tq, h = row / x.Tq % x.H, b = row / x.Tq / x.H;
  const T* stats = x.split_stats + (row * x.splits + me) * 2;
  const T new_max = me < x.splits ? stats[0] : -infinity<T>,
          max_score = cuda::block_max(new_max, -infinity<T>, scratch);
  const T weight_factor = exp2(new_max - (max_score == -infinity<T> ? T(0) : max_score));
  factors[me] = weight_factor;
  const T weight_sum = cuda::block_sum(me < x.splits ? weight_factor * stats[1] : T(0), scratch);
  __syncthreads();
  const T inverse = weight_sum == T(0) ? T(0) : T(1) / weight_sum;
  for (int64_t c = me; c < x.dv; c += threads) {
    const T* sum = x.sums + row * x.splits * x.dv + c;
    T all = T(0);
#pragma unroll 8
    for (int64_t split = 0; split < x.splits; ++split) all += factors[split] * sum[split * x.dv];
    x.outs.at(b, h, i)[c] = all * inverse;
  }
  if (me == 0) x.lse.put(row, lse_of(max_score, weight_sum));
}

/// Number of keys per block, from the shape alone: all keys unless that leaves the device idle. Joining costs
/// as much as a few hundred keys.
int64_t keys_of_split(int64_t rows, int64_t keys) {
  constexpr int64_t enough_blocks = 512, few_keys = 4 * threads;
  if (keys < few_keys) return std::max<int64_t>(keys, 1);
  const int64_t splits = std::clamp<int64_t>(enough_blocks / std::max<int64_t>(rows, 1), 1, threads);
  return ceil_div(ceil_div(keys, splits), threads) * threads;
}

/// True where every row of `width` numbers starts and ends on a pack of P.
template <int P, class T>
bool in_packs(const HeadView<const T>& x, int64_t width) {
  return cuda::packs<P>(x.data) && x.batch % P == 0 && x.head % P == 0 && x.ld % P == 0 && width % P == 0;
}

/// Starts one block of 128 threads for each query row (b, h, i) and split of its keys; where keys are split,
/// a second kernel with one block per row joins the splits. Rows that start and end on whole packs are read
/// in packs of 16 bytes.
template <class T>
void start(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
           const Tensor& out, const Tensor& lse) {
  RowsCall<T> call{{q, k, v, params},
                   HeadView<const T>(q),
                   HeadView<const T>(k),
                   HeadView<const T>(v),
                   HeadView<T>(out),
                   RowLogs<T>(lse, q.extent(0) * q.extent(1) * q.extent(2)),
                   1,
                   0};
  const int64_t rows = call.B * call.H * call.Tq;
  call.keys_of_split = keys_of_split(rows, call.Tk);
  call.splits = std::max<int64_t>(1, ceil_div(call.Tk, call.keys_of_split));
  // What the splits of a row write: sums [rows, splits, dv] and stats [rows, splits, 2].
  Tensor sums, split_stats;
  if (call.splits > 1) {
    sums = Tensor(Shape{rows, call.splits, call.dv}, q.dtype(), q.device());
    split_stats = Tensor(Shape{rows, call.splits, 2}, q.dtype(), q.device());
    call.sums = sums.data<T>();
    call.split_stats = split_stats.data<T>();
  }
  const auto forward = [&](auto kernel, int P) {
    const int64_t shared = call.d + call.groups(P) * call.dv + threads;
    cuda::run(kernel,
              {.blocks = dim3(static_cast<unsigned>(rows), static_cast<unsigned>(call.splits)),
               .threads = dim3(threads),
               .shared_bytes = static_cast<int>(shared) * static_cast<int>(sizeof(T))},
              call);
  };
  constexpr int P = 16 / sizeof(T);
  if (in_packs<P>(call.ks, call.d) && in_packs<P>(call.vs, call.dv))
    forward(forward_rows<T, P>, P);
  else
    forward(forward_rows<T, 1>, 1);
  if (call.splits > 1) {
    cuda::run(join_splits<T>, {.blocks = dim3(static_cast<unsigned>(rows)), .threads = dim3(threads)}, call);
  }
}

}  // namespace

void attention_rows(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                    const Tensor& out, const Tensor& lse) {
  if (q.dtype() == DType::f64) return start<double>(q, k, v, params, out, lse);
  start<float>(q, k, v, params, out, lse);
}

}  // namespace heed::kernel
