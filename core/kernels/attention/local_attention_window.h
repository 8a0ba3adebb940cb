// A call of local attention and the window of keys of each query, for the CPU and for devices.
#pragma once

#include <algorithm>
#include <cmath>

#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/attention/local_attention.h"

namespace heed::kernel {

/// The keys [begin, begin + count) that a query sees.
struct KeyWindow {
  int64_t begin = 0, count = 0;
  double centre = 0;
  bool is_nan = false;  ///< true where the centre is NaN: the window is empty, and the output NaN
};

/// Extents, inputs and settings of a call: queries = Tq, keys = Tk.
template <class T>
struct LocalAttentionCall {
  int64_t batch, heads, queries, keys, d, dv;
  int64_t max_keys;  ///< largest number of keys in a window
  int64_t half_width, first_query;
  T scale, inverse_variance;  ///< inverse_variance: 1 / sigma^2
  double sigma;
  WindowCentre window;
  Gauss gauss;
  bool causal;
  const int32_t* key_lengths;  ///< [B]; null: Tk
  HeadView<const T> q, k, v;
  const T* centres;  ///< [B, H, Tq]

  LocalAttentionCall(const Tensor& q_, const Tensor& k_, const Tensor& v_, const Tensor& centre,
                     const LocalParams& params)
      : batch(q_.extent(0)),
        heads(q_.extent(1)),
        queries(q_.extent(2)),
        keys(k_.extent(2)),
        d(q_.extent(3)),
        dv(v_.extent(3)),
        max_keys(std::min(2 * std::min(params.half_width, keys) + 1, keys)),
        half_width(params.half_width),
        first_query(params.first_query),
        scale(static_cast<T>(params.scale)),
        inverse_variance(static_cast<T>(1 / (params.sigma * params.sigma))),
        sigma(params.sigma),
        window(params.window),
        gauss(params.gauss),
        causal(params.causal),
        key_lengths(data_or_null<int32_t>(params.key_lengths)),
        q(q_),
        k(k_),
        v(v_),
        centres(centre.data<T>()) {}

  int64_t num_rows() const { return batch * heads * queries; }

  /// The window of query i of batch row b: of the keys that key length and causal mask leave, those with
  /// |j - centre| <= half_width, or |j - floor(centre)| <= half_width for WindowCentre::floor.
  HEED_BOTH KeyWindow window_of(int64_t b, int64_t i, T centre) const {
    KeyWindow out{.centre = static_cast<double>(centre), .is_nan = centre != centre};
    int64_t key_end = keys;
    if (key_lengths != nullptr) key_end = std::clamp<int64_t>(key_lengths[b], 0, key_end);
    if (causal) key_end = std::clamp<int64_t>(first_query + i + 1, 0, key_end);
    if (out.is_nan || key_end == 0) return out;
    // Centres far outside are clamped to one with an empty window, so that the bounds fit into int64_t.
    const auto outside = static_cast<double>(keys + half_width) + 2;
    const auto reach = static_cast<double>(half_width);
    const double clamped = std::clamp(out.centre, -outside, outside);
    const double middle = window == WindowCentre::real ? clamped : std::floor(clamped);
    const auto first = static_cast<int64_t>(std::ceil(middle - reach));
    const auto last = static_cast<int64_t>(std::floor(middle + reach));
    out.begin = std::max<int64_t>(first, 0);
    out.count = std::max<int64_t>(std::min(last + 1, key_end) - out.begin, 0);
    return out;
  }
  /// exp(-(j - centre)^2 / (2 sigma^2)) for the key j = begin + n of a window; 1 without a Gaussian.
  HEED_BOTH T gaussian(const KeyWindow& key_window, int64_t n) const {
    const double distance = static_cast<double>(key_window.begin + n) - key_window.centre;
    return gauss == Gauss::none ? T(1) : static_cast<T>(std::exp(-distance * distance / (2 * sigma * sigma)));
  }
  /// (j - centre) / sigma^2 for the key j = begin + n of a window: the derivative of the log of its Gaussian
  /// with respect to the centre.
  HEED_BOTH T log_gaussian_grad(const KeyWindow& key_window, int64_t n) const {
    return static_cast<T>(static_cast<double>(key_window.begin + n) - key_window.centre) * inverse_variance;
  }
};

}  // namespace heed::kernel
