// Tests core/kernels/linear_attention/decay_scan.h: chunks joined by states, extreme decays, bit identity
// with any number of threads. The op table has values and gradients.
#include "heed/core/kernels/linear_attention/decay_scan.h"

#include <bit>
#include <cmath>

#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/attention_arguments_on_device.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed {
namespace {

using kernel::DecayInputs;
using test::blank_like;
using test::distance;
using test::heads;

/// Every number brought between two others.
Tensor squeezed(const Tensor& x, double low, double high) {
  std::vector<double> values = x.to_doubles();
  for (double& value : values) value = low + (high - low) / (1 + std::exp(-value));
  if (x.dtype() == DType::f64) return Tensor::of<double>(values, x.shape());
  return Tensor::from(std::vector<float>(values.begin(), values.end()), x.shape());
}

DecayInputs inputs(int64_t B, int64_t H, int64_t T, int64_t f, int64_t d, DType dtype, bool delta) {
  return {.q = heads(B, H, T, f, dtype, 1),
          .k = heads(B, H, T, f, dtype, 2),
          .v = heads(B, H, T, d, dtype, 3),
          .log_decay = squeezed(heads(B, H, T, delta ? 1 : f, dtype, 4), -2, 0),
          .beta = delta ? squeezed(heads(B, H, T, 1, dtype, 5), 0, 0.2) : Tensor(),
          .start = heads(B, H, f, d, dtype, 6)};
}

struct Outputs {
  Tensor out, end, rest;
  DecayInputs d;
};

Outputs run(const DecayInputs& x) {
  const auto blank = [](const Tensor& t) { return t ? blank_like(t) : Tensor(); };
  Outputs y{.out = blank(x.v), .end = blank(x.start), .rest = x.beta ? blank(x.v) : Tensor(), .d = {}};
  launch_here<kernel::DecayScan>(x, y.out, y.end, y.rest);
  y.d = {blank(x.q), blank(x.k), blank(x.v), blank(x.log_decay), blank(x.beta), blank(x.start)};
  launch_here<kernel::DecayScanBack>(x, y.rest, x.v, x.start, y.d);
  return y;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto x = a.to_doubles(), y = b.to_doubles();
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](double p, double q) {
           return std::bit_cast<uint64_t>(p) == std::bit_cast<uint64_t>(q);
         });
}

}  // namespace

TEST_CASE("decay scan kernel: pieces joined by their states are the whole") {
  const OnEachDevice here;
  for (const bool delta : {false, true}) {
    const DecayInputs x = inputs(2, 2, 100, 12, 20, DType::f64, delta);
    const Outputs whole = run(x);
    Tensor state = x.start;
    const Tensor out = blank_like(x.v);
    int64_t begin = 0;
    for (const int64_t end : {1, 2, 66, 100}) {
      const auto part = [&, begin](const Tensor& t) { return t ? view::slice(t, 2, begin, end) : t; };
      const Tensor next = blank_like(x.start);
      launch_here<kernel::DecayScan>(
          DecayInputs{part(x.q), part(x.k), part(x.v), part(x.log_decay), part(x.beta), state}, part(out),
          next, delta ? blank_like(part(x.v)) : Tensor());
      state = next;
      begin = end;
    }
    CHECK(distance(out, whole.out.to_doubles()) < 1e-12);
    CHECK(distance(state, whole.end.to_doubles()) < 1e-12);
  }
}

TEST_CASE("decay scan kernel: what decays get is what all later positions add, for any number of them") {
  const OnEachDevice here;
  const int64_t f = GENERATE(1, 5, 32, 70), T = GENERATE(1, 31, 33, 100), H = 2, d = 4;
  for (const bool alike : {false, true}) {
    INFO("f " << f << " T " << T << " alike " << alike);
    DecayInputs x = inputs(1, H, T, f, d, DType::f64, false);
    if (alike) x.log_decay = squeezed(heads(1, H, T, 1, DType::f64, 4), -2, 0);
    const Outputs y = run(x);
    const auto q = x.q.to_doubles(), dq = y.d.q.to_doubles(), k = x.k.to_doubles(), dk = y.d.k.to_doubles(),
               end = y.end.to_doubles(), dend = x.start.to_doubles();
    const int64_t each = alike ? 1 : f;
    std::vector<double> wanted(static_cast<size_t>(H * T * each), 0.0);
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t n = 0; n < f; ++n) {
        double later = 0;
        for (int64_t c = 0; c < d; ++c) {
          const auto at = static_cast<size_t>((h * f + n) * d + c);
          later += end[at] * dend[at];
        }
        for (int64_t t = T - 1; t >= 0; --t) {
          const auto at = static_cast<size_t>((h * T + t) * f + n);
          later += q[at] * dq[at] - k[at] * dk[at];
          wanted[static_cast<size_t>((h * T + t) * each + (alike ? 0 : n))] += later;
        }
      }
    }
    CHECK(distance(y.d.log_decay, wanted) < 1e-11);
  }
}

TEST_CASE("decay scan kernel: no positions leave the state as it is") {
  const OnEachDevice here;
  const DecayInputs x = inputs(1, 2, 0, 4, 4, DType::f32, true);
  const Outputs y = run(x);
  CHECK(y.end.to_doubles() == x.start.to_doubles());
  CHECK(y.d.start.to_doubles() == x.start.to_doubles());
}

TEST_CASE("decay scan kernel: gates of zero forget everything, without a division by them") {
  const OnEachDevice here;
  for (const DType dtype : {DType::f32, DType::f64}) {
    DecayInputs x = inputs(1, 1, 40, 5, 6, dtype, false);
    x.log_decay = Tensor::full(Shape{1, 1, 40, 1}, -HUGE_VAL, dtype);
    x.start = Tensor();
    const Outputs y = run(x);
    // Each row sees its own key alone.
    const auto q = x.q.to_doubles(), k = x.k.to_doubles(), v = x.v.to_doubles(), out = y.out.to_doubles();
    for (size_t t = 0; t < 40; ++t) {
      double dot = 0;
      for (size_t c = 0; c < 5; ++c) dot += q[t * 5 + c] * k[t * 5 + c];
      for (size_t c = 0; c < 6; ++c) CHECK(out[t * 6 + c] == Approx(dot * v[t * 6 + c]).margin(1e-5));
    }
    for (const Tensor& gradient : {y.d.q, y.d.k, y.d.v, y.d.log_decay}) {
      for (const double value : gradient.to_doubles()) CHECK(std::isfinite(value));
    }
    for (const double value : y.d.log_decay.to_doubles()) CHECK(value == Approx(0).margin(1e-3));
  }
}

TEST_CASE("decay scan kernel: beta of one with keys of length one replaces what a key holds") {
  const OnEachDevice here;
  // Two keys in turn: each finds what was last written to it.
  const int64_t T = 37;
  std::vector<float> keys, values;
  for (int64_t t = 0; t < T; ++t) {
    keys.push_back(t % 2 == 0 ? 1.0F : 0.0F);
    keys.push_back(t % 2 == 0 ? 0.0F : 1.0F);
    values.push_back(static_cast<float>(t + 1));
  }
  const Tensor k = Tensor::from(keys, Shape{1, 1, T, 2}), v = Tensor::from(values, Shape{1, 1, T, 1});
  const Tensor end(Shape{1, 1, 2, 1}), out(Shape{1, 1, T, 1}), rest(Shape{1, 1, T, 1});
  launch_here<kernel::DecayScan>(DecayInputs{k, k, v, Tensor(), Tensor::full(Shape{1, 1, T, 1}, 1), Tensor()},
                                 out, end, rest);
  for (size_t t = 0; t < static_cast<size_t>(T); ++t) CHECK(out.to_host()[t] == Approx(values[t]));
  CHECK(end.to_host()[0] == Approx(37));
  CHECK(end.to_host()[1] == Approx(36));
}

TEST_CASE("decay scan kernel: the same bits with any number of threads") {
  const int before = threads();
  for (const bool delta : {false, true}) {
    const DecayInputs x = inputs(3, 5, 200, 16, 16, DType::f32, delta);
    set_threads(1);
    const Outputs one = run(x);
    for (const int count : {2, 3, 4, 8}) {
      set_threads(count);
      const Outputs many = run(x);
      CHECK(same_bits(one.out, many.out));
      CHECK(same_bits(one.end, many.end));
      for (const auto& [a, b] : {std::pair{one.d.q, many.d.q},
                                 {one.d.k, many.d.k},
                                 {one.d.v, many.d.v},
                                 {one.d.log_decay, many.d.log_decay},
                                 {one.d.start, many.d.start}}) {
        CHECK(same_bits(a, b));
      }
    }
    set_threads(before);
  }
}

}  // namespace heed
