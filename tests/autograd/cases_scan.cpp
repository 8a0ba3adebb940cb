// Op table: sums with decay, against the recurrence row by row.
#include <cmath>

#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

/// Which inputs follow q, k and v.
struct Ways {
  bool decay = false, beta = false, start = false, keep_end = false;
};

kernel::DecayInputs inputs_of(Inputs x, const Ways& ways) {
  size_t next = 3;
  const auto take = [&](bool there) { return there ? x[next++] : Tensor(); };
  kernel::DecayInputs out{.q = x[0], .k = x[1], .v = x[2], .log_decay = {}, .beta = {}, .start = {}};
  out.log_decay = take(ways.decay);
  out.beta = take(ways.beta);
  out.start = take(ways.start);
  return out;
}

Plain recurrence(const Plains& x, const Ways& ways) {
  const Plain &q = x[0], &k = x[1], &v = x[2];
  size_t next = 3;
  const Plain* decay = ways.decay ? &x[next++] : nullptr;
  const Plain* beta = ways.beta ? &x[next++] : nullptr;
  const Plain* start = ways.start ? &x[next++] : nullptr;
  const int64_t all = q.extent(0) * q.extent(1), T = q.extent(2), f = q.extent(3), d = v.extent(3);
  const int64_t rows = T + (ways.keep_end ? f : 0), each = decay ? decay->extent(3) : 1;
  Plain y(Shape{q.extent(0), q.extent(1), rows, d});
  for (int64_t n = 0; n < all; ++n) {
    std::vector<double> state(static_cast<size_t>(f * d));
    for (int64_t i = 0; start && i < f * d; ++i) state[static_cast<size_t>(i)] = (*start)[n * f * d + i];
    for (int64_t t = 0; t < T; ++t) {
      const int64_t at = n * T + t;
      for (int64_t a = 0; decay && a < f; ++a) {
        for (int64_t c = 0; c < d; ++c)
          state[static_cast<size_t>(a * d + c)] *= std::exp((*decay)[at * each + (each == 1 ? 0 : a)]);
      }
      for (int64_t c = 0; c < d; ++c) {
        double written = v[at * d + c];
        for (int64_t a = 0; beta && a < f; ++a)
          written -= state[static_cast<size_t>(a * d + c)] * k[at * f + a];
        if (beta) written *= (*beta)[at];
        for (int64_t a = 0; a < f; ++a) {
          double& s = state[static_cast<size_t>(a * d + c)];
          s += k[at * f + a] * written;
          y[(n * rows + t) * d + c] += s * q[at * f + a];
        }
      }
    }
    for (int64_t i = 0; ways.keep_end && i < f * d; ++i)
      y[(n * rows + T) * d + i] = state[static_cast<size_t>(i)];
  }
  return y;
}

Shapes call(const Ways& ways, int64_t B, int64_t H, int64_t T, int64_t f, int64_t d, int64_t each) {
  Shapes out{{B, H, T, f}, {B, H, T, f}, {B, H, T, d}};
  if (ways.decay) out.push_back({B, H, T, each});
  if (ways.beta) out.push_back({B, H, T, 1});
  if (ways.start) out.push_back({B, H, f, d});
  return out;
}

/// `each`: one decay a row, or one an element of the key.
OpCase scan_case(const char* note, Ways ways, bool each) {
  const auto shapes = [&](int64_t B, int64_t H, int64_t T, int64_t f, int64_t d) {
    return call(ways, B, H, T, f, d, each ? f : 1);
  };
  OpCase row{.op = "decay_scan(x, keep_end)",
             .note = note,
             .shapes = {shapes(2, 2, 5, 3, 4), shapes(1, 1, 1, 1, 1), shapes(1, 2, 19, 2, 1),
                        shapes(1, 1, 35, 3, 2), shapes(1, 1, 0, 2, 2)},
             .large = shapes(2, 3, 203, 18, 21),
             .kinds = {between(-0.5, 0.5), between(-0.5, 0.5)},
             .apply = [ways](Inputs x) { return decay_scan(inputs_of(x, ways), ways.keep_end); },
             .reference = [ways](const Plains& x) { return recurrence(x, ways); },
             .looser = 30,
             .looser_gradient = 100};
  row.kinds.push_back({});
  if (ways.decay) row.kinds.push_back(between(-1.5, 0));
  if (ways.beta) row.kinds.push_back(between(0, 1));
  return row;
}

OpCase exp_sum_case() {
  return {.op = "cumulative_exp_sum(x, running_max)",
          .shapes = {{{2, 3, 5, 4}}, {{1, 1, 1, 1}}, {{1, 2, 7, 1}}, {{1, 1, 0, 3}}},
          .large = {{5, 3, 300, 37}},
          .kinds = {between(-3, 3)},
          .apply =
              [](Inputs x) {
                Tensor maximum;  // a constant to the gradient, which so is that of the whole sum only
                const Tensor sum = cumulative_exp_sum(x[0], maximum);
                return sum * exp(maximum);
              },
          .reference =
              [](const Plains& x) {
                const int64_t f = x[0].extent(3), T = x[0].extent(2);
                Plain y(x[0].shape);
                for (int64_t i = 0; i < y.size(); ++i) {
                  for (int64_t j = i - i / f % T * f; j <= i; j += f) y[i] += std::exp(x[0][j]);
                }
                return y;
              }};
}

}  // namespace

std::vector<OpCase> scan_cases() {
  return {
      exp_sum_case(),
      scan_case("nothing fades", {}, false),
      scan_case("one decay a row", {.decay = true}, false),
      scan_case("a decay for each element", {.decay = true}, true),
      scan_case("from a state to a state", {.decay = true, .start = true, .keep_end = true}, true),
      scan_case("the delta rule", {.beta = true}, false),
      scan_case("the delta rule, gated", {.decay = true, .beta = true, .start = true, .keep_end = true},
                false),
      scan_case("the delta rule, each element gated", {.decay = true, .beta = true, .keep_end = true}, true),
  };
}

}  // namespace heed::plain
