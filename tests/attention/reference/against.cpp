// Compares outputs, maps and gradients of a variant with a formula.
#include "heed/tests/attention/reference/against.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/tests/catch.h"

namespace heed::reference {

Matrix head_of(const std::vector<double>& values, int64_t head, int64_t rows, int64_t columns) {
  const auto first = values.begin() + head * rows * columns;
  return {rows, columns, std::vector<double>(first, first + rows * columns)};
}

namespace {

/// sum of map v times `along` over what counts.
double total_of(const Example& e, const Values& values, const MapFormula& formula,
                const std::vector<double>& along) {
  double total = 0;
  for (int64_t head = 0; head < e.B * e.H; ++head) {
    const Matrix out =
        apply(formula(e, values, head / e.H, head % e.H), head_of(values.at("v"), head, e.M, e.dv));
    for (int64_t i = 0; i < e.N * e.dv; ++i)
      total += out.values[static_cast<size_t>(i)] * along[static_cast<size_t>(head * e.N * e.dv + i)];
  }
  return total;
}

double off(double found, double wanted) { return std::abs(found - wanted) / std::max(1.0, std::abs(wanted)); }

void check_values(const Example& e, const Values& values, const MapFormula& formula, const Tensor& out,
                  const Tensor& map, double tolerance) {
  const std::vector<double> y = out.to_doubles(), weights = map.to_doubles();
  double worst = 0, worst_map = 0;
  for (int64_t head = 0; head < e.B * e.H; ++head) {
    const Matrix wanted = formula(e, values, head / e.H, head % e.H);
    const Matrix product = apply(wanted, head_of(values.at("v"), head, e.M, e.dv));
    const int64_t counted = e.cross ? e.N : std::min(e.N, e.keys_of(head / e.H));
    for (int64_t i = 0; i < counted; ++i) {
      for (int64_t c = 0; c < e.dv; ++c)
        worst = std::max(worst, off(y[static_cast<size_t>((head * e.N + i) * e.dv + c)], product.at(i, c)));
      for (int64_t j = 0; j < e.M; ++j)
        worst_map = std::max(worst_map,
                             off(weights[static_cast<size_t>((head * e.N + i) * e.M + j)], wanted.at(i, j)));
    }
  }
  CHECK(worst < tolerance);
  CHECK(worst_map < tolerance);
}

}  // namespace

void put_in(Module& module, const std::string& name, const Tensor& tensor) {
  bool done = false;
  visit_optional_tensors(module, [&](const std::string& place, Tensor& there) {
    if (place != name) return;
    there = tensor;
    done = true;
  });
  if (!done) fail("no tensor ", name);
}

void against(const std::string& spec, const Example& e, const MapFormula& formula,
             const std::vector<std::string>& trained, const std::vector<std::string>& fixed, double tolerance,
             const std::map<std::string, Tensor>& put) {
  CAPTURE(spec, e.B, e.H, e.N, e.M, e.d, e.dv, e.causal, e.cross, e.lengths);
  Rng rng(41);
  const auto made = make_attention(spec,
                                   {.d_model = e.H * e.d,
                                    .heads = e.H,
                                    .causal = e.causal,
                                    .cross = e.cross,
                                    .max_length = std::max(e.N, e.M)},
                                   rng);
  auto& module = dynamic_cast<MultiHeadAttention&>(*made);
  convert(module, DType::f64);
  for (const auto& [name, tensor] : put) put_in(module, name, tensor);
  std::map<std::string, Tensor> tensors;
  Values values;
  const auto input = [&](const std::string& name, const Shape& shape) {
    const Tensor x(shape, DType::f64);
    fill_normal(x, 0, 1, rng);
    tensors[name] = leaf(x);
    values[name] = x.to_doubles();
  };
  input("q", Shape{e.B, e.H, e.N, e.d});
  input("k", Shape{e.B, e.H, e.M, e.d});
  input("v", Shape{e.B, e.H, e.M, e.dv});
  visit_tensors(module, [&](const std::string& name, Tensor& tensor) {
    const bool is_trained = std::find(trained.begin(), trained.end(), name) != trained.end();
    if (!is_trained && std::find(fixed.begin(), fixed.end(), name) == fixed.end()) return;
    values[name] = tensor.to_doubles();
    if (is_trained) tensors[name] = tensor;
  });
  REQUIRE(values.size() == 3 + trained.size() + fixed.size());
  // What a loss makes of padded queries is zero.
  std::vector<double> along;
  for (int64_t i = 0; i < e.B * e.H * e.N * e.dv; ++i) {
    const int64_t row = i / e.dv % e.N, b = i / e.dv / e.N / e.H;
    along.push_back(e.cross || row < e.keys_of(b) ? 0.5 + 0.01 * static_cast<double>(i * 37 % 101) : 0);
  }

  Mask mask = e.causal ? Mask::causal() : Mask::none();
  if (!e.lengths.empty()) mask = mask & Mask::lengths(Tensor::of<int32_t>(e.lengths, Shape{e.B}));
  MapRecorder recorder;
  const Tensor out = module.on_heads({tensors["q"], tensors["k"], tensors["v"]},
                                     {.mask = mask, .context = {.recorder = &recorder}});
  REQUIRE(out.shape() == Shape{e.B, e.H, e.N, e.dv});
  REQUIRE(recorder.maps.size() == 1);
  check_values(e, values, formula, out, recorder.maps[0].weights, tolerance);

  backward(out, Tensor::of<double>(along, out.shape()));
  for (const auto& [name, tensor] : tensors) {
    CAPTURE(name);
    const Tensor gradient = grad_of(tensor);
    REQUIRE(gradient);
    const std::vector<double> found = gradient.to_doubles();
    double worst = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const double at = values[name][i], step = 1e-5;
      values[name][i] = at + step;
      const double above = total_of(e, values, formula, along);
      values[name][i] = at - step;
      const double below = total_of(e, values, formula, along);
      values[name][i] = at;
      worst = std::max(worst, off(found[i], (above - below) / (2 * step)));
    }
    CHECK(worst < std::max(2e-7, 100 * tolerance));
  }
}

std::vector<Example> usual_examples(bool causal, bool cross, bool padding) {
  std::vector<Example> all{{.N = 1, .M = 1}, {.B = 2, .H = 2, .N = 2, .M = 2, .d = 3, .dv = 2}};
  all.push_back({.H = 2, .N = 17, .M = 17, .d = 3, .dv = 2});
  all.push_back({.N = 17, .M = 17, .d = 1, .dv = 1});
  if (padding) all.push_back({.B = 3, .N = 17, .M = 17, .d = 4, .dv = 3, .lengths = {17, 6, 0}});
  if (causal) {
    all.push_back({.H = 2, .N = 17, .M = 17, .d = 3, .dv = 4, .causal = true});
    if (padding)
      all.push_back({.B = 2, .N = 11, .M = 11, .d = 2, .dv = 3, .causal = true, .lengths = {11, 4}});
  }
  if (cross) {
    all.push_back({.H = 2, .N = 5, .M = 17, .d = 3, .dv = 2, .cross = true});
    if (padding) all.push_back({.B = 2, .N = 7, .M = 3, .d = 2, .dv = 1, .cross = true, .lengths = {3, 2}});
  }
  return all;
}

}  // namespace heed::reference
