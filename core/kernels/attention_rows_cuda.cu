// Attention of few queries on a device, as in decoding, where tiles of queries would be mostly empty: a block
// for each query, which takes its keys 128 at a time, a thread for each key and then for each column of the
// values.
#include "core/cuda/block.h"
#include "core/kernels/attention_rows_device.h"

namespace heed::kernel {
namespace {

constexpr int threads = 128;

template <class T>
struct RowsCall : AttentionScores<T> {
  Heads<const T> qs, ks, vs;
  Heads<T> outs;
  T* lse;
};

/// Shared memory: the query, its sum, and one weight a thread.
template <class T>
__global__ void __launch_bounds__(threads) forward_rows(RowsCall<T> x) {
  T* query = cuda::shared<T>();
  T* sum = query + x.d;
  T* weights = sum + x.dv;
  __shared__ T scratch[32];
  const int me = static_cast<int>(threadIdx.x);
  const int64_t row = blockIdx.x, i = row % x.Tq, h = row / x.Tq % x.H, b = row / x.Tq / x.H;
  const int64_t keys = x.keys_before(b, i + 1), shared_head = h / x.group;
  const T* q = x.qs.at(b, h, i);
  for (int64_t c = me; c < x.d; c += threads) query[c] = q[c];
  for (int64_t c = me; c < x.dv; c += threads) sum[c] = T(0);
  T most = x.sink_of(h), total = most == -infinity<T> ? T(0) : T(1);
  __syncthreads();
  for (int64_t j = 0; j < keys; j += threads) {
    T score = -infinity<T>;
    if (j + me < keys) {
      const T* k = x.ks.at(b, shared_head, j + me);
      T product = T(0), steep;
      for (int64_t c = 0; c < x.d; ++c) product += query[c] * k[c];
      score =
          score_of(static_cast<const AttentionScores<T>&>(x), x.factor(), b, h, i, j + me, product, steep);
    }
    const T here = cuda::block_max(score, -infinity<T>, scratch), top = here > most ? here : most;
    const T base = top == -infinity<T> ? T(0) : top, shrink = exp2(most - base);
    const T weight = exp2(score - base);
    weights[me] = weight;
    total = total * shrink + cuda::block_sum(weight, scratch);
    most = top;
    __syncthreads();
    const int count = static_cast<int>(min(keys - j, int64_t{threads}));
    for (int64_t c = me; c < x.dv; c += threads) {
      const T* v = x.vs.at(b, shared_head, j) + c;
      T part = T(0);
      for (int n = 0; n < count; ++n) part += weights[n] * v[n * x.vs.ld];
      sum[c] = sum[c] * shrink + part;
    }
    __syncthreads();
  }
  const T inverse = total == T(0) ? T(0) : T(1) / total;
  for (int64_t c = me; c < x.dv; c += threads) x.outs.at(b, h, i)[c] = sum[c] * inverse;
  if (me == 0) x.lse[row] = total == T(0) ? -infinity<T> : (most + log2(total)) * static_cast<T>(ln_2);
}

template <class T>
void start(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms, const Tensor& out,
           const Tensor& lse) {
  const RowsCall<T> call{{q, k, v, terms},  Heads<const T>(q), Heads<const T>(k),
                         Heads<const T>(v), Heads<T>(out),     lse.data<T>()};
  cuda::run(forward_rows<T>,
            {.blocks = dim3(static_cast<unsigned>(call.B * call.H * call.Tq)),
             .threads = dim3(threads),
             .shared_bytes = static_cast<int>(call.d + call.dv + threads) * static_cast<int>(sizeof(T))},
            call);
}

}  // namespace

void attention_rows(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                    const Tensor& out, const Tensor& lse) {
  if (q.dtype() == DType::f64) return start<double>(q, k, v, terms, out, lse);
  start<float>(q, k, v, terms, out, lse);
}

}  // namespace heed::kernel
