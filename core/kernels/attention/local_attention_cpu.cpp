// Attention to windows on the CPU: forward by queries, backward by heads.
#include "heed/core/kernels/attention/local_attention.h"

#include <limits>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/attention/local_attention_window.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Number of query rows of a task.
template <class T>
int64_t rows_per_task(const LocalAttentionCall<T>& call) {
  return flops_per_task / (2 * (call.max_keys + 1) * (call.d + call.dv + 8)) + 1;
}

/// The weights of one query over its window, and the factors that their gradient needs.
template <class T>
class WindowWeights {
 public:
  /// Number of elements of the working memory.
  static int64_t scratch_size(const LocalAttentionCall<T>& call) {
    return 4 * BumpAllocator<T>::rounded(call.max_keys);
  }
  WindowWeights(const LocalAttentionCall<T>& call, T* memory) : call_(call) {
    BumpAllocator<T> arena(memory);
    weights = arena.take(call.max_keys);
    gaussian_ = arena.take(call.max_keys);
    scores_ = arena.take(call.max_keys);
    softmax_ = arena.take(call.max_keys);
  }

  KeyWindow window;
  T* weights;  ///< [window.count], of the values

  /// Computes the window and the weights of query i of head (b, h). Returns the number of operations.
  int64_t compute(int64_t b, int64_t h, int64_t i) {
    const bool pre_score = call_.gauss == Gauss::pre_score, post = call_.gauss == Gauss::post;
    window = call_.window_of(b, i, call_.centres[(b * call_.heads + h) * call_.queries + i]);
    if (window.count == 0) return 0;
    const T* q = call_.q.at(b, h, i);
    T max_score = minus_infinity<T>;
    for (int64_t n = 0; n < window.count; ++n) {
      gaussian_[n] = call_.gaussian(window, n);
      scores_[n] = call_.scale * lanes::dot(q, call_.k.at(b, h, window.begin + n), call_.d);
      softmax_[n] = pre_score ? scores_[n] * gaussian_[n] : scores_[n];
      max_score = std::max(max_score, softmax_[n]);
    }
    T total = 0;
    for (int64_t n = 0; n < window.count; ++n) total += softmax_[n] = std::exp(softmax_[n] - max_score);
    for (int64_t n = 0; n < window.count; ++n) {
      softmax_[n] /= total;
      weights[n] = post ? softmax_[n] * gaussian_[n] : softmax_[n];
    }
    return window.count * (2 * call_.d + 8);
  }

  /// Replaces the gradients of `weights` in place by those of the scaled products scale q . k. Returns the
  /// gradient of the centre.
  T backpropagate(T* dweights) {
    const bool pre_score = call_.gauss == Gauss::pre_score, post = call_.gauss == Gauss::post;
    T delta = 0, dcentre = 0;
    for (int64_t n = 0; n < window.count; ++n) delta += weights[n] * dweights[n];
    for (int64_t n = 0; n < window.count; ++n) {
      const T log_gaussian_grad = call_.log_gaussian_grad(window, n);
      if (post) dcentre += weights[n] * dweights[n] * log_gaussian_grad;
      const T dscore = softmax_[n] * ((post ? gaussian_[n] : T(1)) * dweights[n] - delta);
      if (pre_score) dcentre += dscore * scores_[n] * gaussian_[n] * log_gaussian_grad;
      T& dproduct = dweights[n];
      dproduct = pre_score ? dscore * gaussian_[n] : dscore;
    }
    return dcentre;
  }

 private:
  const LocalAttentionCall<T>& call_;
  T *gaussian_, *scores_, *softmax_;
};

/// y [count] += factor x.
template <class T>
void add_scaled(T* y, const T* x, T factor, int64_t count) {
#pragma GCC ivdep
  for (int64_t c = 0; c < count; ++c) y[c] += factor * x[c];
}

/// out[b, h, i, :] = sum_j w_ij v_j over the keys j in the window of query i; NaN where its centre is NaN.
/// One task is some query rows (b, h, i).
template <class T>
void forward(const LocalAttentionCall<T>& call, const Tensor& out) {
  const HeadView<T> outs(out);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * WindowWeights<T>::scratch_size(call));
  parallel_rows(call.num_rows(), rows_per_task(call), [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    WindowWeights<T> query(call, part.template data<T>());
    int64_t flops = 0;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t i = row % call.queries, head = row / call.queries, b = head / call.heads,
                    h = head % call.heads;
      flops += query.compute(b, h, i);
      T* out_row = outs.at(b, h, i);
      std::fill_n(out_row, call.dv, query.window.is_nan ? std::numeric_limits<T>::quiet_NaN() : T(0));
      for (int64_t n = 0; n < query.window.count; ++n)
        add_scaled(out_row, call.v.at(b, h, query.window.begin + n), query.weights[n], call.dv);
      flops += 2 * query.window.count * call.dv;
    }
    Count::add(flops);
  });
}

/// dq, dk, dv and dcentre [B, H, Tq], with recomputed weights. One task is some heads: it goes through the
/// queries of each head in order and adds to dk and dv of the keys in their windows.
template <class T>
void backward(const LocalAttentionCall<T>& call, const LocalAttentionBackTensors& t) {
  const HeadView<const T> douts(t.dout);
  const HeadView<T> dqs(t.dq), dks(t.dk), dvs(t.dv);
  const int64_t dweights_size = BumpAllocator<T>::rounded(call.max_keys);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (WindowWeights<T>::scratch_size(call) + dweights_size));
  const auto add_query = [&](int64_t b, int64_t h, int64_t i, WindowWeights<T>& query, T* dweights) {
    const T *q = call.q.at(b, h, i), *dout = douts.at(b, h, i);
    const int64_t flops = query.compute(b, h, i);
    const KeyWindow& window = query.window;
    // dweights_j = dout . v_j, and dv_j += w_j dout.
    for (int64_t n = 0; n < window.count; ++n) {
      dweights[n] = lanes::dot(dout, call.v.at(b, h, window.begin + n), call.dv);
      add_scaled(dvs.at(b, h, window.begin + n), dout, query.weights[n], call.dv);
    }
    // dweights now becomes the gradient of the scaled products: dq = sum_j dproduct_j k_j, dk_j += dproduct_j
    // q.
    t.dcentre.data<T>()[(b * call.heads + h) * call.queries + i] = query.backpropagate(dweights);
    T* dq = dqs.at(b, h, i);
    std::fill_n(dq, call.d, T(0));
    for (int64_t n = 0; n < window.count; ++n) {
      const T dproduct = call.scale * dweights[n];
      add_scaled(dq, call.k.at(b, h, window.begin + n), dproduct, call.d);
      add_scaled(dks.at(b, h, window.begin + n), q, dproduct, call.d);
    }
    return flops + window.count * 4 * (call.d + call.dv);
  };
  parallel_rows(call.batch * call.heads, rows_per_task(call) / (2 * call.queries + 1),
                [&](int64_t begin, int64_t end) {
                  const Scratch::Part part(scratch);
                  T* dweights = part.template data<T>();
                  WindowWeights<T> query(call, dweights + dweights_size);
                  int64_t flops = 0;
                  for (int64_t head = begin; head < end; ++head) {
                    const int64_t b = head / call.heads, h = head % call.heads;
                    zero_rows(dks.at(b, h, 0), dks.ld, call.keys, call.d);
                    zero_rows(dvs.at(b, h, 0), dvs.ld, call.keys, call.dv);
                    for (int64_t i = 0; i < call.queries; ++i) flops += add_query(b, h, i, query, dweights);
                  }
                  Count::add(flops);
                });
}

}  // namespace

template <>
void LocalAttention::cpu<target_isa>(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
                                     const LocalParams& params, const Tensor& out) {
  visit_float("local_attention", q.dtype(),
              [&]<class T>(Type<T>) { forward(LocalAttentionCall<T>(q, k, v, centre, params), out); });
}

template <>
void LocalAttentionBack::cpu<target_isa>(const LocalAttentionBackTensors& t, const LocalParams& params) {
  visit_float("local_attention", t.q.dtype(),
              [&]<class T>(Type<T>) { backward(LocalAttentionCall<T>(t.q, t.k, t.v, t.centre, params), t); });
}

}  // namespace heed::kernel
