// Formulas of a program for the scores and masks of attention, compiled into its tile loop: score_formula()
// and mask_formula(). Dong et al. 2024, "Flex Attention", arXiv 2412.05496.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "heed/core/dual.h"

namespace heed {

/// Pairs of some neighbouring queries with some neighbouring keys, in one head of one sequence.
struct PairBlock {
  int64_t batch = 0;        ///< row of the batch
  int64_t head = 0;         ///< query head
  int64_t first_query = 0;  ///< position of the first query, from the `first_query` of the call on
  int64_t queries = 0;      ///< number of queries
  int64_t first_key = 0;    ///< position of the first key
  int64_t keys = 0;         ///< number of keys, at most 64
};

/// The scores of a block of pairs, in memory.
template <class T>
struct ScoreBlock {
  PairBlock pairs;         ///< which pairs
  T* scores = nullptr;     ///< that of query i and key j, counted in the block, is scores[j key_stride + i]
  int64_t key_stride = 0;  ///< numbers from one key to the next
  T unit = 1;              ///< a score is `unit` times the number in memory
  T* slopes = nullptr;     ///< receives derivatives, laid out as the scores; null: they are not wanted
};

/// What a program makes of the scores of attention. score_formula() makes one of a formula for one pair.
class ScoreFormula {
 public:
  virtual ~ScoreFormula() = default;
  /// Replaces each score s by f(s), and writes the slope df/ds. Called by many threads at once.
  virtual void apply(const ScoreBlock<float>& block) const = 0;
  virtual void apply(const ScoreBlock<double>& block) const = 0;  ///< apply() in f64
};

/// Keys from `begin` to `end` - 1.
struct KeyBounds {
  int64_t begin = 0;                                  ///< the first key
  int64_t end = std::numeric_limits<int64_t>::max();  ///< one past the last key
};

/// Which pairs of attention a program leaves visible. mask_formula() makes one of a condition on one pair.
class MaskFormula {
 public:
  virtual ~MaskFormula() = default;
  /// Writes bits [queries]: bit j of a query is 1 where it sees key j of the block, and 0 past the last key.
  /// Called by many threads at once.
  virtual void visible_keys(const PairBlock& pairs, uint64_t* bits) const = 0;
  /// Keys outside these are hidden from the query at this position, for visible_keys(), too. Blocks of pairs
  /// outside the bounds of all their queries are skipped without a call of it.
  virtual KeyBounds bounds(int64_t batch, int64_t head, int64_t query) const = 0;
};

namespace detail {

template <class Formula>
class CompiledScore final : public ScoreFormula {
 public:
  explicit CompiledScore(Formula formula) : formula_(std::move(formula)) {}
  void apply(const ScoreBlock<float>& block) const override { run(block); }
  void apply(const ScoreBlock<double>& block) const override { run(block); }

 private:
  template <class T>
  void run(const ScoreBlock<T>& block) const {
    const PairBlock& pairs = block.pairs;
    const T unit = block.unit, per_unit = T(1) / unit;
    for (int64_t j = 0; j < pairs.keys; ++j) {
      T* const scores = block.scores + j * block.key_stride;
      T* const slopes = block.slopes == nullptr ? nullptr : block.slopes + j * block.key_stride;
      const auto result = [&](int64_t i) -> Dual<T> {
        return formula_(pairs.batch, pairs.head, pairs.first_query + i, pairs.first_key + j,
                        Dual<T>(scores[i] * unit, T(1)));
      };
      if (slopes == nullptr) {  // slopes are then not computed
        for (int64_t i = 0; i < pairs.queries; ++i) scores[i] = result(i).value * per_unit;
        continue;
      }
      for (int64_t i = 0; i < pairs.queries; ++i) {
        const Dual<T> y = result(i);
        scores[i] = y.value * per_unit;
        slopes[i] = y.slope;
      }
    }
  }

  Formula formula_;
};

template <class Condition, class Bounds>
class CompiledMask final : public MaskFormula {
 public:
  CompiledMask(Condition condition, Bounds bounds)
      : condition_(std::move(condition)), bounds_(std::move(bounds)) {}
  void visible_keys(const PairBlock& pairs, uint64_t* bits) const override {
    for (int64_t i = 0; i < pairs.queries; ++i) {
      const KeyBounds all = bounds(pairs.batch, pairs.head, pairs.first_query + i);
      const int64_t begin = std::max(all.begin, pairs.first_key) - pairs.first_key,
                    end =
                        std::clamp(all.end, pairs.first_key, pairs.first_key + pairs.keys) - pairs.first_key;
      unsigned char seen[64] = {};  // apart from the bits, so that a compiler can make vectors of it
      for (int64_t j = begin; j < end; ++j)
        seen[j] = condition_(pairs.batch, pairs.head, pairs.first_query + i, pairs.first_key + j) ? 1 : 0;
      uint64_t word = 0;
      for (int j = 0; j < 64; ++j) word |= uint64_t{seen[j]} << j;
      bits[i] = word;
    }
  }
  KeyBounds bounds(int64_t batch, int64_t head, int64_t query) const override {
    return bounds_(batch, head, query);
  }

 private:
  Condition condition_;
  Bounds bounds_;
};

}  // namespace detail

/// A function (batch, head, query, key, score) -> score that is callable with dual numbers.
template <class F>
concept FormulaOfScore = requires(const F& f, int64_t at, Dual<float> single, Dual<double> twice) {
  { f(at, at, at, at, single) } -> std::convertible_to<Dual<float>>;
  { f(at, at, at, at, twice) } -> std::convertible_to<Dual<double>>;
};

/// A formula for the score of one pair: f(batch, head, query, key, score) -> score, where batch, head and the
/// positions of query and key are int64_t. Write the score as `auto`: it is a Dual, so the derivative follows
/// from the formula. -infinity hides the key. What f captures must live until backward() and may not change
/// before; f is called by many threads at once, and for pairs that a mask hides, too.
template <FormulaOfScore F>
std::shared_ptr<const ScoreFormula> score_formula(F f) {
  return std::make_shared<const detail::CompiledScore<F>>(std::move(f));
}

/// A mask by a condition on one pair: visible(batch, head, query, key) -> bool. Tiles of 64 by 64 pairs that
/// are all hidden are skipped. bounds(batch, head, query) -> KeyBounds hides all keys outside, and lets
/// attention skip tiles without asking about their pairs. Captures: as those of score_formula().
template <class Condition, class Bounds>
requires std::predicate<const Condition&, int64_t, int64_t, int64_t, int64_t>
    std::shared_ptr<const MaskFormula> mask_formula(Condition visible, Bounds bounds) {
  return std::make_shared<const detail::CompiledMask<Condition, Bounds>>(std::move(visible),
                                                                         std::move(bounds));
}

/// mask_formula() without bounds.
template <class Condition>
std::shared_ptr<const MaskFormula> mask_formula(Condition visible) {
  return mask_formula(std::move(visible), [](int64_t, int64_t, int64_t) { return KeyBounds{}; });
}

}  // namespace heed
