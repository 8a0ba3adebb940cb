// Formulas of a program applied to scores [B, H, Tq, Tk], block by block.
#include "heed/autograd/pair_formulas.h"

#include <algorithm>
#include <vector>

#include "heed/autograd/comparisons.h"
#include "heed/autograd/node.h"
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/minus_infinity.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed {
namespace {

constexpr int64_t block_size = 64;

/// Calls f(block, index) for the blocks of scores [B, H, Tq, Tk], where number `index` in memory is that of
/// the block's first pair. Heads and rows of blocks are in parallel.
template <class F>
void each_block(const Shape& scores, int64_t first_query, F&& f) {
  const int64_t heads = scores[1], Tq = scores[2], Tk = scores[3], rows = ceil_div(Tq, block_size);
  parallel_for(scores[0] * heads * rows, [&](int64_t piece) {
    const int64_t head = piece / rows, i = piece % rows * block_size;
    for (int64_t j = 0; j < Tk; j += block_size) {
      const PairBlock block{.batch = head / heads,
                            .head = head % heads,
                            .first_query = first_query + i,
                            .queries = std::min(block_size, Tq - i),
                            .first_key = j,
                            .keys = std::min(block_size, Tk - j)};
      f(block, (head * Tq + i) * Tk + j);
    }
  });
}

/// y = formula(x) and, where `slopes` has numbers, its derivatives.
template <class T>
void apply_to_scores(const ScoreFormula& formula, const Tensor& x, int64_t first_query, const Tensor& y,
                     const Tensor& slopes) {
  const int64_t Tk = x.extent(3);
  const T* const from = x.data<T>();
  T* const to = y.data<T>();
  T* const derivatives = slopes ? slopes.data<T>() : nullptr;
  each_block(x.shape(), first_query, [&](const PairBlock& block, int64_t first) {
    T scores[block_size * block_size], slope[block_size * block_size];  // [keys, queries]
    for (int64_t i = 0; i < block.queries; ++i) {
      for (int64_t j = 0; j < block.keys; ++j) scores[j * block_size + i] = from[first + i * Tk + j];
    }
    formula.apply(ScoreBlock<T>{.pairs = block,
                                .scores = scores,
                                .key_stride = block_size,
                                .unit = T(1),
                                .slopes = derivatives == nullptr ? nullptr : slope});
    for (int64_t i = 0; i < block.queries; ++i) {
      for (int64_t j = 0; j < block.keys; ++j) {
        const T score = scores[j * block_size + i];
        to[first + i * Tk + j] = score;
        if (derivatives != nullptr)
          derivatives[first + i * Tk + j] = score == minus_infinity<T> ? T(0) : slope[j * block_size + i];
      }
    }
  });
}

/// Fails unless scores are [B, H, Tq, Tk] of numbers on the CPU and there is a formula.
void check_scores(const char* op, const Tensor& scores, const PairFormulas& formulas) {
  check_float(op, scores);
  if (!formulas) fail(op, ": there is no formula. Make one with score_formula() or mask_formula().");
  if (scores.rank() != 4) fail(op, ": scores ", scores.shape(), "; they must be [B, H, Tq, Tk].");
  check_formulas(op, scores, formulas);
}

}  // namespace

Tensor apply_formula(const Tensor& scores, const std::shared_ptr<const ScoreFormula>& formula,
                     int64_t first_query) {
  check_scores("apply_formula", scores, {.score = formula});
  const Tensor x = contiguous(scores.detach()), y = empty_like(x),
               slopes = recording() && scores.node() ? empty_like(x) : Tensor();
  visit_float("apply_formula", x.dtype(),
              [&]<class T>(Type<T>) { apply_to_scores<T>(*formula, x, first_query, y, slopes); });
  return record("apply_formula", y, {&scores}, [slopes](const Tensor& dy) -> Gradients {
    return {where(not_equal(dy, 0), dy * slopes, 0)};  // slopes of hidden pairs may be NaN
  });
}

Tensor apply_mask(const Tensor& scores, const std::shared_ptr<const MaskFormula>& formula,
                  int64_t first_query) {
  check_scores("apply_mask", scores, {.mask = formula});
  const Tensor visible(scores.shape(), DType::u8, Device::cpu);
  const int64_t Tk = scores.extent(3);
  each_block(scores.shape(), first_query, [&](const PairBlock& block, int64_t first) {
    uint64_t bits[block_size];
    formula->visible_keys(block, bits);
    uint8_t* const row = visible.data<uint8_t>() + first;
    for (int64_t i = 0; i < block.queries; ++i) {
      for (int64_t j = 0; j < block.keys; ++j) row[i * Tk + j] = static_cast<uint8_t>((bits[i] >> j) & 1);
    }
  });
  return where(visible, scores, minus_infinity<double>);
}

}  // namespace heed
