// Attention backward over the pairs of a pattern on the CPU: the groups of its plan in turn, with sums of dk
// and dv of their own for each run of groups.
#include "heed/core/kernels/attention/pattern_attention.h"

#include "heed/core/kernels/attention/attention_backward_tile.h"
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

/// The backward pass of one group, with the memory it needs.
template <class T>
class Backward {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    return BackTile<T>::scratch(d, dv) + BackRow<T>::scratch(d, dv) + 4 * padded_tile<T>(d) +
           5 * padded_tile<T>(dv) + 2 * tile;
  }
  Backward(T* memory, const PatternAttentionCall<T>& call, const AttentionBackTensors& t)
      : call_(call),
        padded_d_(simd::padded<T>(call.d)),
        padded_dv_(simd::padded<T>(call.dv)),
        q_(t.q),
        k_(t.k),
        v_(t.v),
        out_(t.out),
        dout_(t.dout),
        dq_(t.dq),
        lse_(t.lse, call.B * call.H * call.Tq),
        work_(memory, call.d, call.dv),
        row_(memory + BackTile<T>::scratch(call.d, call.dv), call.d, call.dv) {
    BumpAllocator<T> arena(memory + BackTile<T>::scratch(call.d, call.dv) +
                           BackRow<T>::scratch(call.d, call.dv));
    for (T** one : {&q_tile_, &k_tile_, &dk_tile_, &dq_tile_}) *one = arena.take(padded_tile<T>(call.d));
    for (T** one : {&v_tile_, &dv_tile_, &out_tile_, &dout_tile_}) *one = arena.take(padded_tile<T>(call.dv));
    lse_tile_.log = arena.take(tile);
    lse_tile_.rest = arena.take(tile);
    std::fill_n(dk_tile_, tile * padded_d_, T(0));
    std::fill_n(dv_tile_, tile * padded_dv_, T(0));
  }

  /// Adds to dk and dv, rows padded to whole vectors, the first of key 0.
  int64_t group(StepPairs<T>& pairs, int64_t b, int64_t h, const Group& group, bool adds, SumRows<T> dk,
                SumRows<T> dv) {
    if (group.alone) return alone(b, h, group, adds, dk, dv);
    start(b, h, group);
    int64_t flops = 0;
    const int64_t keys = call_.keys_of(b);
    for (int64_t s = group.first_step; s < group.last_step; ++s) {
      const Step& step = call_.plan.step(s);
      const int32_t* index = call_.plan.keys(step);
      const int64_t count = count_below(index, step.count, keys);
      if (count == 0) break;
      const ScoreModifiers<T> modifiers = pairs.prepare(call_, b, h, group, step, count);
      const Rows<T> k = rows_at(k_.at(b, h, 0), k_.ld, index, count, step.gap, call_.d, k_tile_);
      const Rows<T> v = rows_at(v_.at(b, h, 0), v_.ld, index, count, step.gap, call_.dv, v_tile_);
      const TileMask tile_mask = tile_mask_of(step, group.count, count);
      if (in_place<T>(step.gap, std::max(dk.ld, dv.ld))) {
        flops += work_.keys(k, v, tile_mask, modifiers, {dk.row(index[0]), step.gap * dk.ld},
                            {dv.row(index[0]), step.gap * dv.ld});
        continue;
      }
      flops += work_.keys(k, v, tile_mask, modifiers, {dk_tile_, padded_d_}, {dv_tile_, padded_dv_});
      scatter_rows(dk_tile_, index, count, padded_d_, dk);
      scatter_rows(dv_tile_, index, count, padded_dv_, dv);
    }
    const int32_t* queries = call_.plan.queries(group);
    if (group.gap > 0 && !adds) {
      work_.finish(dq_.at(b, h, queries[0]), group.gap * dq_.ld, T(1));
      return flops;
    }
    work_.finish(dq_tile_, call_.d, T(1));
    for (int64_t i = 0; i < group.count; ++i) put(dq_tile_ + i * call_.d, dq_.at(b, h, queries[i]), adds);
    return flops;
  }

 private:
  void start(int64_t b, int64_t h, const Group& group) {
    const int32_t* queries = call_.plan.queries(group);
    const RowLogs<T> lse = lse_.from((b * call_.H + h) * call_.Tq);
    if (group.gap == 1) {
      const int64_t i = queries[0];
      work_.start(q_.at(b, h, i), q_.ld, dout_.at(b, h, i), dout_.ld, out_.at(b, h, i), out_.ld, lse.from(i),
                  group.count, call_.scale_log2(), call_.scale);
      return;
    }
    const auto rows = [&](const HeadView<const T>& x, int64_t width, T* copy) {
      return rows_at(x.at(b, h, 0), x.ld, queries, group.count, group.gap, width, copy);
    };
    const Rows<T> q = rows(q_, call_.d, q_tile_), dout = rows(dout_, call_.dv, dout_tile_),
                  out = rows(out_, call_.dv, out_tile_);
    for (int64_t i = 0; i < group.count; ++i) lse_tile_.put(i, lse.at(queries[i]));
    work_.start(q.data, q.ld, dout.data, dout.ld, out.data, out.ld, lse_tile_, group.count,
                call_.scale_log2(), call_.scale);
  }

  int64_t alone(int64_t b, int64_t h, const Group& group, bool adds, SumRows<T> dk, SumRows<T> dv) {
    int64_t flops = 0;
    for (int64_t n = 0; n < group.count; ++n) {
      const int64_t i = call_.plan.queries(group)[n];
      row_.start(q_.at(b, h, i), dout_.at(b, h, i), out_.at(b, h, i),
                 lse_.at((b * call_.H + h) * call_.Tq + i), call_.scale_log2(), call_.scale);
      each_pick(call_, group.part, b, h, i, [&](Picked picked, const T* keep_mask) {
        if (padded_d_ == call_.d && padded_dv_ == call_.dv) {
          flops += row_.keys({k_.at(b, h, 0), k_.ld}, {v_.at(b, h, 0), v_.ld}, picked, dk, dv, keep_mask);
          return;
        }
        gather_rows(k_.at(b, h, 0), k_.ld, picked.index, picked.count, call_.d, k_tile_);
        gather_rows(v_.at(b, h, 0), v_.ld, picked.index, picked.count, call_.dv, v_tile_);
        int32_t here[tile];
        for (int32_t j = 0; j < tile; ++j) here[j] = j;
        flops += row_.keys({k_tile_, padded_d_}, {v_tile_, padded_dv_}, {here, picked.count},
                           {dk_tile_, padded_d_}, {dv_tile_, padded_dv_}, keep_mask);
        scatter_rows(dk_tile_, picked.index, picked.count, padded_d_, dk);
        scatter_rows(dv_tile_, picked.index, picked.count, padded_dv_, dv);
      });
      row_.finish(dq_tile_);
      put(dq_tile_, dq_.at(b, h, i), adds);
    }
    return flops;
  }

  void put(const T* dq, T* to, bool adds) const {
    if (!adds) return copy_row(dq, call_.d, to);
    for (int64_t c = 0; c < call_.d; ++c) to[c] += dq[c];
  }

  const PatternAttentionCall<T>& call_;
  int64_t padded_d_, padded_dv_;
  HeadView<const T> q_, k_, v_, out_, dout_;
  HeadView<T> dq_;
  RowLogs<T> lse_;
  BackTile<T> work_;
  BackRow<T> row_;
  T *q_tile_, *k_tile_, *dk_tile_, *dq_tile_, *v_tile_, *dv_tile_, *out_tile_, *dout_tile_;
  RowLogs<T> lse_tile_;
};

/// dq, dk and dv over the pairs of the pattern. With enough heads one task is some heads, whose groups follow
/// one another. With few heads one task is a run of groups of one head, with sums of dk and dv of its own;
/// the sums of all runs are then added in order.
template <class T>
void backward(const AttentionBackTensors& t, const PatternTerms& terms) {
  const PatternAttentionCall<T> call(t.q, t.k, t.v, terms);
  const HeadView<T> dks(t.dk), dvs(t.dv);
  const int64_t padded_d = simd::padded<T>(call.d), padded_dv = simd::padded<T>(call.dv);
  const GroupRuns cuts(call);
  const bool whole = cuts.count == 1;
  // Sums go straight to dk and dv where their rows are whole vectors.
  const auto own = [&](int64_t width, int64_t padded_width) {
    return whole && padded_width != width ? BumpAllocator<T>::rounded(call.Tk * padded_width) : 0;
  };
  const int64_t numbers =
      Backward<T>::scratch(call.d, call.dv) + own(call.d, padded_d) + own(call.dv, padded_dv);
  Scratch scratch(static_cast<int64_t>(sizeof(StepPairs<T>) + sizeof(T) * numbers));
  Storage shares(static_cast<int64_t>(sizeof(T)) * call.B * cuts.rows * (padded_d + padded_dv), Device::cpu);
  T* dk_shares = static_cast<T*>(shares.data());
  T* dv_shares = dk_shares + call.B * cuts.rows * padded_d;

  // Calls piece(number, memory, group function) for all pieces in parallel, with working memory each.
  const auto over = [&](int64_t pieces, int64_t grain, auto&& piece) {
    parallel_rows(pieces, grain, [&](int64_t begin, int64_t end) {
      const Scratch::Part part(scratch);
      auto& pairs = *part.template data<StepPairs<T>>();
      T* memory = reinterpret_cast<T*>(&pairs + 1);
      Backward<T> work(memory, call, t);
      int64_t flops = 0;
      for (int64_t at = begin; at < end; ++at)
        piece(at, memory + Backward<T>::scratch(call.d, call.dv),
              [&](auto&&... args) { flops += work.group(pairs, std::forward<decltype(args)>(args)...); });
      Count::add(flops);
    });
  };

  // Enough heads: all groups of a head in one task.
  if (whole) {
    const int64_t together = flops_per_task / std::max<int64_t>(1, 2 * call.flops_of_head());
    over(call.B * call.H, together, [&](int64_t at, T* memory, auto&& group) {
      const int64_t b = at / call.H, h = at % call.H;
      BumpAllocator<T> arena(memory);
      const auto sums = [&](const HeadView<T>& to, int64_t width, int64_t padded_width) {
        return padded_width == width ? SumRows<T>{to.at(b, h, 0), to.ld}
                                     : SumRows<T>{arena.take(call.Tk * padded_width), padded_width};
      };
      const SumRows<T> dk_sum = sums(dks, call.d, padded_d), dv_sum = sums(dvs, call.dv, padded_dv);
      int64_t ready = 0;  // rows that hold sums
      const auto make_ready = [&](int64_t end) {
        if (end <= ready) return;
        zero_rows(dk_sum.row(ready), dk_sum.ld, end - ready, padded_d);
        zero_rows(dv_sum.row(ready), dv_sum.ld, end - ready, padded_dv);
        ready = end;
      };
      for (int64_t p = 0; p < call.plan.passes(); ++p) {
        const BlockPlan::Pass pass = call.plan.pass(h, p);
        for (int64_t g = pass.begin; g < pass.end; ++g) {
          make_ready(call.plan.group(g).end);
          group(b, h, call.plan.group(g), p > 0, dk_sum, dv_sum);
        }
      }
      make_ready(call.Tk);
      for (int64_t r = 0; r < call.Tk; ++r) {
        if (padded_d != call.d) copy_row(dk_sum.row(r), call.d, dks.at(b, h, r));
        if (padded_dv != call.dv) copy_row(dv_sum.row(r), call.dv, dvs.at(b, h, r));
      }
    });
    return;
  }
  for (int64_t p = 0; p < call.plan.passes(); ++p) {
    over(call.B * call.H * cuts.count, 1, [&](int64_t at, T*, auto&& group) {
      // Few heads: a run of groups, pass by pass; sums [keys of the run, padded width] start at zero.
      const int64_t c = at % cuts.count, h = at / cuts.count % call.H, b = at / cuts.count / call.H;
      const GroupRuns::Slice& share = cuts.at(h, c);
      const int64_t row = b * cuts.rows + share.place, rows = share.end - share.begin;
      T *dk_sum = dk_shares + row * padded_d, *dv_sum = dv_shares + row * padded_dv;
      if (p == 0) {
        std::fill_n(dk_sum, rows * padded_d, T(0));
        std::fill_n(dv_sum, rows * padded_dv, T(0));
      }
      const int64_t end = cuts.at(h, c + 1).group[p];
      for (int64_t g = share.group[p]; g < end; ++g)
        group(b, h, call.plan.group(g), p > 0, SumRows<T>{dk_sum - share.begin * padded_d, padded_d},
              SumRows<T>{dv_sum - share.begin * padded_dv, padded_dv});
    });
  }
  // dk and dv [B, H, Tk, :]: for each key the sum over the runs that hold it, in order.
  const int64_t together = ceil_div(light_grain, std::max<int64_t>(call.d, 1));
  parallel_rows(call.B * call.H * call.Tk, together, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / call.Tk / call.H, h = at / call.Tk % call.H, key = at % call.Tk;
      T *to_k = dks.at(b, h, key), *to_v = dvs.at(b, h, key);
      std::fill_n(to_k, call.d, T(0));
      std::fill_n(to_v, call.dv, T(0));
      for (int64_t c = 0; c < cuts.count; ++c) {
        const GroupRuns::Slice& share = cuts.at(h, c);
        if (key < share.begin || key >= share.end) continue;
        const int64_t row = b * cuts.rows + share.place + key - share.begin;
        for (int64_t n = 0; n < call.d; ++n) to_k[n] += dk_shares[row * padded_d + n];
        for (int64_t n = 0; n < call.dv; ++n) to_v[n] += dv_shares[row * padded_dv + n];
      }
    }
  });
}

}  // namespace

template <>
void PatternAttentionBack::cpu<here>(const AttentionBackTensors& t, const PatternTerms& terms) {
  visit_float("block_attention", t.q.dtype(),
              [&](auto type) { backward<typename decltype(type)::type>(t, terms); });
}

}  // namespace heed::kernel
