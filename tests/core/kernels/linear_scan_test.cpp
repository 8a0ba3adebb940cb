// Tests of core/kernels/linear_scan.h against the recurrence, position by position.
#include "core/kernels/linear_scan.h"

#include <bit>

#include "core/count.h"
#include "core/parallel.h"
#include "tests/any_device.h"
#include "tests/catch.h"
#include "tests/core/kernels/attention_reference.h"

namespace heed {
namespace {

using test::blank_like;
using test::distance;
using test::heads;
using Numbers = std::vector<double>;

struct Sizes {
  int64_t B, H, T, f, d;
};

struct Inputs {
  Tensor q, k, v, start, dout, dend;
  Inputs(const Sizes& s, DType dtype, bool states)
      : q(heads(s.B, s.H, s.T, s.f, dtype, 1)),
        k(heads(s.B, s.H, s.T, s.f, dtype, 2)),
        v(heads(s.B, s.H, s.T, s.d, dtype, 3)),
        dout(heads(s.B, s.H, s.T, s.d, dtype, 4)) {
    if (!states) return;
    start = heads(s.B, s.H, s.f, s.d, dtype, 5);
    dend = heads(s.B, s.H, s.f, s.d, dtype, 6);
  }
};

struct Outputs {
  Tensor out, end, dq, dk, dv, dstart;
};

Outputs run(const Inputs& x) {
  Outputs y{.out = blank_like(x.v),
            .end = x.start ? blank_like(x.start) : Tensor(),
            .dq = blank_like(x.q),
            .dk = blank_like(x.k),
            .dv = blank_like(x.v),
            .dstart = x.start ? blank_like(x.start) : Tensor()};
  launch_here<kernel::LinearScan>(x.q, x.k, x.v, x.start, y.out, y.end);
  launch_here<kernel::LinearScanBack>(x.q, x.k, x.v, x.start, x.dout, x.dend, y.dq, y.dk, y.dv, y.dstart);
  return y;
}

struct Plain {
  Numbers out, end, dq, dk, dv, dstart;
};

/// The recurrence and its reverse, one position at a time.
Plain plainly(const Inputs& x) {
  const int64_t all = x.q.extent(0) * x.q.extent(1), T = x.q.extent(2), f = x.q.extent(3), d = x.v.extent(3);
  const Numbers q = x.q.to_doubles(), k = x.k.to_doubles(), v = x.v.to_doubles(), g = x.dout.to_doubles();
  const size_t states = static_cast<size_t>(all * f * d);
  Plain r{.out = Numbers(v.size()),
          .end = x.start ? x.start.to_doubles() : Numbers(states),
          .dq = Numbers(q.size()),
          .dk = Numbers(k.size()),
          .dv = Numbers(v.size()),
          .dstart = x.dend ? x.dend.to_doubles() : Numbers(states)};
  for (int64_t n = 0; n < all; ++n) {
    double* state = r.end.data() + n * f * d;
    for (int64_t t = 0; t < T; ++t) {
      const int64_t at_f = (n * T + t) * f, at_d = (n * T + t) * d;
      for (int64_t a = 0; a < f; ++a) {
        for (int64_t c = 0; c < d; ++c) {
          double& s = state[a * d + c];
          s += k[at_f + a] * v[at_d + c];
          r.out[at_d + c] += q[at_f + a] * s;
          r.dq[at_f + a] += g[at_d + c] * s;
        }
      }
    }
    double* back = r.dstart.data() + n * f * d;
    for (int64_t t = T - 1; t >= 0; --t) {
      const int64_t at_f = (n * T + t) * f, at_d = (n * T + t) * d;
      for (int64_t a = 0; a < f; ++a) {
        for (int64_t c = 0; c < d; ++c) {
          double& s = back[a * d + c];
          s += q[at_f + a] * g[at_d + c];
          r.dk[at_f + a] += s * v[at_d + c];
          r.dv[at_d + c] += s * k[at_f + a];
        }
      }
    }
  }
  return r;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto x = a.to_doubles(), y = b.to_doubles();
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](double p, double q) {
           return std::bit_cast<uint64_t>(p) == std::bit_cast<uint64_t>(q);
         });
}

const std::vector<Sizes> sizes = {{1, 1, 1, 1, 1},    {1, 2, 1, 16, 16},   {2, 1, 2, 3, 5},
                                  {1, 2, 17, 16, 33}, {1, 1, 64, 20, 16},  {2, 2, 65, 8, 8},
                                  {1, 2, 130, 45, 9}, {1, 1, 200, 33, 17}, {2, 3, 128, 32, 32},
                                  {1, 1, 300, 1, 64}, {1, 1, 70, 561, 33}};

}  // namespace

TEST_CASE("linear scan kernel: equals the recurrence, with and without states") {
  const OnEachDevice here;
  for (const Sizes& s : sizes) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const bool states : {false, true}) {
        INFO("T " << s.T << " f " << s.f << " d " << s.d << " states " << states << " " << to_string(dtype));
        const Inputs x(s, dtype, states);
        const Outputs y = run(x);
        const Plain want = plainly(x);
        const double near = dtype == DType::f64 ? 1e-12 : 2e-4;
        CHECK(distance(y.out, want.out) < near);
        CHECK(distance(y.dq, want.dq) < near);
        CHECK(distance(y.dk, want.dk) < near);
        CHECK(distance(y.dv, want.dv) < near);
        if (!states) continue;
        CHECK(distance(y.end, want.end) < near);
        CHECK(distance(y.dstart, want.dstart) < near);
      }
    }
  }
}

TEST_CASE("linear scan kernel: pieces joined by their states are the whole") {
  const OnEachDevice here;
  const Inputs x({2, 2, 100, 12, 20}, DType::f64, true);
  const Outputs whole = run(x);
  Tensor state = x.start;
  const Tensor out = blank_like(x.v);
  int64_t begin = 0;
  for (const int64_t end : {1, 2, 66, 100}) {
    const auto part = [&, begin](const Tensor& t) { return view::slice(t, 2, begin, end); };
    const Tensor next = blank_like(x.start);
    launch_here<kernel::LinearScan>(part(x.q), part(x.k), part(x.v), state, part(out), next);
    state = next;
    begin = end;
  }
  CHECK(distance(out, whole.out.to_doubles()) < 1e-12);
  CHECK(distance(state, whole.end.to_doubles()) < 1e-12);
}

TEST_CASE("linear scan kernel: no positions leave the state as it is") {
  const OnEachDevice here;
  const Inputs x({1, 2, 0, 4, 4}, DType::f32, true);
  const Outputs y = run(x);
  CHECK(y.end.to_doubles() == x.start.to_doubles());
  CHECK(y.dstart.to_doubles() == x.dend.to_doubles());
}

TEST_CASE("linear scan kernel: gradients agree with finite differences") {
  const OnEachDevice here;
  const Inputs x({1, 2, 5, 3, 2}, DType::f64, true);
  const Outputs y = run(x);
  const Numbers dout = x.dout.to_doubles(), dend = x.dend.to_doubles();
  const auto loss = [&] {
    const Outputs z = run(x);
    const Numbers out = z.out.to_doubles(), end = z.end.to_doubles();
    double total = 0;
    for (size_t i = 0; i < out.size(); ++i) total += out[i] * dout[i];
    for (size_t i = 0; i < end.size(); ++i) total += end[i] * dend[i];
    return total;
  };
  for (const auto& [input, gradient] :
       {std::pair{x.q, y.dq}, {x.k, y.dk}, {x.v, y.dv}, {x.start, y.dstart}}) {
    double* values = input.data<double>();
    const double* slopes = gradient.data<double>();
    for (int64_t i = 0; i < input.size(); ++i) {
      const double kept = values[i], step = 1e-4;
      values[i] = kept + step;
      const double up = loss();
      values[i] = kept - step;
      const double down = loss();
      values[i] = kept;
      CHECK((up - down) / (2 * step) == Approx(slopes[i]).margin(1e-8));
    }
  }
}

TEST_CASE("linear scan kernel: the same bits with any number of threads") {
  const int before = threads();
  for (const Sizes& s : {Sizes{1, 1, 5000, 16, 16}, Sizes{3, 5, 200, 16, 16}}) {
    const Inputs x(s, DType::f32, true);
    set_threads(1);
    const Outputs one = run(x);
    for (const int count : {2, 3, 4, 8}) {
      set_threads(count);
      const Outputs many = run(x);
      CHECK(same_bits(one.out, many.out));
      CHECK(same_bits(one.end, many.end));
      CHECK(same_bits(one.dq, many.dq));
      CHECK(same_bits(one.dk, many.dk));
      CHECK(same_bits(one.dv, many.dv));
      CHECK(same_bits(one.dstart, many.dstart));
    }
  }
  set_threads(before);
}

TEST_CASE("linear scan kernel: a later position leaves earlier outputs alone, to the bit") {
  const OnEachDevice here;
  const Inputs x({1, 1, 100, 16, 16}, DType::f32, false);
  const Outputs before = run(x);
  x.k.data<float>()[99 * 16] += 1;
  const Outputs after = run(x);
  CHECK(same_bits(view::slice(before.out, 2, 0, 99), view::slice(after.out, 2, 0, 99)));
  CHECK_FALSE(same_bits(before.out, after.out));
}

TEST_CASE("linear scan kernel: time and memory grow with the length") {
  const auto use = [](int64_t T) {
    const Inputs x({1, 16, T, 64, 32}, DType::f32, false);
    reset_peak();
    const int64_t live = memory_use().live;
    Count::reset();
    run(x);
    return std::pair{static_cast<double>(memory_use().peak - live),
                     static_cast<double>(Count::flops().load())};
  };
  const auto [memory, flops] = use(1024);
  const auto [memory_twice, flops_twice] = use(2048);
  CHECK(memory_twice < 2.2 * memory);
  CHECK(flops > 2 * 7 * 16.0 * 1024 * 64 * 32);
  CHECK(flops_twice < 2.1 * flops);
}

}  // namespace heed
