// A Fastmax call as plain pointers, and the states that its segments begin with.
#pragma once

#include "core/kernels/fastmax_drop.h"
#include "core/kernels/fastmax_plan.h"
#include "core/kernels/scratch.h"
#include "core/kernels/small_gemm.h"

namespace heed::kernel {

/// One over the sum of weights as a row is divided by it; 0 for a row without keys.
template <class T>
T fastmax_inverse(const FastmaxTerms& terms, T sum) {
  T total = sum + static_cast<T>(terms.epsilon);
  const T guard = static_cast<T>(terms.guard);
  if (std::abs(total) < guard) total = std::copysign(guard, total);
  return total == T(0) ? T(0) : T(1) / total;
}

/// 1 for the first `count` lanes, 0 for the rest of `width`.
template <class T>
void fill_fastmax_ones(int64_t count, int64_t width, T* to) {
  std::fill_n(to, width, T(0));
  std::fill_n(to, count, T(1));
}

/// Pieces of work that pay for handing them out.
inline int64_t fastmax_grain(int64_t flops_each) {
  return std::max<int64_t>(1, piece_flops / std::max<int64_t>(1, flops_each));
}

/// Adds a loaded chunk of keys to a state: v and `last` (the column of ones) are its values.
template <class T>
int64_t add_fastmax_keys(const FastmaxPlan<T>& plan, const FastmaxDrop<T>& drop, FastmaxSide<T>& keys,
                         int64_t head, int64_t t, Rows<T> v, const T* last, T* room, T* state) {
  int64_t flops = 0;
  keys.begin(nullptr);
  for (const FeatureBlock& block : plan.blocks) {
    T* at = state + block.feature * plan.ld;
    const T* phi = keys.make(block, room);
    if (drop) phi = drop.apply(block, drop.key(head, t), keys.count(), phi, room);
    flops += small_gemm(Left::straight, block.count, plan.wide, keys.count(), phi, plan.chunk, v.data, v.ld,
                        at, plan.ld, true);
    add_fastmax_last(phi, block.count, plan.chunk, keys.width(), last, at + plan.dv, plan.ld);
    flops += 2 * block.count * keys.width();
  }
  return flops;
}

/// Sums over keys begin <= j < end of a head, added to a state.
template <class T>
class FastmaxGather {
 public:
  static int64_t scratch(const FastmaxPlan<T>& plan) {
    return Carve<T>::rounded(FastmaxSide<T>::scratch(plan)) + plan.block_rows * plan.chunk +
           plan.chunk * plan.wide + plan.chunk;
  }
  FastmaxGather(const FastmaxPlan<T>& plan, const FastmaxDrop<T>& drop, T* memory)
      : plan_(plan),
        drop_(drop),
        carve_(memory),
        keys_(plan, false, carve_.take(FastmaxSide<T>::scratch(plan))) {
    room_ = carve_.take(plan.block_rows * plan.chunk);
    v_copy_ = carve_.take(plan.chunk * plan.wide);
    last_ = carve_.take(plan.chunk);
  }
  int64_t add(const FastmaxHead<T>& x, int64_t begin, int64_t end, T* state) {
    int64_t flops = 0;
    for (int64_t t = begin; t < end; t += plan_.chunk) {
      const int64_t count = std::min(plan_.chunk, end - t);
      keys_.load(x.k.from(t).data, x.k.ld, count);
      const Rows<T> v = whole_rows(x.v.from(t).data, x.v.ld, count, plan_.dv, v_copy_);
      fill_fastmax_ones(count, keys_.width(), last_);
      flops += add_fastmax_keys(plan_, drop_, keys_, x.index, t, v, last_, room_, state);
    }
    return flops;
  }

 private:
  const FastmaxPlan<T>& plan_;
  const FastmaxDrop<T>& drop_;
  Carve<T> carve_;
  FastmaxSide<T> keys_;
  T *room_, *v_copy_, *last_;
};

/// How many segments the positions of each head are cut into: the extents alone decide. What is cut costs
/// half as much again, so only few and long heads are.
template <class T>
int64_t fastmax_segments(const FastmaxPlan<T>& plan, int64_t heads, int64_t length) {
  if (heads == 0 || heads >= 4) return 1;
  const int64_t shortest = std::max<int64_t>(2048, 4 * plan.features);
  return std::max<int64_t>(1, std::min(16 / heads, length / shortest));
}

/// States [head, segment, state] in plan order: partial sums become what lies before each segment (from the
/// left) or after it. `outside` gives what lies beyond the ends, or null.
template <class T, class Outside>
void fastmax_accumulate(const FastmaxPlan<T>& plan, int64_t heads, int64_t segments, bool from_left,
                        T* states, Outside&& outside) {
  const int64_t size = plan.state();
  parallel_for(heads, [&](int64_t head) {
    std::vector<T> running(static_cast<size_t>(size));
    load_fastmax_state(plan, outside(head), running.data());
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

/// What lies before each segment: [heads segments, state].
template <class T>
Tensor fastmax_prefixes(const FastmaxPlan<T>& plan, const FastmaxDrop<T>& drop, const FastmaxCall<T>& call,
                        int64_t segments, int64_t length) {
  const int64_t heads = call.B * call.H, size = plan.state();
  const Tensor states = Tensor::zeros(Shape{heads * segments, size}, dtype_of<T>);
  T* data = states.data<T>();
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * FastmaxGather<T>::scratch(plan));
  parallel_rows(heads * segments, 1, [&](int64_t at, int64_t) {
    const int64_t segment = at % segments;
    if (segment + 1 == segments) return;  // nobody comes after it
    const Scratch::Part part(scratch);
    FastmaxGather<T> work(plan, drop, part.template data<T>());
    const FastmaxHead<T> x = call.head(at / segments);
    const int64_t begin = segment * length, end = std::min(begin + length, call.keys);
    const int64_t seen = plan.seen(call.lengths, x.batch, begin, std::max<int64_t>(0, end - begin));
    Count::add(work.add(x, begin, begin + seen, data + at * size));
  });
  fastmax_accumulate(plan, heads, segments, true, data, [&](int64_t head) { return call.start_of(head); });
  return states;
}

}  // namespace heed::kernel
