// Compares on_heads() with formulas in plain loops: outputs, maps, and all gradients by central differences.
#pragma once

#include <map>
#include <string>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/attention/reference/formulas.h"
#include "heed/tests/catch.h"

namespace heed::reference {

/// The sizes of one comparison.
struct Extents {
  int64_t batch, heads, queries, keys, d, dv;
  bool causal = false, padded = false;
};

/// Edge cases: one position, two, head width 1, more keys than queries, another value width.
inline std::vector<Extents> edges() {
  return {{1, 1, 1, 1, 1, 1},
          {2, 2, 2, 2, 3, 3, true},
          {2, 1, 17, 17, 5, 3, true, true},
          {3, 2, 5, 17, 4, 6, false, true},
          {1, 2, 17, 17, 1, 2, true}};
}

/// The inputs of a formula for one head.
struct Head {
  Matrix q, k;
  int64_t index;
  int64_t length;  ///< number of keys without padding
  bool causal;
  const std::map<std::string, std::vector<double>>& parameters;
  int64_t heads;

  int64_t open(int64_t i) const { return causal ? std::min(length, i + 1 + k.rows - q.rows) : length; }
  bool allowed(int64_t i, int64_t j) const { return j < open(i); }
  /// This head's part of a parameter [H, ...].
  Matrix part(const std::string& name, int64_t rows, int64_t columns) const {
    const std::vector<double>& all = parameters.at(name);
    const auto each = static_cast<int64_t>(all.size()) / heads;
    REQUIRE(each == rows * columns);
    return {rows, columns, {all.begin() + index * each, all.begin() + (index + 1) * each}};
  }
};

/// The map of one head, which multiplies the values.
using MapOf = std::function<Matrix(const Head&)>;

/// a b
inline Matrix product(const Matrix& a, const Matrix& b) { return apply(a, b); }

/// Inputs of a comparison: q, k, v and parameters by name.
using Numbers = std::map<std::string, std::vector<double>>;

struct Result {
  std::vector<double> out, map;
};

inline Result evaluate(const Extents& x, const Numbers& numbers, const std::vector<int64_t>& lengths,
                       const MapOf& map_of) {
  Result result;
  const auto head_of = [&](const char* name, int64_t index, int64_t rows, int64_t columns) {
    const auto first = numbers.at(name).begin() + index * rows * columns;
    return Matrix(rows, columns, {first, first + rows * columns});
  };
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      const int64_t at = b * x.heads + h;
      const Head head{head_of("q", at, x.queries, x.d),
                      head_of("k", at, x.keys, x.d),
                      h,
                      lengths[static_cast<size_t>(b)],
                      x.causal,
                      numbers,
                      x.heads};
      const Matrix map = map_of(head);
      const Matrix out = apply(map, head_of("v", at, x.keys, x.dv));
      result.map.insert(result.map.end(), map.values.begin(), map.values.end());
      result.out.insert(result.out.end(), out.values.begin(), out.values.end());
    }
  }
  return result;
}

inline double furthest(const std::vector<double>& found, const std::vector<double>& wanted) {
  REQUIRE(found.size() == wanted.size());
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double off = std::abs(found[i] - wanted[i]) / std::max(1.0, std::abs(wanted[i]));
    if (!(off <= worst)) worst = std::isfinite(off) ? off : HUGE_VAL;
  }
  return worst;
}

/// Compares a variant on heads with its formula.
inline void compare_on_heads(const std::string& spec, const Extents& x, const MapOf& map_of,
                             double spread = 0.7) {
  CAPTURE(spec, x.batch, x.heads, x.queries, x.keys, x.d, x.dv, x.causal, x.padded);
  Rng rng(29);
  const auto made = make_attention(spec,
                                   {.d_model = x.heads * x.d,
                                    .heads = x.heads,
                                    .causal = x.causal,
                                    .cross = x.queries != x.keys,
                                    .max_length = x.keys + 2},
                                   rng);
  auto& module = dynamic_cast<MultiHeadAttention&>(*made);
  convert(module, DType::f64);
  Numbers numbers;
  std::map<std::string, Tensor> leaves;
  for (const Named& named : parameters(module)) {
    if (named.name.find('.') != std::string::npos) continue;  // projections are not compared
    fill_normal(*named.tensor, 0, spread, rng);
    leaves[named.name] = *named.tensor;
  }
  const auto heads = [&](const char* name, int64_t rows, int64_t columns) {
    const Tensor filled(Shape{x.batch, x.heads, rows, columns}, DType::f64);
    fill_normal(filled, 0, 1, rng);
    return leaves[name] = leaf(filled);
  };
  const Tensor q = heads("q", x.queries, x.d), k = heads("k", x.keys, x.d), v = heads("v", x.keys, x.dv);
  for (const auto& [name, tensor] : leaves) numbers[name] = tensor.to_doubles();

  std::vector<int64_t> lengths(static_cast<size_t>(x.batch), x.keys);
  std::vector<int32_t> narrow;
  for (size_t b = 0; b < lengths.size(); ++b) {
    if (x.padded && b > 0) lengths[b] = b == 1 ? x.keys - 4 : 0;
    narrow.push_back(static_cast<int32_t>(lengths[b]));
  }
  Mask mask = x.causal ? Mask::causal() : Mask::none();
  if (x.padded) mask = mask & Mask::lengths(Tensor::of<int32_t>(narrow, Shape{x.batch}));
  MapRecorder recorder;
  const Tensor y = module.on_heads({q, k, v}, {.mask = mask, .context = {.recorder = &recorder}});
  const Result wanted = evaluate(x, numbers, lengths, map_of);
  CHECK(furthest(y.to_doubles(), wanted.out) < 1e-9);
  REQUIRE(recorder.maps.size() == 1);
  CHECK(furthest(recorder.maps[0].weights.to_doubles(), wanted.map) < 1e-9);

  const Tensor slope(y.shape(), DType::f64);
  fill_normal(slope, 0, 1, rng);
  backward(y, slope);
  const std::vector<double> along = slope.to_doubles();
  const auto total = [&] {
    const Result result = evaluate(x, numbers, lengths, map_of);
    double sum = 0;
    for (size_t i = 0; i < along.size(); ++i) sum += along[i] * result.out[i];
    return sum;
  };
  for (const auto& [name, tensor] : leaves) {
    CAPTURE(name);
    const Tensor gradient = grad_of(tensor);
    const std::vector<double> found =
        gradient ? gradient.to_doubles() : std::vector<double>(static_cast<size_t>(tensor.size()), 0.0);
    std::vector<double>& values = numbers[name];
    const size_t stride = std::max<size_t>(1, values.size() / 12);
    double worst = 0;
    for (size_t i = 0; i < values.size(); i += stride) {
      const double before = values[i], step = 1e-5;
      values[i] = before + step;
      const double above = total();
      values[i] = before - step;
      const double numeric = (above - total()) / (2 * step);
      values[i] = before;
      worst = std::max(worst, std::abs(numeric - found[i]) / std::max(1.0, std::abs(numeric)));
    }
    CHECK(worst < 1e-6);
  }
}

inline void compare_edges(const std::string& spec, const MapOf& map_of, double spread = 0.7) {
  for (const Extents& x : edges()) compare_on_heads(spec, x, map_of, spread);
}

}  // namespace heed::reference
