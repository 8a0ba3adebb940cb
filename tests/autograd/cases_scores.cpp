// Op table: scores and weights of recurrent models, against plain loops.
#include <algorithm>
#include <cmath>

#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

Plain additive(const Plains& x) {
  const Plain &left = x[0], &right = x[1], &units = x[2];
  const int64_t H = left.extent(1), Tq = left.extent(2), Tk = right.extent(2), A = left.extent(3);
  Plain y(Shape{left.extent(0), H, Tq, Tk});
  for (int64_t n = 0; n < y.size(); ++n) {
    const int64_t j = n % Tk, i = n / Tk % Tq, head = n / Tk / Tq;
    for (int64_t a = 0; a < A; ++a)
      y[n] +=
          units[head % H * A + a] * std::tanh(left[(head * Tq + i) * A + a] + right[(head * Tk + j) * A + a]);
  }
  return y;
}

/// Two keys fewer in the second sequence, none in the third.
int32_t keys_of(int64_t b, int64_t Tk) {
  return static_cast<int32_t>(b == 0 ? Tk : b == 1 ? std::max<int64_t>(Tk - 2, 1) : 0);
}

Tensor lengths_for(const Tensor& x, int64_t Tk) {
  std::vector<int32_t> lengths;
  for (int64_t b = 0; b < x.extent(0); ++b) lengths.push_back(keys_of(b, Tk));
  return Tensor::of<int32_t>(lengths, Shape{x.extent(0)}, x.device());
}

/// The keys that query i of sequence b may see.
using Open = std::function<int64_t(int64_t b, int64_t i)>;

Plain local(const Plains& x, const kernel::LocalParams& params, const Open& open) {
  const Plain &q = x[0], &k = x[1], &v = x[2], &centre = x[3];
  const int64_t H = q.extent(1), Tq = q.extent(2), Tk = k.extent(2), d = q.extent(3), dv = v.extent(3);
  Plain y(Shape{q.extent(0), H, Tq, dv});
  for (int64_t row = 0; row < centre.size(); ++row) {
    const int64_t head = row / Tq;
    const double p = centre[row];
    std::vector<double> weight(static_cast<size_t>(Tk)), bell(weight);
    double total = 0;
    for (int64_t j = 0; j < std::min(Tk, open(head / H, row % Tq)); ++j) {
      const double off = static_cast<double>(j) - p;
      const double from = params.window == kernel::WindowCentre::real ? p : std::floor(p);
      if (std::abs(static_cast<double>(j) - from) > static_cast<double>(params.half_width)) continue;
      double score = 0;
      for (int64_t c = 0; c < d; ++c) score += params.scale * q[row * d + c] * k[(head * Tk + j) * d + c];
      bell[static_cast<size_t>(j)] = std::exp(-off * off / (2 * params.sigma * params.sigma));
      if (params.gauss == kernel::Gauss::pre_score) score *= bell[static_cast<size_t>(j)];
      total += weight[static_cast<size_t>(j)] = std::exp(score);
    }
    for (int64_t j = 0; j < Tk && total > 0; ++j) {
      double share = weight[static_cast<size_t>(j)] / total;
      if (params.gauss == kernel::Gauss::post) share *= bell[static_cast<size_t>(j)];
      for (int64_t c = 0; c < dv; ++c) y[row * dv + c] += share * v[(head * Tk + j) * dv + c];
    }
  }
  return y;
}

Shapes windows(int64_t B, int64_t H, int64_t Tq, int64_t Tk, int64_t d, int64_t dv) {
  return {{B, H, Tq, d}, {B, H, Tk, d}, {B, H, Tk, dv}, {B, H, Tq}};
}

OpCase local_case(const char* note, kernel::LocalParams params, bool masked) {
  const auto of = [params, masked](const Tensor& q, const Tensor& k) {
    kernel::LocalParams out = params;
    if (!masked) return out;
    out.causal = true;
    out.first_query = 1;
    out.key_lengths = lengths_for(q, k.extent(2));
    return out;
  };
  return {.op = "local_attention(q, k, v, centre, params)",
          .note = note,
          .shapes = {windows(3, 2, 5, 7, 3, 2), windows(1, 1, 1, 1, 1, 1), windows(2, 1, 9, 9, 2, 3)},
          .large = windows(2, 3, 141, 135, 24, 17),
          .kinds = {{}, {}, {}, between(-1, 9)},
          .apply = [of](Inputs x) { return local_attention(x[0], x[1], x[2], x[3], of(x[0], x[1])); },
          .reference =
              [params, masked](const Plains& x) {
                const int64_t Tk = x[1].extent(2);
                return local(x, params, [=](int64_t b, int64_t i) {
                  return masked ? std::min<int64_t>(keys_of(b, Tk), i + 2) : Tk;
                });
              },
          .looser = 4,
          .looser_gradient = 20};
}

/// gate, shift and sharp may be there or not; before is x[1].
Plain addressed(const Plains& x, bool gated, bool shifted, bool sharpened, const Open& open) {
  const Plain& content = x[0];
  const int64_t H = content.extent(1), N = content.extent(2), M = content.extent(3);
  Plain y(content.shape);
  for (int64_t row = 0; row < y.size() / std::max<int64_t>(M, 1); ++row) {
    const int64_t i = row % N, head = row / N, n = std::min(M, open(head / H, i));
    if (n < 1) continue;
    std::vector<double> w(static_cast<size_t>(n)), turned(w);
    for (int64_t j = 0; j < n; ++j) {
      const double g = gated ? x[2][row] : 1;
      const double last = i > 0 ? y[(row - 1) * M + j] : x[1][head * M + j];
      w[static_cast<size_t>(j)] = g * content[row * M + j] + (1 - g) * last;
    }
    const int64_t count = shifted ? x[3].extent(3) : 1;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t s = 0; s < count; ++s) {
        const int64_t from = (((j - (s - count / 2)) % n) + n) % n;
        turned[static_cast<size_t>(j)] +=
            (shifted ? x[3][row * count + s] : 1) * w[static_cast<size_t>(from)];
      }
    }
    double total = 0;
    for (double& value : turned) total += value = sharpened ? std::pow(value, x[4][row]) : value;
    for (int64_t j = 0; j < n; ++j) y[row * M + j] = turned[static_cast<size_t>(j)] / (sharpened ? total : 1);
  }
  return y;
}

Shapes addresses(int64_t B, int64_t H, int64_t N, int64_t M, int64_t shifts) {
  return {{B, H, N, M}, {B, H, M}, {B, H, N}, {B, H, N, shifts}, {B, H, N}};
}

OpCase addressing_case(const char* note, bool masked) {
  return {
      .op = "ntm_addressing(content, steps, params)",
      .note = note,
      .shapes = {addresses(3, 2, 4, 5, 3), addresses(1, 1, 1, 1, 1), addresses(1, 2, 6, 2, 5)},
      .large = addresses(2, 3, 61, 135, 3),
      .kinds = {between(0.05, 1), between(0, 1), between(0.1, 0.9), between(0.1, 0.6), between(1, 2.5)},
      .apply =
          [masked](Inputs x) {
            kernel::AddressingParams params;
            if (masked)
              params = {.causal = true, .first_query = 1, .key_lengths = lengths_for(x[0], x[0].extent(3))};
            return ntm_addressing(x[0], {.before = x[1], .gate = x[2], .shift = x[3], .sharp = x[4]}, params);
          },
      .reference =
          [masked](const Plains& x) {
            const int64_t M = x[0].extent(3);
            return addressed(x, true, true, true, [=](int64_t b, int64_t i) {
              return masked ? std::min<int64_t>(keys_of(b, M), i + 2) : M;
            });
          },
      .looser = 4,
      .looser_gradient = 20};
}

}  // namespace

std::vector<OpCase> score_cases() {
  using kernel::Gauss;
  using kernel::WindowCentre;
  return {{.op = "additive_scores(left, right, units)",
           .shapes = {{{2, 2, 3, 4}, {2, 2, 5, 4}, {2, 4}},
                      {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}},
                      {{1, 3, 2, 2}, {1, 3, 7, 2}, {3, 2}},
                      {{0, 1, 2, 2}, {0, 1, 2, 2}, {1, 2}}},
           .large = {{2, 2, 40, 24}, {2, 2, 301, 24}, {2, 24}},
           .apply = [](Inputs x) { return additive_scores(x[0], x[1], x[2]); },
           .reference = additive,
           .looser = 4,
           .looser_gradient = 50},
          local_case("weights times a Gaussian", {.scale = 0.5, .half_width = 2, .sigma = 1}, false),
          local_case("scores times a Gaussian, masked",
                     {.half_width = 3, .sigma = 2, .gauss = Gauss::pre_score}, true),
          local_case("around whole places, masked",
                     {.half_width = 2, .sigma = 1.5, .window = WindowCentre::floor}, true),
          local_case("without a Gaussian", {.scale = 0.3, .half_width = 40, .gauss = Gauss::none}, false),
          addressing_case("all steps", false),
          addressing_case("all steps, masked", true)};
}

}  // namespace heed::plain
