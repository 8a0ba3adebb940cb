// Attention to windows on a GPU, by one warp per query. Gradients of keys and values are summed by one warp
// per key over the queries whose window has the key: these are neighbours in the order of the windows' first
// keys.
#include "heed/core/kernels/attention/local_attention.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/sort.h"
#include "heed/core/kernels/attention/local_attention_window.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// The weights of one query over its window, and the factors that their gradient needs: memory [4, max_keys]
/// of a warp, whose lanes share the keys.
template <class T>
struct WindowWeights {
  T *weights, *gaussian, *scores, *softmax;

  __device__ WindowWeights(T* memory, int64_t max_keys)
      : weights(memory),
        gaussian(memory + max_keys),
        scores(memory + 2 * max_keys),
        softmax(memory + 3 * max_keys) {}

  /// Computes the weights of a query q [d] of head (b, h) over its window.
  __device__ void compute(const LocalAttentionCall<T>& call, const KeyWindow& window, int64_t b, int64_t h,
                          const T* q) {
    const bool pre_score = call.gauss == Gauss::pre_score, post = call.gauss == Gauss::post;
    for (int64_t n = 0; n < window.count; ++n) {
      const T score = call.scale * cuda::warp_dot(q, call.k.at(b, h, window.begin + n), call.d);
      if (cuda::lane() == n % cuda::lanes) scores[n] = score;
    }
    T max_score = minus_infinity<T>, total = 0;
    for (int64_t n = cuda::lane(); n < window.count; n += cuda::lanes) {
      gaussian[n] = call.gaussian(window, n);
      softmax[n] = pre_score ? scores[n] * gaussian[n] : scores[n];
      max_score = std::max(max_score, softmax[n]);
    }
    max_score = cuda::warp_max(max_score);
    for (int64_t n = cuda::lane(); n < window.count; n += cuda::lanes)
      total += softmax[n] = std::exp(softmax[n] - max_score);
    total = cuda::warp_sum(total);
    for (int64_t n = cuda::lane(); n < window.count; n += cuda::lanes) {
      softmax[n] /= total;
      weights[n] = post ? softmax[n] * gaussian[n] : softmax[n];
    }
    __syncwarp();
  }

  /// Replaces the gradients of `weights` in place by those of the scaled products scale q . k. Returns the
  /// gradient of the centre.
  __device__ T backpropagate(const LocalAttentionCall<T>& call, const KeyWindow& window, T* dweights) {
    const bool pre_score = call.gauss == Gauss::pre_score, post = call.gauss == Gauss::post;
    T delta = 0, dcentre = 0;
    for (int64_t n = cuda::lane(); n < window.count; n += cuda::lanes) delta += weights[n] * dweights[n];
    delta = cuda::warp_sum(delta);
    for (int64_t n = cuda::lane(); n < window.count; n += cuda::lanes) {
      const T log_gaussian_grad = call.log_gaussian_grad(window, n);
      if (post) dcentre += weights[n] * dweights[n] * log_gaussian_grad;
      const T dscore = softmax[n] * ((post ? gaussian[n] : T(1)) * dweights[n] - delta);
      if (pre_score) dcentre += dscore * scores[n] * gaussian[n] * log_gaussian_grad;
      dweights[n] = pre_score ? dscore * gaussian[n] : dscore;
    }
    __syncwarp();
    return cuda::warp_sum(dcentre);
  }
};

/// Calls f(row, b, h, i, window, weights) for every query row (b, h, i) of this warp: warps take rows in
/// turn. memory [warps of the grid, 4, max_keys].
template <class T, class F>
__device__ void each_query(const LocalAttentionCall<T>& call, T* memory, F f) {
  WindowWeights<T> weights(memory + cuda::grid_warp() * 4 * call.max_keys, call.max_keys);
  for (int64_t row = cuda::grid_warp(); row < call.batch * call.heads * call.queries;
       row += cuda::grid_warps()) {
    const int64_t i = row % call.queries, h = row / call.queries % call.heads,
                  b = row / call.queries / call.heads;
    f(row, b, h, i, call.window_of(b, i, call.centres[row]), weights);
  }
}

/// out[b, h, i, :] = sum_j w_ij v_j over the window of query i. One warp per query row; lanes are columns of
/// the output.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    attend(LocalAttentionCall<T> call, T* memory, HeadView<T> out) {
  each_query(call, memory,
             [&](int64_t, int64_t b, int64_t h, int64_t i, const KeyWindow& window, WindowWeights<T>& w) {
               w.compute(call, window, b, h, call.q.at(b, h, i));
               T* const out_row = out.at(b, h, i);
               for (int64_t c = cuda::lane(); c < call.dv; c += cuda::lanes) {
                 T sum = window.is_nan ? static_cast<T>(nan("")) : T(0);
                 for (int64_t n = 0; n < window.count; ++n)
                   sum += w.weights[n] * call.v.at(b, h, window.begin + n)[c];
                 out_row[c] = sum;
               }
               __syncwarp();
             });
}

/// The weights and gradients of products q . k of each query [rows, max_keys] that the backward pass saves,
/// and the first key and number of keys of its window.
template <class T>
struct SavedRows {
  T *weights, *dproducts;
  int32_t *begin, *count;
};

/// dq and dcentre of each query; saves its weights and gradients of products. One warp per query row.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    back_queries(LocalAttentionCall<T> call, T* memory, HeadView<const T> dout, SavedRows<T> saved,
                 HeadView<T> dq, T* dcentre) {
  each_query(call, memory,
             [&](int64_t row, int64_t b, int64_t h, int64_t i, const KeyWindow& window, WindowWeights<T>& w) {
               const T *q = call.q.at(b, h, i), *dout_row = dout.at(b, h, i);
               T* const dweights = saved.dproducts + row * call.max_keys;
               // dweights_j = dout . v_j of each key of the window.
               w.compute(call, window, b, h, q);
               for (int64_t n = 0; n < window.count; ++n) {
                 const T dweight = cuda::warp_dot(dout_row, call.v.at(b, h, window.begin + n), call.dv);
                 if (cuda::lane() == n % cuda::lanes) dweights[n] = dweight;
               }
               // dweights becomes the gradient of the scaled products, and then of q . k.
               const T centre_grad = w.backpropagate(call, window, dweights);
               for (int64_t n = cuda::lane(); n < window.count; n += cuda::lanes) {
                 saved.weights[row * call.max_keys + n] = w.weights[n];
                 dweights[n] *= call.scale;
               }
               __syncwarp();
               // dq = sum_j dproduct_j k_j over the window; lanes are columns.
               T* const dq_row = dq.at(b, h, i);
               for (int64_t c = cuda::lane(); c < call.d; c += cuda::lanes) {
                 T sum = 0;
                 for (int64_t n = 0; n < window.count; ++n)
                   sum += dweights[n] * call.k.at(b, h, window.begin + n)[c];
                 dq_row[c] = sum;
               }
               if (cuda::lane() == 0) {
                 dcentre[row] = centre_grad;
                 saved.begin[row] = static_cast<int32_t>(window.count > 0 ? window.begin : call.keys);
                 saved.count[row] = static_cast<int32_t>(window.count);
               }
               __syncwarp();
             });
}

/// dk_j = sum_i dproduct_ij q_i and dv_j = sum_i w_ij dout_i, by one warp per key j of a head, over the
/// queries whose window begins at j or less than max_keys before it. `order` [B H, Tq] sorts the queries of
/// each head by the begin of their windows. Lanes are columns.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    back_keys(LocalAttentionCall<T> call, HeadView<const T> dout, SavedRows<T> saved, const int32_t* order,
              HeadView<T> dk, HeadView<T> dv) {
  const int64_t warp = cuda::grid_warp(), j = warp % call.keys, head = warp / call.keys;
  if (head >= call.batch * call.heads) return;
  const int64_t b = head / call.heads, h = head % call.heads, first_row = head * call.queries;
  const int32_t* const queries = order + first_row;
  // The first place in the order whose window begins at `min_begin` or later.
  const auto lower_bound = [&](int64_t min_begin) {
    int64_t low = 0, high = call.queries;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (saved.begin[first_row + queries[middle]] < min_begin)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  const int64_t place_begin = lower_bound(j - call.max_keys + 1), place_end = lower_bound(j + 1);
  const auto write_sum = [&](HeadView<const T> rows, const T* factors, int64_t width, T* to) {
    for (int64_t c = cuda::lane(); c < width; c += cuda::lanes) {
      T sum = 0;
      for (int64_t place = place_begin; place < place_end; ++place) {
        const int64_t i = queries[place], row = first_row + i, n = j - saved.begin[row];
        if (n < saved.count[row]) sum += factors[row * call.max_keys + n] * rows.at(b, h, i)[c];
      }
      to[c] = sum;
    }
  };
  write_sum(call.q, saved.dproducts, call.d, dk.at(b, h, j));
  write_sum(dout, saved.weights, call.dv, dv.at(b, h, j));
}

/// Floating-point operations of the forward pass of a query, with the largest window.
template <class T>
int64_t flops_per_row(const LocalAttentionCall<T>& call) {
  return call.max_keys * (2 * (call.d + call.dv) + 8);
}

/// A grid with one warp per query row, but at most max_warps.
template <class T>
cuda::Grid query_grid(const LocalAttentionCall<T>& call) {
  return cuda::warp_per_row(std::min(call.num_rows(), cuda::max_warps));
}

/// Working memory [warps of query_grid(), 4, max_keys].
template <class T>
Tensor warp_memory(const Tensor& like, const LocalAttentionCall<T>& call) {
  const int64_t warps = int64_t{query_grid(call).blocks.x} * (cuda::block / cuda::lanes);
  return empty_like(like, Shape{warps, 4, call.max_keys});
}

}  // namespace

void LocalAttention::cuda(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
                          const LocalParams& params, const Tensor& out) {
  visit_float("local_attention", q.dtype(), [&]<class T>(Type<T>) {
    const LocalAttentionCall<T> call(q, k, v, centre, params);
    const Tensor memory = warp_memory(q, call);
    cuda::run(attend<T>, query_grid(call), call, memory.data<T>(), HeadView<T>(out));
    Count::add(call.num_rows() * flops_per_row(call));
  });
}

/// Gradients of LocalAttention: one warp per query gives dq and dcentre and saves its weights and gradients
/// of products [B H Tq, max_keys]. The queries of each head are then sorted by the first key of their window,
/// and one warp per key gives dk and dv.
void LocalAttentionBack::cuda(const LocalAttentionBackTensors& t, const LocalParams& params) {
  visit_float("local_attention", t.q.dtype(), [&]<class T>(Type<T>) {
    const LocalAttentionCall<T> call(t.q, t.k, t.v, t.centre, params);
    const int64_t num_rows = call.num_rows();
    const Tensor memory = warp_memory(t.q, call), weights = empty_like(t.q, Shape{num_rows, call.max_keys}),
                 dproducts = empty_like(weights);
    const Tensor windows(Shape{3, num_rows}, DType::i32, Device::cuda);
    int32_t *const begin = windows.data<int32_t>(), *const order = begin + 2 * num_rows;
    const SavedRows<T> saved{weights.data<T>(), dproducts.data<T>(), begin, begin + num_rows};
    const HeadView<const T> dout(t.dout);
    cuda::run(back_queries<T>, query_grid(call), call, memory.data<T>(), dout, saved, HeadView<T>(t.dq),
              t.dcentre.data<T>());
    cuda::sort_rows(reinterpret_cast<const uint32_t*>(begin), call.batch * call.heads, call.queries,
                    cuda::bits_of(call.keys), order);
    cuda::run(back_keys<T>, cuda::warp_per_row(call.batch * call.heads * call.keys), call, dout, saved,
              static_cast<const int32_t*>(order), HeadView<T>(t.dk), HeadView<T>(t.dv));
    Count::add(num_rows * (flops_per_row(call) + call.max_keys * 4 * (call.d + call.dv)));
  });
}

}  // namespace heed::kernel
