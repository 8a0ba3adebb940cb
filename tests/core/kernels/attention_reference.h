// Attention and its gradients in plain double loops, and test inputs.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "heed/core/tensor.h"

namespace heed::test {

/// Numbers in [-1, 1), a pure function of `seed`.
inline std::vector<double> numbers(int64_t count, uint64_t seed) {
  std::vector<double> out(static_cast<size_t>(count));
  uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (double& x : out) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    x = static_cast<double>(state >> 11) * 0x1p-52 - 1;
  }
  return out;
}

inline Tensor tensor(const std::vector<double>& values, const Shape& shape, DType dtype) {
  if (dtype == DType::f64) return Tensor::of<double>(values, shape);
  return Tensor::of<float>(std::vector<float>(values.begin(), values.end()), shape);
}

/// A view [B, H, T, d] of memory [B, T, H, d], as after projections.
inline Tensor heads(int64_t B, int64_t H, int64_t T, int64_t d, DType dtype, uint64_t seed) {
  return view::transpose(tensor(numbers(B * T * H * d, seed), {B, T, H, d}, dtype), 1, 2);
}

inline Tensor blank_like(const Tensor& x) {
  const Shape lying{x.extent(0), x.extent(2), x.extent(1), x.extent(3)};
  return view::transpose(Tensor::full(lying, std::nan(""), x.dtype()), 1, 2);
}

/// The maximum difference; infinite where only one is NaN.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest_value = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double apart = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    largest_value =
        std::isnan(apart) ? std::numeric_limits<double>::infinity() : std::max(largest_value, apart);
  }
  return largest_value;
}
inline double distance(const Tensor& a, const std::vector<double>& b) { return distance(a.to_doubles(), b); }

/// Terms of a map as functions of (b, h, i, j).
struct MapParams {
  using At = std::function<double(int64_t, int64_t, int64_t, int64_t)>;
  double scale = 1;
  std::function<bool(int64_t, int64_t, int64_t, int64_t)> seen = [](auto...) { return true; };
  At bias = [](auto...) { return 0.0; };
  At keep = [](auto...) { return 1.0; };  ///< dropout: 0 or 1 / (1 - p)
};

struct MapResult {
  std::vector<double> out, lse, dq, dk, dv;
};

/// softmax(scale q k^T + bias) v and its gradients, spelled out.
inline MapResult reference(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout,
                           const MapParams& params) {
  const int64_t B = q.extent(0), H = q.extent(1), Tq = q.extent(2), Tk = k.extent(2), d = q.extent(3),
                e = v.extent(3);
  const auto qs = q.to_doubles(), ks = k.to_doubles(), vs = v.to_doubles(), gs = dout.to_doubles();
  MapResult r;
  r.out.assign(static_cast<size_t>(B * H * Tq * e), 0);
  r.lse.assign(static_cast<size_t>(B * H * Tq), -std::numeric_limits<double>::infinity());
  r.dq.assign(qs.size(), 0);
  r.dk.assign(ks.size(), 0);
  r.dv.assign(vs.size(), 0);
  std::vector<double> p(static_cast<size_t>(Tk)), dp(p.size());
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      const auto row = [&](int64_t t, int64_t length, int64_t width) {
        return static_cast<size_t>(((b * H + h) * length + t) * width);
      };
      for (int64_t i = 0; i < Tq; ++i) {
        double largest_value = -std::numeric_limits<double>::infinity(), total = 0;
        for (int64_t j = 0; j < Tk; ++j) {
          double s =
              params.seen(b, h, i, j) ? params.bias(b, h, i, j) : -std::numeric_limits<double>::infinity();
          for (int64_t c = 0; c < d; ++c) s += params.scale * qs[row(i, Tq, d) + c] * ks[row(j, Tk, d) + c];
          p[j] = s;
          largest_value = std::max(largest_value, s);
        }
        if (std::isinf(largest_value)) continue;
        for (double& x : p) total += x = std::exp(x - largest_value);
        r.lse[row(i, Tq, 1)] = largest_value + std::log(total);
        double mean = 0;
        for (int64_t j = 0; j < Tk; ++j) {
          p[j] /= total;
          const double keep = params.keep(b, h, i, j);
          dp[j] = 0;
          for (int64_t c = 0; c < e; ++c) {
            r.out[row(i, Tq, e) + c] += p[j] * keep * vs[row(j, Tk, e) + c];
            r.dv[row(j, Tk, e) + c] += p[j] * keep * gs[row(i, Tq, e) + c];
            dp[j] += keep * gs[row(i, Tq, e) + c] * vs[row(j, Tk, e) + c];
          }
          mean += p[j] * dp[j];
        }
        for (int64_t j = 0; j < Tk; ++j) {
          const double ds = p[j] * (dp[j] - mean) * params.scale;
          for (int64_t c = 0; c < d; ++c) {
            r.dq[row(i, Tq, d) + c] += ds * ks[row(j, Tk, d) + c];
            r.dk[row(j, Tk, d) + c] += ds * qs[row(i, Tq, d) + c];
          }
        }
      }
    }
  }
  return r;
}

struct HeadSizes {
  int64_t B, H, Tq, Tk, d, dv;
};

/// q [B, H, Tq, d], k [B, H, Tk, d], v [B, H, Tk, dv], and a gradient of the output, dout [B, H, Tq, dv].
struct HeadInputs {
  Tensor q, k, v, dout;
  HeadInputs(const HeadSizes& s, DType dtype)
      : q(heads(s.B, s.H, s.Tq, s.d, dtype, 1)),
        k(heads(s.B, s.H, s.Tk, s.d, dtype, 2)),
        v(heads(s.B, s.H, s.Tk, s.dv, dtype, 3)),
        dout(heads(s.B, s.H, s.Tq, s.dv, dtype, 4)) {}
};

}  // namespace heed::test
