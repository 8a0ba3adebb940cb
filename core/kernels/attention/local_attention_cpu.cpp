// Attention to windows on the CPU, query by query; its gradient head by head.
#include "heed/core/kernels/attention/local_attention.h"

#include <cmath>
#include <limits>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

template <class T>
struct Call {
  int64_t batch, heads, queries, keys, d, dv;
  T scale, inverse_variance;  // narrow: 1 / sigma^2
  const LocalParams& params;
  const int32_t* lengths;

  Call(const Tensor& q, const Tensor& k, const Tensor& v, const LocalParams& t)
      : batch(q.extent(0)),
        heads(q.extent(1)),
        queries(q.extent(2)),
        keys(k.extent(2)),
        d(q.extent(3)),
        dv(v.extent(3)),
        scale(static_cast<T>(t.scale)),
        inverse_variance(static_cast<T>(1 / (t.sigma * t.sigma))),
        params(t),
        lengths(t.key_lengths ? t.key_lengths.data<int32_t>() : nullptr) {}

  int64_t max_keys() const { return std::min(2 * std::min(params.reach, keys) + 1, keys); }
  int64_t grain() const { return flops_per_task / (2 * (max_keys() + 1) * (d + dv + 8)) + 1; }
};

/// The weights of one query over its window, and what their gradient needs.
template <class T>
class Window {
 public:
  static int64_t scratch(const Call<T>& call) { return 4 * BumpAllocator<T>::rounded(call.max_keys()); }
  Window(const Call<T>& call, T* memory) : call_(call), arena_(memory) {
    weights = arena_.take(call.max_keys());
    bell_ = arena_.take(call.max_keys());
    scores_ = arena_.take(call.max_keys());
    soft_ = arena_.take(call.max_keys());
  }

  int64_t first = 0, count = 0;
  T* weights;  // of the values: Gaussian and all

  /// Flops done. A centre that is no number gives no window and sets `broken`.
  int64_t compute(int64_t b, int64_t i, T centre, const T* q, Rows<T> k) {
    const LocalParams& t = call_.params;
    broken = centre != centre;
    centre_ = static_cast<double>(centre);
    int64_t open = call_.keys;
    if (call_.lengths != nullptr) open = std::clamp<int64_t>(call_.lengths[b], 0, open);
    if (t.causal) open = std::clamp<int64_t>(t.first_query + i + 1, 0, open);
    count = 0;
    if (broken || open == 0) return 0;
    const auto far = static_cast<double>(call_.keys + t.reach) + 2;
    const double middle = std::clamp(centre_, -far, far);
    const auto reach = static_cast<double>(t.reach);
    const bool real = t.window == WindowCentre::real;
    first = static_cast<int64_t>(real ? std::ceil(middle - reach) : std::floor(middle) - reach);
    const auto last = static_cast<int64_t>(real ? std::floor(middle + reach) : std::floor(middle) + reach);
    first = std::max<int64_t>(first, 0);
    count = std::max<int64_t>(std::min(last + 1, open) - first, 0);
    if (count == 0) return 0;
    T max_score = -std::numeric_limits<T>::infinity();
    for (int64_t c = 0; c < count; ++c) {
      const double off = static_cast<double>(first + c) - centre_;
      bell_[c] =
          t.gauss == Gauss::none ? T(1) : static_cast<T>(std::exp(-off * off / (2 * t.sigma * t.sigma)));
      scores_[c] = call_.scale * lanes::dot(q, k.from(first + c).data, call_.d);
      soft_[c] = t.gauss == Gauss::pre_score ? scores_[c] * bell_[c] : scores_[c];
      max_score = std::max(max_score, soft_[c]);
    }
    T total = 0;
    for (int64_t c = 0; c < count; ++c) total += soft_[c] = std::exp(soft_[c] - max_score);
    for (int64_t c = 0; c < count; ++c) {
      soft_[c] /= total;
      weights[c] = t.gauss == Gauss::post ? soft_[c] * bell_[c] : soft_[c];
    }
    return count * (2 * call_.d + 8);
  }

  /// From the gradients of `weights` to those of the scaled products (in place) and of the centre.
  T backpropagate(T* dweights) {
    const LocalParams& t = call_.params;
    const bool post = t.gauss == Gauss::post;
    T inner = 0, dcentre = 0;
    for (int64_t c = 0; c < count; ++c) inner += weights[c] * dweights[c];
    for (int64_t c = 0; c < count; ++c) {
      const T offset_over_variance =
          (static_cast<T>(static_cast<double>(first + c) - centre_)) * call_.inverse_variance;
      if (post) dcentre += weights[c] * dweights[c] * offset_over_variance;
      const T dscore = soft_[c] * ((post ? bell_[c] : T(1)) * dweights[c] - inner);
      if (t.gauss == Gauss::pre_score) dcentre += dscore * scores_[c] * bell_[c] * offset_over_variance;
      dweights[c] = t.gauss == Gauss::pre_score ? dscore * bell_[c] : dscore;
    }
    return dcentre;
  }

  bool broken = false;

 private:
  const Call<T>& call_;
  BumpAllocator<T> arena_;
  T *bell_, *scores_, *soft_;
  double centre_ = 0;
};

template <class T>
void add_scaled(T* to, const T* from, T scale_log2, int64_t count) {
#pragma GCC ivdep
  for (int64_t c = 0; c < count; ++c) to[c] += scale_log2 * from[c];
}

/// out[b, h, i, :] = sum_j w_ij v_j over the keys j in the window of query i; NaN where its centre is NaN.
/// One task is some query rows (b, h, i).
template <class T>
void forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
             const LocalParams& params, const Tensor& out) {
  const Call<T> call(q, k, v, params);
  const HeadView<const T> qs(q), ks(k), vs(v);
  const HeadView<T> outs(out);
  const T* centres = centre.data<T>();
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * Window<T>::scratch(call));
  parallel_rows(call.batch * call.heads * call.queries, call.grain(), [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    Window<T> window(call, part.template data<T>());
    int64_t flops = 0;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t i = row % call.queries, head = row / call.queries;
      const int64_t b = head / call.heads, h = head % call.heads;
      flops += window.compute(b, i, centres[row], qs.at(b, h, i), {ks.at(b, h, 0), ks.ld});
      T* to = outs.at(b, h, i);
      std::fill_n(to, call.dv, window.broken ? std::numeric_limits<T>::quiet_NaN() : T(0));
      for (int64_t c = 0; c < window.count; ++c)
        add_scaled(to, vs.at(b, h, window.first + c), window.weights[c], call.dv);
      flops += 2 * window.count * call.dv;
    }
    Count::add(flops);
  });
}

/// dq, dk, dv and dcentre [B, H, Tq]; the weights of each window are computed again. One task is some heads:
/// each goes through its queries in order and adds to its own dk and dv.
template <class T>
void backward(const LocalAttentionBackTensors& t, const LocalParams& params) {
  const Call<T> call(t.q, t.k, t.v, params);
  const HeadView<const T> qs(t.q), ks(t.k), vs(t.v), douts(t.dout);
  const HeadView<T> dqs(t.dq), dks(t.dk), dvs(t.dv);
  const T* centres = t.centre.data<T>();
  T* dcentres = t.dcentre.data<T>();
  const int64_t dweights_size = BumpAllocator<T>::rounded(call.max_keys());
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (Window<T>::scratch(call) + dweights_size));
  parallel_rows(call.batch * call.heads, call.grain() / (2 * call.queries + 1),
                [&](int64_t begin, int64_t end) {
                  const Scratch::Part part(scratch);
                  T* dweights = part.template data<T>();
                  Window<T> window(call, dweights + dweights_size);
                  int64_t flops = 0;
                  for (int64_t head = begin; head < end; ++head) {
                    const int64_t b = head / call.heads, h = head % call.heads;
                    zero_rows(dks.at(b, h, 0), dks.ld, call.keys, call.d);
                    zero_rows(dvs.at(b, h, 0), dvs.ld, call.keys, call.dv);
                    for (int64_t i = 0; i < call.queries; ++i) {
                      // Weights w of query i, dweights_j = dout . v_j, and dv_j += w_j dout.
                      const int64_t row = head * call.queries + i;
                      const T *own = qs.at(b, h, i), *dout_row = douts.at(b, h, i);
                      flops += window.compute(b, i, centres[row], own, {ks.at(b, h, 0), ks.ld});
                      for (int64_t c = 0; c < window.count; ++c) {
                        dweights[c] = lanes::dot(dout_row, vs.at(b, h, window.first + c), call.dv);
                        add_scaled(dvs.at(b, h, window.first + c), dout_row, window.weights[c], call.dv);
                      }
                      // dweights becomes the gradient of the scaled products, which gives dq and is added to
                      // dk.
                      dcentres[row] = window.backpropagate(dweights);
                      T* down = dqs.at(b, h, i);
                      std::fill_n(down, call.d, T(0));
                      for (int64_t c = 0; c < window.count; ++c) {
                        const T dscore = call.scale * dweights[c];
                        add_scaled(down, ks.at(b, h, window.first + c), dscore, call.d);
                        add_scaled(dks.at(b, h, window.first + c), own, dscore, call.d);
                      }
                      flops += window.count * 4 * (call.d + call.dv);
                    }
                  }
                  Count::add(flops);
                });
}

}  // namespace

template <>
void LocalAttention::cpu<here>(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
                               const LocalParams& params, const Tensor& out) {
  visit_float("local_attention", q.dtype(),
              [&](auto type) { forward<typename decltype(type)::type>(q, k, v, centre, params, out); });
}

template <>
void LocalAttentionBack::cpu<here>(const LocalAttentionBackTensors& t, const LocalParams& params) {
  visit_float("local_attention", t.q.dtype(),
              [&](auto type) { backward<typename decltype(type)::type>(t, params); });
}

}  // namespace heed::kernel
