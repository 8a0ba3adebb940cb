// States of PolynomialAttention on the CPU: sums over keys, and the states at the beginnings of segments.
#pragma once

#include "heed/core/kernels/gemm/small_gemm.h"
#include "heed/core/kernels/linear_attention/polynomial_plan.h"
#include "heed/core/kernels/linear_attention/polynomial_side.h"
#include "heed/core/kernels/simd/scratch.h"

namespace heed::kernel {

/// 1 / (sum of weights + epsilon), with the guard; 0 for a query without keys.
template <class T>
T inverse_weight_sum(const PolynomialParams& params, T sum) {
  T total = sum + static_cast<T>(params.epsilon);
  const T guard = static_cast<T>(params.guard);
  if (std::abs(total) < guard) total = std::copysign(guard, total);
  return total == T(0) ? T(0) : T(1) / total;
}

/// Writes 1 for the first `count` tokens and 0 for others up to `width`.
template <class T>
void fill_ones_column(int64_t count, int64_t width, T* to) {
  std::fill_n(to, width, T(0));
  std::fill_n(to, count, T(1));
}

/// Number of items of a task, given the floating-point operations of each.
inline int64_t rows_per_task(int64_t flops_each) {
  return std::max<int64_t>(1, flops_per_task / std::max<int64_t>(1, flops_each));
}

/// state [features, dv + 1] += features [features, keys] [v, last] for a loaded chunk of keys; `last` is a
/// column of ones.
template <class T>
int64_t add_polynomial_keys(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout,
                            MonomialMaskGenerator<T>& masks, MappedChunk<T>& keys, int64_t head, int64_t t,
                            Rows<T> v, const T* last, T* buffer, T* state) {
  int64_t flops = 0;
  keys.begin(nullptr);
  for (const FeatureBlock& block : plan.blocks) {
    T* at = state + block.feature * plan.ld;
    const T* phi = keys.make(block, buffer, masks.draw(block, dropout.key_draw(head, t), keys.count()));
    flops += small_gemm(Left::row_major, block.count, plan.padded_dv, keys.count(), phi, plan.chunk, v.data,
                        v.ld, at, plan.ld, true);
    add_ones_column(phi, block.count, plan.chunk, keys.width(), last, at + plan.dv, plan.ld);
    flops += 2 * block.count * keys.width();
  }
  return flops;
}

/// Adds the features of keys to states.
template <class T>
class PolynomialKeySums {
 public:
  static int64_t scratch(const PolynomialPlan<T>& plan) {
    return BumpAllocator<T>::rounded(MappedChunk<T>::scratch(plan)) + plan.block_rows * plan.chunk +
           plan.chunk * plan.padded_dv + plan.chunk;
  }
  PolynomialKeySums(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout, T* memory)
      : plan_(plan),
        dropout_(dropout),
        masks_(plan, dropout),
        arena_(memory),
        keys_(plan, dropout, false, arena_.take(MappedChunk<T>::scratch(plan))) {
    features_ = arena_.take(plan.block_rows * plan.chunk);
    v_copy_ = arena_.take(plan.chunk * plan.padded_dv);
    ones_ = arena_.take(plan.chunk);
  }
  /// state [features, dv + 1] += sum over keys [begin, end) of features times [v, 1]. Returns the operations.
  int64_t add(const PolynomialHead<T>& x, int64_t begin, int64_t end, T* state) {
    int64_t flops = 0;
    for (int64_t t = begin; t < end; t += plan_.chunk) {
      const int64_t count = std::min(plan_.chunk, end - t);
      keys_.load(x.k.from(t).data, x.k.ld, count, x.index, t);
      const Rows<T> v = whole_rows(x.v.from(t).data, x.v.ld, count, plan_.dv, v_copy_);
      fill_ones_column(count, keys_.width(), ones_);
      flops += add_polynomial_keys(plan_, dropout_, masks_, keys_, x.index, t, v, ones_, features_, state);
    }
    return flops;
  }

 private:
  const PolynomialPlan<T>& plan_;
  const PolynomialDropoutDraws<T>& dropout_;
  MonomialMaskGenerator<T> masks_;
  BumpAllocator<T> arena_;
  MappedChunk<T> keys_;
  T *features_, *v_copy_, *ones_;
};

/// Number of segments that the positions of each head are split into, which depends on the extents alone.
/// Splitting adds half of the operations, so it is done only for few, long heads.
template <class T>
int64_t num_polynomial_segments(const PolynomialPlan<T>& plan, int64_t heads, int64_t length) {
  if (heads == 0 || heads >= 4) return 1;
  const int64_t shortest = std::max<int64_t>(2048, 4 * plan.features);
  return std::max<int64_t>(1, std::min(16 / heads, length / shortest));
}

/// Exclusive prefix sums over segments (from the left, or suffix sums) of states [heads, segments, state], in
/// place. outside(head) is the state added to all of a head, or null.
template <class T, class Outside>
void accumulate_states(const PolynomialPlan<T>& plan, int64_t heads, int64_t segments, bool from_left,
                       T* states, Outside&& outside) {
  const int64_t size = plan.state();
  parallel_for(heads, [&](int64_t head) {
    std::vector<T> running(static_cast<size_t>(size));
    load_polynomial_state(plan, outside(head), running.data());
    for (int64_t n = 0; n < segments; ++n) {
      T* at = states + (head * segments + (from_left ? n : segments - 1 - n)) * size;
      for (int64_t i = 0; i < size; ++i) {
        const T part = at[i];
        at[i] = running[static_cast<size_t>(i)];
        running[static_cast<size_t>(i)] += part;
      }
    }
  });
}

/// The state before each segment of keys, [heads segments, state].
template <class T>
Tensor polynomial_prefixes(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout,
                           const PolynomialCall<T>& call, int64_t segments, int64_t length) {
  const int64_t heads = call.B * call.H, size = plan.state();
  const Tensor states = Tensor::zeros(Shape{heads * segments, size}, dtype_of<T>);
  T* data = states.data<T>();
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * PolynomialKeySums<T>::scratch(plan));
  parallel_rows(heads * segments, 1, [&](int64_t at, int64_t) {
    const int64_t segment = at % segments;
    if (segment + 1 == segments) return;  // no segment follows
    const Scratch::Part part(scratch);
    PolynomialKeySums<T> work(plan, dropout, part.template data<T>());
    const PolynomialHead<T> x = call.head(at / segments);
    const int64_t begin = segment * length, end = std::min(begin + length, call.keys);
    const int64_t visible =
        plan.visible_keys(call.lengths, x.batch, begin, std::max<int64_t>(0, end - begin));
    Count::add(work.add(x, begin, begin + visible, data + at * size));
  });
  accumulate_states(plan, heads, segments, true, data, [&](int64_t head) { return call.start_of(head); });
  return states;
}

}  // namespace heed::kernel
