// Maps other than softmax with their gradients, in plain double loops.
#pragma once

#include "heed/tests/core/kernels/attention_reference.h"

namespace heed::reference {

/// The map's entry for the softmax weight a of query i and key j in head h, and its derivative by a.
using Entry = std::function<std::pair<double, double>(int64_t h, int64_t i, int64_t j, double a)>;

/// sum_j entry(a_ij) v_j with a = softmax(scale q k^T) over the visible keys.
inline test::MapResult projected(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout,
                                 double scale,
                                 const std::function<bool(int64_t b, int64_t i, int64_t j)>& seen,
                                 const Entry& entry) {
  const int64_t B = q.extent(0), H = q.extent(1), N = q.extent(2), M = k.extent(2), d = q.extent(3),
                e = v.extent(3);
  const auto qs = q.to_doubles(), ks = k.to_doubles(), vs = v.to_doubles(), gs = dout.to_doubles();
  test::MapResult r;
  r.out.assign(gs.size(), 0);
  r.dq.assign(qs.size(), 0);
  r.dk.assign(ks.size(), 0);
  r.dv.assign(vs.size(), 0);
  const auto at = [](int64_t head, int64_t length, int64_t t, int64_t width, int64_t c) {
    return static_cast<size_t>((head * length + t) * width + c);
  };
  for (int64_t head = 0; head < B * H; ++head) {
    for (int64_t i = 0; i < N; ++i) {
      std::vector<double> a(static_cast<size_t>(M)), da(a.size());
      double total = 0, mean = 0;
      for (int64_t j = 0; j < M; ++j) {
        if (!seen(head / H, i, j)) continue;
        double s = 0;
        for (int64_t c = 0; c < d; ++c) s += qs[at(head, N, i, d, c)] * ks[at(head, M, j, d, c)];
        total += a[static_cast<size_t>(j)] = std::exp(scale * s);
      }
      if (total == 0) continue;
      for (int64_t j = 0; j < M; ++j) {
        if (!seen(head / H, i, j)) continue;
        double& mine = a[static_cast<size_t>(j)];
        mine /= total;
        const auto [weight, slope] = entry(head % H, i, j, mine);
        double dweight = 0;
        for (int64_t c = 0; c < e; ++c) {
          r.out[at(head, N, i, e, c)] += weight * vs[at(head, M, j, e, c)];
          r.dv[at(head, M, j, e, c)] += weight * gs[at(head, N, i, e, c)];
          dweight += gs[at(head, N, i, e, c)] * vs[at(head, M, j, e, c)];
        }
        da[static_cast<size_t>(j)] = dweight * slope;
        mean += mine * dweight * slope;
      }
      for (int64_t j = 0; j < M; ++j) {
        const double ds = a[static_cast<size_t>(j)] * (da[static_cast<size_t>(j)] - mean) * scale;
        for (int64_t c = 0; c < d; ++c) {
          r.dq[at(head, N, i, d, c)] += ds * ks[at(head, M, j, d, c)];
          r.dk[at(head, M, j, d, c)] += ds * qs[at(head, N, i, d, c)];
        }
      }
    }
  }
  return r;
}

struct StructuredResult {
  std::vector<double> out, dv, dstructure, derror;
};

/// w = |structure| + error [H, N, N], rows divided by the sum of |w| over visible pairs, times v [B, H, N,
/// dv].
inline StructuredResult structured(const Tensor& v, const Tensor& dout, const std::vector<double>& structure,
                                   const std::vector<double>& error,
                                   const std::function<bool(int64_t i, int64_t j)>& seen) {
  const int64_t B = v.extent(0), H = v.extent(1), N = v.extent(2), e = v.extent(3);
  const auto vs = v.to_doubles(), gs = dout.to_doubles();
  const auto sign = [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; };
  StructuredResult r{std::vector<double>(gs.size()), std::vector<double>(vs.size()),
                     std::vector<double>(structure.size()), std::vector<double>(structure.size())};
  for (int64_t head = 0; head < B * H; ++head) {
    for (int64_t i = 0; i < N; ++i) {
      const auto row = static_cast<size_t>((head % H * N + i) * N);
      const auto value = [&](int64_t j, int64_t c) { return static_cast<size_t>((head * N + j) * e + c); };
      std::vector<double> w(static_cast<size_t>(N)), da(w.size());
      double total = 0, mean = 0;
      for (int64_t j = 0; j < N; ++j) {
        if (!seen(i, j)) continue;
        const auto n = static_cast<size_t>(j);
        w[n] = std::abs(structure[row + n]) + error[row + n];
        total += std::abs(w[n]);
      }
      for (int64_t j = 0; j < N && total > 0; ++j) {
        const auto n = static_cast<size_t>(j);
        if (!seen(i, j)) continue;
        for (int64_t c = 0; c < e; ++c) {
          r.out[value(i, c)] += w[n] / total * vs[value(j, c)];
          r.dv[value(j, c)] += w[n] / total * gs[value(i, c)];
          da[n] += gs[value(i, c)] * vs[value(j, c)];
        }
        mean += da[n] * w[n] / total;
      }
      for (int64_t j = 0; j < N && total > 0; ++j) {
        const auto n = static_cast<size_t>(j);
        if (!seen(i, j)) continue;
        const double dw = (da[n] - sign(w[n]) * mean) / total;
        r.derror[row + n] += dw;
        r.dstructure[row + n] += dw * sign(structure[row + n]);
      }
    }
  }
  return r;
}

}  // namespace heed::reference
