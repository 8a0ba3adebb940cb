// Attention of few queries on a device, as in decoding, where tiles of queries would be mostly empty: a block
// for each query takes its keys 128 at a time, some lanes for each key and then threads for each column of
// the values. Where there are too few queries to fill a device, the keys of each are split over blocks, and
// what those have summed is joined afterwards.
#include <algorithm>

#include "core/cuda/block.h"
#include "core/cuda/pack.h"
#include "core/kernels/attention_rows_device.h"

namespace heed::kernel {
namespace {

constexpr int threads = 128;
constexpr int lanes_of_key = 8;  // that share the product of a key with the query

template <class T>
struct RowsCall : AttentionScores<T> {
  Heads<const T> qs, ks, vs;
  Heads<T> outs;
  RowLogs<T> lse;
  int64_t splits, keys_of_split;  ///< blocks that share a query's keys, up to `threads`
  T* sums = nullptr;              ///< [B, H, Tq, splits, dv], where there are several
  T* tops = nullptr;              ///< [B, H, Tq, splits, 2]: the largest score and the sum of the weights

  /// Threads of a block that share a column of the values, which they take P columns at a time.
  HEED_BOTH int groups(int P) const {
    const int64_t packs = this->dv / P;
    return packs > 0 && packs < threads ? threads / static_cast<int>(packs) : 1;
  }
};

/// Products of the query with `count` rows from `keys` on. Neighbouring lanes read a row side by side.
template <class T, int P>
__device__ void put_products(const T* query, const T* keys, int64_t ld, int64_t width, int count, T* to) {
  constexpr int keys_at_once = threads / lanes_of_key, each = 4;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_key,
            first = static_cast<int>(threadIdx.x) / lanes_of_key;
  for (int done = 0; done < count; done += keys_at_once * each) {  // as often for every thread
    T product[each] = {};
    for (int64_t c = lane * P; c < width; c += lanes_of_key * P) {
      const auto left = *reinterpret_cast<const cuda::Pack<T, P>*>(query + c);
#pragma unroll
      for (int e = 0; e < each; ++e) {
        const int key = min(done + first + e * keys_at_once, count - 1);  // read, if not wanted
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

/// sum[group] = sum[group] shrink + the group's share of the `count` values from `values` on, with weights.
template <class T, int P>
__device__ void add_values(const T* weights, const T* values, int64_t ld, int64_t width, int count,
                           int groups, T shrink, T* sum) {
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
    T* own = sum + group * width + c;
#pragma unroll
    for (int p = 0; p < P; ++p) own[p] = own[p] * shrink + part.x[p];
  }
}

template <class T>
__device__ RowLog<T> lse_of(T most, T total) {
  return total == T(0) ? RowLog<T>::nothing() : RowLog<T>::of(most, log2(total));
}

/// Shared memory: the query, the sums of the groups, and one weight a thread.
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
  T most = split == 0 ? x.sink_of(h) : -infinity<T>, total = most == -infinity<T> ? T(0) : T(1);
  __syncthreads();
  for (int64_t j = first; j < keys; j += threads) {
    const int count = static_cast<int>(min(keys - j, int64_t{threads}));
    put_products<T, P>(query, x.ks.at(b, shared_head, j), x.ks.ld, x.d, count, weights);
    __syncthreads();
    T score = -infinity<T>, steep;
    if (me < count) {
      score = score_of(static_cast<const AttentionScores<T>&>(x), x.factor(), b, h, i, j + me, weights[me],
                       steep);
    }
    const T here = cuda::block_max(score, -infinity<T>, scratch), top = here > most ? here : most;
    const T base = top == -infinity<T> ? T(0) : top, shrink = exp2(most - base);
    const T weight = exp2(score - base);
    weights[me] = weight;
    total = total * shrink + cuda::block_sum(weight, scratch);
    most = top;
    __syncthreads();
    add_values<T, P>(weights, x.vs.at(b, shared_head, j), x.vs.ld, x.dv, count, groups, shrink, sum);
    __syncthreads();
  }
  const bool alone = x.splits == 1;
  const T inverse = !alone ? T(1) : total == T(0) ? T(0) : T(1) / total;
  const int64_t place = row * x.splits + split;
  T* to = alone ? x.outs.at(b, h, i) : x.sums + place * x.dv;
  for (int64_t c = me; c < x.dv; c += threads) {
    T all = T(0);
    for (int group = 0; group < groups; ++group) all += sum[group * x.dv + c];
    to[c] = all * inverse;
  }
  if (me > 0) return;
  if (alone) {
    x.lse.put(row, lse_of(most, total));
  } else {
    x.tops[2 * place] = most;
    x.tops[2 * place + 1] = total;
  }
}

/// Joins the splits of each query: their sums belong to weights that are relative to different scores.
template <class T>
__global__ void __launch_bounds__(threads) join_splits(RowsCall<T> x) {
  __shared__ T factors[threads], scratch[cuda::lanes];
  const int me = static_cast<int>(threadIdx.x);
  const int64_t row = blockIdx.x, i = row % x.Tq, h = row / x.Tq % x.H, b = row / x.Tq / x.H;
  const T* own = x.tops + (row * x.splits + me) * 2;
  const T top = me < x.splits ? own[0] : -infinity<T>, most = cuda::block_max(top, -infinity<T>, scratch);
  const T factor = exp2(top - (most == -infinity<T> ? T(0) : most));
  factors[me] = factor;
  const T total = cuda::block_sum(me < x.splits ? factor * own[1] : T(0), scratch);
  __syncthreads();
  const T inverse = total == T(0) ? T(0) : T(1) / total;
  for (int64_t c = me; c < x.dv; c += threads) {
    const T* sum = x.sums + row * x.splits * x.dv + c;
    T all = T(0);
#pragma unroll 8
    for (int64_t split = 0; split < x.splits; ++split) all += factors[split] * sum[split * x.dv];
    x.outs.at(b, h, i)[c] = all * inverse;
  }
  if (me == 0) x.lse.put(row, lse_of(most, total));
}

/// Keys that a block takes, by the shape alone: all of them unless that leaves a device idle. Joining takes
/// as long as a few hundred keys.
int64_t keys_of_split(int64_t rows, int64_t keys) {
  constexpr int64_t enough_blocks = 512, few_keys = 4 * threads;
  if (keys < few_keys) return std::max<int64_t>(keys, 1);
  const int64_t splits = std::clamp<int64_t>(enough_blocks / std::max<int64_t>(rows, 1), 1, threads);
  return cuda::pieces(cuda::pieces(keys, splits), threads) * threads;
}

/// True where rows of heads, of `width` numbers, are whole packs.
template <int P, class T>
bool in_packs(const Heads<const T>& x, int64_t width) {
  return cuda::packs<P>(x.data) && x.batch % P == 0 && x.head % P == 0 && x.ld % P == 0 && width % P == 0;
}

template <class T>
void start(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms, const Tensor& out,
           const Tensor& lse) {
  RowsCall<T> call{{q, k, v, terms},
                   Heads<const T>(q),
                   Heads<const T>(k),
                   Heads<const T>(v),
                   Heads<T>(out),
                   RowLogs<T>(lse, q.extent(0) * q.extent(1) * q.extent(2)),
                   1,
                   0};
  const int64_t rows = call.B * call.H * call.Tq;
  call.keys_of_split = keys_of_split(rows, call.Tk);
  call.splits = std::max<int64_t>(1, cuda::pieces(call.Tk, call.keys_of_split));
  Tensor sums, tops;
  if (call.splits > 1) {
    sums = Tensor(Shape{rows, call.splits, call.dv}, q.dtype(), q.device());
    tops = Tensor(Shape{rows, call.splits, 2}, q.dtype(), q.device());
    call.sums = sums.data<T>();
    call.tops = tops.data<T>();
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

void attention_rows(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                    const Tensor& out, const Tensor& lse) {
  if (q.dtype() == DType::f64) return start<double>(q, k, v, terms, out, lse);
  start<float>(q, k, v, terms, out, lse);
}

}  // namespace heed::kernel
