// Op table: arithmetic and functions of one element.
#include <cmath>

#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

const std::vector<Shapes> one_shapes = {{{2, 3, 5}}, {{7}}, {{}}, {{1, 1}}, {{0, 3}}};
const std::vector<Shapes> pair_shapes = {
    {{3, 5}, {3, 5}}, {{7}, {7}},          {{}, {}},      {{2, 3, 5}, {5}}, {{3, 1}, {1, 4}},
    {{}, {2, 3}},     {{2, 1, 3}, {4, 1}}, {{1}, {1, 1}}, {{0, 3}, {1, 3}}, {{5, 3}, {5, 1}}};

OpCase pair(std::string op, std::function<Tensor(Inputs)> apply, std::function<double(double, double)> f,
            std::vector<Kind> kinds = {}) {
  return {.op = std::move(op),
          .shapes = pair_shapes,
          .large = {{37, 41, 53}, {41, 1}},
          .kinds = std::move(kinds),
          .apply = std::move(apply),
          .reference = [f = std::move(f)](const Plains& x) { return zip(x[0], x[1], f); },
          .looser_gradient = 4};
}

OpCase one(std::string op, std::function<Tensor(Inputs)> apply, std::function<double(double)> f,
           Kind kind = {}) {
  return {.op = std::move(op),
          .shapes = one_shapes,
          .large = {{211, 353}},
          .kinds = {kind},
          .apply = std::move(apply),
          .reference = [f = std::move(f)](const Plains& x) { return map(x[0], f); }};
}

}  // namespace

std::vector<OpCase> arithmetic_cases() {
  const Kind positive = between(0.3, 3);
  return {
      pair(
          "operator+(a, b)", [](Inputs x) { return x[0] + x[1]; }, [](double a, double b) { return a + b; }),
      pair(
          "operator-(a, b)", [](Inputs x) { return x[0] - x[1]; }, [](double a, double b) { return a - b; }),
      pair(
          "operator*(a, b)", [](Inputs x) { return x[0] * x[1]; }, [](double a, double b) { return a * b; }),
      pair(
          "operator/(a, b)", [](Inputs x) { return x[0] / x[1]; }, [](double a, double b) { return a / b; },
          {{}, away_from_zero(0.5)}),
      pair(
          "maximum(a, b)", [](Inputs x) { return maximum(x[0], x[1]); },
          [](double a, double b) { return std::max(a, b); }, {distinct(0), distinct(0.03125)}),
      pair(
          "minimum(a, b)", [](Inputs x) { return minimum(x[0], x[1]); },
          [](double a, double b) { return std::min(a, b); }, {distinct(0), distinct(0.03125)}),
      one(
          "minimum(x, limit)", [](Inputs x) { return minimum(x[0], 100.03125); },
          [](double x) { return std::min(x, 100.03125); }, distinct(0)),
      one(
          "maximum(x, limit)", [](Inputs x) { return maximum(x[0], 100.03125); },
          [](double x) { return std::max(x, 100.03125); }, distinct(0)),
      one(
          "affine(x, scale, shift)", [](Inputs x) { return affine(x[0], -1.5, 0.25); },
          [](double x) { return -1.5 * x + 0.25; }),
      one(
          "operator-(x)", [](Inputs x) { return -x[0]; }, [](double x) { return -x; }),
      one(
          "operator+(x, c)", [](Inputs x) { return x[0] + 0.75; }, [](double x) { return x + 0.75; }),
      one(
          "operator-(x, c)", [](Inputs x) { return x[0] - 0.75; }, [](double x) { return x - 0.75; }),
      one(
          "operator*(x, c)", [](Inputs x) { return x[0] * 3.0; }, [](double x) { return x * 3; }),
      one(
          "operator*(c, x)", [](Inputs x) { return 3.0 * x[0]; }, [](double x) { return 3 * x; }),
      one(
          "operator/(x, c)", [](Inputs x) { return x[0] / 3.0; }, [](double x) { return x / 3; }),
      one(
          "operator+(c, x)", [](Inputs x) { return 0.75 + x[0]; }, [](double x) { return 0.75 + x; }),
      one(
          "operator-(c, x)", [](Inputs x) { return 0.75 - x[0]; }, [](double x) { return 0.75 - x; }),
      one(
          "operator/(c, x)", [](Inputs x) { return 3.0 / x[0]; }, [](double x) { return 3 / x; },
          away_from_zero(0.5)),
      one(
          "pow(x, exponent)", [](Inputs x) { return pow(x[0], 2.5); },
          [](double x) { return std::pow(x, 2.5); }, positive),
      {.op = "where(mask, x, y)",
       .shapes = {{{3, 5}, {3, 5}, {3, 5}},
                  {{5}, {2, 3, 5}, {3, 1}},
                  {{3, 1}, {4}, {3, 4}},
                  {{4, 2}, {}, {1}},
                  {{}, {}, {}},
                  {{1, 3}, {0, 3}, {3}}},
       .large = {{37, 41, 1}, {41, 53}, {37, 41, 53}},
       .kinds = {mask()},
       .apply = [](Inputs x) { return where(x[0], x[1], x[2]); },
       .reference =
           [](const Plains& x) {
             const auto masked = [](double m, double value) { return m != 0 ? value : 0; };
             const auto unmasked = [](double m, double value) { return m != 0 ? 0 : value; };
             return zip(zip(x[0], x[1], masked), zip(x[0], x[2], unmasked),
                        [](double a, double b) { return a + b; });
           }},
      {.op = "where(mask, x, otherwise)",
       .shapes =
           {{{3, 5}, {3, 5}}, {{5}, {2, 3, 5}}, {{3, 1}, {3, 4}}, {{}, {2, 2}}, {{}, {}}, {{1, 3}, {0, 3}}},
       .large = {{41, 1}, {37, 41, 53}},
       .kinds = {mask()},
       .apply = [](Inputs x) { return where(x[0], x[1], -7); },
       .reference =
           [](const Plains& x) {
             Plain y(x[1].shape);
             for (int64_t i = 0; i < y.size(); ++i) {
               y[i] = x[0][place(x[0].shape, indices(y.shape, i))] != 0 ? x[1][i] : -7;
             }
             return y;
           }},

      one(
          "exp(x)", [](Inputs x) { return exp(x[0]); }, [](double x) { return std::exp(x); }),
      one(
          "log(x)", [](Inputs x) { return log(x[0]); }, [](double x) { return std::log(x); }, positive),
      one(
          "tanh(x)", [](Inputs x) { return tanh(x[0]); }, [](double x) { return std::tanh(x); }),
      one(
          "sigmoid(x)", [](Inputs x) { return sigmoid(x[0]); },
          [](double x) { return 1 / (1 + std::exp(-x)); }, between(-6, 6)),
      one(
          "relu(x)", [](Inputs x) { return relu(x[0]); }, [](double x) { return x > 0 ? x : 0; },
          away_from_zero(0.1)),
      one(
          "gelu(x)", [](Inputs x) { return gelu(x[0]); },
          [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, between(-5, 5)),
      one(
          "gelu_tanh(x)", [](Inputs x) { return gelu_tanh(x[0]); },
          [](double x) {
            return 0.5 * x *
                   (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
          },
          between(-5, 5)),
      one(
          "silu(x)", [](Inputs x) { return silu(x[0]); }, [](double x) { return x / (1 + std::exp(-x)); }),
      one(
          "elu(x)", [](Inputs x) { return elu(x[0]); }, [](double x) { return x > 0 ? x : std::exp(x) - 1; },
          away_from_zero(0.1)),
      one(
          "softplus(x)", [](Inputs x) { return softplus(x[0]); },
          [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }, between(-40, 40)),
      one(
          "sin(x)", [](Inputs x) { return sin(x[0]); }, [](double x) { return std::sin(x); },
          between(-20, 20)),
      one(
          "cos(x)", [](Inputs x) { return cos(x[0]); }, [](double x) { return std::cos(x); },
          between(-20, 20)),
      one(
          "square(x)", [](Inputs x) { return square(x[0]); }, [](double x) { return x * x; }),
      one(
          "sqrt(x)", [](Inputs x) { return sqrt(x[0]); }, [](double x) { return std::sqrt(x); }, positive),
      one(
          "reciprocal(x)", [](Inputs x) { return reciprocal(x[0]); }, [](double x) { return 1 / x; },
          away_from_zero(0.5)),
      one(
          "pow(x, exponent)", [](Inputs x) { return pow(x[0], 3); }, [](double x) { return x * x * x; },
          away_from_zero(0.1)),
      one(
          "pow(x, exponent)", [](Inputs x) { return pow(x[0], -2); }, [](double x) { return 1 / (x * x); },
          away_from_zero(0.5)),
      one(
          "abs(x)", [](Inputs x) { return abs(x[0]); }, [](double x) { return std::fabs(x); },
          away_from_zero(0.1)),
  };
}

}  // namespace heed::plain
