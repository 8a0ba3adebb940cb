// States of PolynomialAttention on the CPU: sums over keys, and the states at the beginnings of segments.
#pragma once

#include "heed/core/kernels/linear_attention/polynomial_mapped_chunk.h"
#include "heed/core/kernels/linear_attention/polynomial_state_block.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// Copies a state from contiguous rows [num_features, dv + 1], or zeros it where `rows` is null.
template <class T>
void load_polynomial_state(const PolynomialPlan<T>& plan, const T* rows, T* state) {
  std::fill_n(state, plan.state_size(), T(0));
  for (int64_t f = 0; rows != nullptr && f < plan.num_features; ++f)
    std::copy_n(rows + f * (plan.dv + 1), plan.dv + 1, state + f * plan.state_ld);
}
/// Copies a state to contiguous rows [num_features, dv + 1].
template <class T>
void save_polynomial_state(const PolynomialPlan<T>& plan, const T* state, T* rows) {
  for (int64_t f = 0; f < plan.num_features; ++f)
    std::copy_n(state + f * plan.state_ld, plan.dv + 1, rows + f * (plan.dv + 1));
}

/// 1 / (sum of weights + epsilon), where the guard bounds the divisor; 0 for a query without keys.
template <class T>
T inverse_weight_sum(const PolynomialParams& params, T sum) {
  T total = sum + static_cast<T>(params.epsilon);
  const T guard = static_cast<T>(params.guard);
  if (std::abs(total) < guard) total = std::copysign(guard, total);
  return total == T(0) ? T(0) : T(1) / total;
}

/// visible [keys.padded_count()] = 1 for the loaded keys and 0 behind them: the sum factors of keys.
template <class T>
void fill_visible(const MappedChunk<T>& keys, T* visible) {
  std::fill_n(visible, keys.padded_count(), T(0));
  std::fill_n(visible, keys.count(), T(1));
}

/// Number of items of a task, given the floating-point operations of each.
inline int64_t rows_per_task(int64_t flops_each) {
  return std::max<int64_t>(1, flops_per_task / std::max<int64_t>(1, flops_each));
}

/// state [num_features, dv + 1] += features [values, sum_factors] of a loaded chunk of keys or queries, whose
/// features are computed in `buffer`, a block at a time. Returns the operations.
template <class T>
int64_t add_to_state(const PolynomialPlan<T>& plan, MappedChunk<T>& tokens, Rows<T> values,
                     const T* sum_factors, T* buffer, T* state) {
  int64_t flops = 0;
  tokens.begin_features(nullptr);
  for (const FeatureBlock& block : plan.blocks) {
    const T* features = tokens.make_features(block, buffer, tokens.draw_mask(block));
    flops += add_to_state(plan, block.count, features, tokens.count(), values, sum_factors,
                          plan.rows_of(block, state));
  }
  return flops;
}

/// Adds keys to states.
template <class T>
class PolynomialKeySums {
 public:
  static int64_t scratch(const PolynomialPlan<T>& plan) {
    return BumpAllocator<T>::rounded(MappedChunk<T>::scratch(plan)) + plan.block_rows * plan.chunk +
           plan.chunk * plan.padded_dv + plan.chunk;
  }
  PolynomialKeySums(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout, T* memory)
      : plan_(plan),
        arena_(memory),
        keys_(plan, dropout, TokenRole::key, arena_.take(MappedChunk<T>::scratch(plan))) {
    features_ = arena_.take(plan.block_rows * plan.chunk);
    v_copy_ = arena_.take(plan.chunk * plan.padded_dv);
    visible_ = arena_.take(plan.chunk);
  }
  /// state [num_features, dv + 1] += sum over keys [begin, end) of a head of features [v, 1]. Returns the
  /// operations.
  int64_t add(const PolynomialHead<T>& x, int64_t begin, int64_t end, T* state) {
    int64_t flops = 0;
    for (int64_t t = begin; t < end; t += plan_.chunk) {
      const int64_t count = std::min(plan_.chunk, end - t);
      keys_.load(x.k.from(t), count, x.index, t);
      const Rows<T> v = whole_rows(x.v.row(t), x.v.ld, count, plan_.dv, v_copy_);
      fill_visible(keys_, visible_);
      flops += add_to_state(plan_, keys_, v, visible_, features_, state);
    }
    return flops;
  }

 private:
  const PolynomialPlan<T>& plan_;
  BumpAllocator<T> arena_;
  MappedChunk<T> keys_;
  T *features_, *v_copy_, *visible_;
};

/// The running state of a head as one chunk uses it: a sum over earlier keys, or over later queries.
template <class T>
struct RunningState {
  T* state;              ///< [num_features, dv + 1]
  bool is_nonzero;       ///< tokens have been added
  bool is_needed_later;  ///< another chunk reads it, so this chunk's tokens must be added
};

/// Number of segments that the positions of each head are split into, which depends on the extents alone.
/// Splitting adds half of the operations, so it is done only for few, long heads.
template <class T>
int64_t num_polynomial_segments(const PolynomialPlan<T>& plan, int64_t heads, int64_t length) {
  if (heads == 0 || heads >= 4) return 1;
  const int64_t min_length = std::max<int64_t>(2048, 4 * plan.num_features);
  return std::max<int64_t>(1, std::min(16 / heads, length / min_length));
}

/// Turns the sums of single segments, states [heads, segments, state], into sums of other segments, in place:
/// those before each segment where they sum keys, those after it where they sum queries. start_of(head) is a
/// state that is added to all of a head, or null.
template <class T, class StartOf>
void accumulate_segments(const PolynomialPlan<T>& plan, int64_t heads, int64_t segments, TokenRole role,
                         T* states, StartOf&& start_of) {
  const int64_t size = plan.state_size();
  parallel_for(heads, [&](int64_t head) {
    std::vector<T> running_sum(static_cast<size_t>(size));
    load_polynomial_state(plan, start_of(head), running_sum.data());
    for (int64_t n = 0; n < segments; ++n) {
      const int64_t segment = role == TokenRole::key ? n : segments - 1 - n;
      T* state = states + (head * segments + segment) * size;
      for (int64_t i = 0; i < size; ++i) {
        const T segment_sum = state[i];
        state[i] = running_sum[static_cast<size_t>(i)];
        running_sum[static_cast<size_t>(i)] += segment_sum;
      }
    }
  });
}

/// The states before each segment of `length` keys, [heads segments, state]: the sum of all earlier keys and
/// of the start.
template <class T>
Tensor polynomial_prefixes(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout,
                           const PolynomialCall<T>& call, int64_t segments, int64_t length) {
  const int64_t heads = call.B * call.H, size = plan.state_size();
  const Tensor states = Tensor::zeros(Shape{heads * segments, size}, dtype_of<T>);
  T* data = states.data<T>();
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * PolynomialKeySums<T>::scratch(plan));
  parallel_rows(heads * segments, 1, [&](int64_t item, int64_t) {
    const int64_t segment = item % segments;
    if (segment + 1 == segments) return;  // no later segment reads it
    const Scratch::Part part(scratch);
    PolynomialKeySums<T> key_sums(plan, dropout, part.template data<T>());
    const PolynomialHead<T> x = call.head(item / segments);
    const int64_t begin = segment * length, end = std::min(begin + length, x.keys);
    const int64_t visible =
        plan.visible_keys(call.lengths, x.batch, begin, std::max<int64_t>(0, end - begin));
    Count::add(key_sums.add(x, begin, begin + visible, data + item * size));
  });
  accumulate_segments(plan, heads, segments, TokenRole::key, data,
                      [&](int64_t head) { return call.start_of(head); });
  return states;
}

}  // namespace heed::kernel
