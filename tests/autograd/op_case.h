// The table of ops: one row per op, input of the generic tests in op_cases.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/autograd/ops.h"
#include "heed/tests/autograd/plain.h"

namespace heed::plain {

/// How to fill an input.
struct Kind {
  enum class What { real, distinct, ids, mask } what = What::real;
  double low = -2, high = 2;  ///< real: uniform in this range
  double gap = 0;             ///< real: minimum distance from 0, where a function has a kink
  double shift = 0;           ///< distinct: multiples of 1/16 in random order, plus this
  int64_t count = 0;          ///< ids: exclusive upper bound
};

inline Kind between(double low, double high) { return {.low = low, .high = high}; }
inline Kind away_from_zero(double gap) { return {.gap = gap}; }
inline Kind distinct(double shift) { return {.what = Kind::What::distinct, .shift = shift}; }
inline Kind ids_below(int64_t count) { return {.what = Kind::What::ids, .count = count}; }
inline Kind mask() { return {.what = Kind::What::mask}; }

using Shapes = std::vector<Shape>;  ///< shapes of the inputs of one call
using Inputs = std::span<const Tensor>;

/// An op, its test inputs, and its reference in plain doubles.
struct OpCase {
  std::string op;                ///< as in autograd/ops.h: "affine(x, scale, shift)"
  std::string note = {};         ///< distinguishes several rows of this op
  std::vector<Shapes> shapes;    ///< small calls: odd, of size 1, empty, broadcast
  Shapes large;                  ///< one call that is split over threads
  std::vector<Kind> kinds = {};  ///< kinds of the inputs; others are uniform in [-2, 2)
  std::function<Tensor(Inputs)> apply;
  std::function<Plain(const Plains&)> reference;
  double looser = 1;           ///< factor on the tolerance of values, for long sums
  double looser_gradient = 1;  ///< factor on the tolerance of f32 gradients
};

std::vector<OpCase> arithmetic_cases();
std::vector<OpCase> shape_cases();
std::vector<OpCase> row_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> score_cases();
std::vector<OpCase> position_cases();
std::vector<OpCase> scan_cases();
std::vector<OpCase> recurrence_cases();
std::vector<OpCase> tree_cases();
std::vector<OpCase> fastmax_cases();
std::vector<OpCase> packed_cases();
std::vector<OpCase> dropout_cases();

}  // namespace heed::plain
