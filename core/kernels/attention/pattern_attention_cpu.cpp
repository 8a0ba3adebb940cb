// Pattern attention forward on the CPU: the groups of the plan, in parallel.
#include "heed/core/kernels/attention/pattern_attention.h"

#include "heed/core/kernels/attention/pattern_steps.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/pair_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

using Group = BlockPlan::Group;
using Step = BlockPlan::Step;

/// The forward pass of one group, with the memory it needs.
template <class T>
class Forward {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    return ForwardTile<T>::scratch(d, dv) + ForwardRow<T>::scratch(d, dv) + 2 * padded_tile<T>(d) +
           2 * padded_tile<T>(dv) + 2 * tile;
  }
  Forward(T* memory, const PatternAttentionCall<T>& call, const Tensor& q, const Tensor& k, const Tensor& v,
          const Tensor& out, const Tensor& lse)
      : call_(call),
        q_(q),
        k_(k),
        v_(v),
        out_(out),
        lse_(lse, call.B * call.H * call.Tq),
        work_(memory, call.d, call.dv),
        row_(memory + ForwardTile<T>::scratch(call.d, call.dv), call.d, call.dv) {
    BumpAllocator<T> arena(memory + ForwardTile<T>::scratch(call.d, call.dv) +
                           ForwardRow<T>::scratch(call.d, call.dv));
    q_tile_ = arena.take(padded_tile<T>(call.d));
    k_tile_ = arena.take(padded_tile<T>(call.d));
    v_tile_ = arena.take(padded_tile<T>(call.dv));
    out_tile_ = arena.take(padded_tile<T>(call.dv));
    lse_tile_.log = arena.take(tile);
    lse_tile_.rest = arena.take(tile);
  }

  int64_t group(StepPairs<T>& pairs, int64_t b, int64_t h, const Group& group, bool adds) {
    const int32_t* queries = call_.plan.queries(group);
    const RowLogs<T> lse = lse_.from((b * call_.H + h) * call_.Tq);
    if (group.alone) return alone(b, h, group, adds);
    const Rows<T> q = in_place<T>(group.gap, q_.ld)
                          ? Rows<T>{q_.at(b, h, queries[0]), group.gap * q_.ld}
                          : rows_at(q_.at(b, h, 0), q_.ld, queries, group.count, 0, call_.d, q_tile_);
    work_.start(q.data, q.ld, group.count, call_.scale_log2());
    if (adds) resume(b, h, group, lse);
    int64_t flops = 0;
    const int64_t keys = call_.keys_of(b);
    for (int64_t s = group.first_step; s < group.last_step; ++s) {
      const Step& step = call_.plan.step(s);
      const int32_t* index = call_.plan.keys(step);
      const int64_t count = count_below(index, step.count, keys);
      if (count == 0) break;
      const ScoreModifiers<T> modifiers = pairs.prepare(call_, b, h, group, step, count);
      Rows<T> k{k_.at(b, h, index[0]), step.gap * k_.ld}, v{v_.at(b, h, index[0]), step.gap * v_.ld};
      if (!in_place<T>(step.gap, std::max(k_.ld, v_.ld))) {
        k = rows_at(k_.at(b, h, 0), k_.ld, index, count, 0, call_.d, k_tile_);
        v = rows_at(v_.at(b, h, 0), v_.ld, index, count, 0, call_.dv, v_tile_);
      }
      const TileMask tile_mask = tile_mask_of(step, group.count, count);
      flops += work_.keys(k.data, k.ld, v.data, v.ld, tile_mask, modifiers);
    }
    if (group.gap == 1) {
      work_.finish(out_.at(b, h, queries[0]), out_.ld, lse.from(queries[0]));
      return flops;
    }
    work_.finish(out_tile_, call_.dv, lse_tile_);
    for (int64_t i = 0; i < group.count; ++i) {
      copy_row(out_tile_ + i * call_.dv, call_.dv, out_.at(b, h, queries[i]));
      lse.put(queries[i], lse_tile_.at(i));
    }
    return flops;
  }

 private:
  /// Continues from the output and log sums of the first pass.
  void resume(int64_t b, int64_t h, const Group& group, const RowLogs<T>& lse) {
    const int32_t* queries = call_.plan.queries(group);
    gather_rows<T>(out_.at(b, h, 0), out_.ld, queries, group.count, call_.dv, out_tile_);
    for (int64_t i = 0; i < group.count; ++i) lse_tile_.put(i, lse.at(queries[i]));
    work_.resume(out_tile_, simd::padded<T>(call_.dv), lse_tile_);
  }

  int64_t alone(int64_t b, int64_t h, const Group& group, bool adds) {
    int64_t flops = 0;
    const Rows<T> k{k_.at(b, h, 0), k_.ld}, v{v_.at(b, h, 0), v_.ld};
    const RowLogs<T> lse = lse_.from((b * call_.H + h) * call_.Tq);
    for (int64_t n = 0; n < group.count; ++n) {
      const int64_t i = call_.plan.queries(group)[n];
      row_.start(q_.at(b, h, i), call_.scale_log2());
      each_pick(call_, group.part, b, h, i, [&](Picked picked, const T* keep_mask) {
        flops += row_.keys(k, v, picked, nullptr, T(0), keep_mask);
      });
      row_.finish(out_tile_, lse_tile_);
      if (adds) {
        lse.put(i, merge(out_.at(b, h, i), lse.at(i), out_tile_, lse_tile_.at(0), call_.dv));
      } else {
        copy_row(out_tile_, call_.dv, out_.at(b, h, i));
        lse.put(i, lse_tile_.at(0));
      }
    }
    return flops;
  }

  const PatternAttentionCall<T>& call_;
  HeadView<const T> q_, k_, v_;
  HeadView<T> out_;
  RowLogs<T> lse_;
  ForwardTile<T> work_;
  ForwardRow<T> row_;
  T *q_tile_, *k_tile_, *v_tile_, *out_tile_;
  RowLogs<T> lse_tile_;
};

/// out and lse over the pairs of the pattern, pass by pass; a later pass joins its sums with those before it.
/// One task is some groups of queries (b, h, group).
template <class T>
void forward(const Tensor& q, const Tensor& k, const Tensor& v, const PatternTerms& terms, const Tensor& out,
             const Tensor& lse) {
  const PatternAttentionCall<T> call(q, k, v, terms);
  PairCount::add(call.pairs());
  const int64_t most = std::max<int64_t>(1, call.plan.max_groups());
  Scratch scratch(
      static_cast<int64_t>(sizeof(StepPairs<T>) + sizeof(T) * Forward<T>::scratch(call.d, call.dv)));
  for (int64_t index = 0; index < call.plan.passes(); ++index) {
    const int64_t grain = flops_per_task / (call.flops_of_head() / most + 1);
    parallel_rows(call.B * call.H * most, grain, [&](int64_t begin, int64_t end) {
      const Scratch::Part part(scratch);
      auto& pairs = *part.template data<StepPairs<T>>();
      Forward<T> work(reinterpret_cast<T*>(&pairs + 1), call, q, k, v, out, lse);
      int64_t flops = 0;
      for (int64_t at = begin; at < end; ++at) {
        const int64_t b = at / most / call.H, h = at / most % call.H;
        const BlockPlan::Pass pass = call.plan.pass(h, index);
        const int64_t g = pass.begin + at % most;
        if (g < pass.end) flops += work.group(pairs, b, h, call.plan.group(g), index > 0);
      }
      Count::add(flops);
    });
  }
}

}  // namespace

template <>
void PatternAttention::cpu<here>(const Tensor& q, const Tensor& k, const Tensor& v, const PatternTerms& terms,
                                 const Tensor& out, const Tensor& lse) {
  visit_float("block_attention", q.dtype(),
              [&](auto type) { forward<typename decltype(type)::type>(q, k, v, terms, out, lse); });
}

}  // namespace heed::kernel
