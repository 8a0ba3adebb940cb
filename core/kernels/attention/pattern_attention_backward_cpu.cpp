// Attention over the pairs of a pattern on the CPU: the groups of its plan, forward in any order, back with
// sums of dk and dv for each run of groups.
#include "core/kernels/block_attention.h"
#include "core/kernels/here.h"

#include "core/count.h"
#include "core/kernels/block_walk.h"
#include "core/kernels/scratch.h"
#include "core/pair_count.h"
#include "core/parallel.h"

namespace heed::kernel {
namespace {

using Group = BlockPlan::Group;
using Step = BlockPlan::Step;

template <class T>
int64_t wide_tile(int64_t width) {
  return Carve<T>::rounded(tile * simd::padded<T>(width));
}

/// The forward pass of one group, with the memory it needs.
template <class T>
class Forward {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    return ForwardTile<T>::scratch(d, dv) + ForwardRow<T>::scratch(d, dv) + 2 * wide_tile<T>(d) +
           2 * wide_tile<T>(dv) + 2 * tile;
  }
  Forward(T* memory, const BlockAttentionCall<T>& call, const Tensor& q, const Tensor& k, const Tensor& v,
          const Tensor& out, const Tensor& lse)
      : call_(call),
        q_(q),
        k_(k),
        v_(v),
        out_(out),
        lse_(lse, call.B * call.H * call.Tq),
        work_(memory, call.d, call.dv),
        row_(memory + ForwardTile<T>::scratch(call.d, call.dv), call.d, call.dv) {
    Carve<T> carve(memory + ForwardTile<T>::scratch(call.d, call.dv) +
                   ForwardRow<T>::scratch(call.d, call.dv));
    q_tile_ = carve.take(wide_tile<T>(call.d));
    k_tile_ = carve.take(wide_tile<T>(call.d));
    v_tile_ = carve.take(wide_tile<T>(call.dv));
    out_tile_ = carve.take(wide_tile<T>(call.dv));
    lse_tile_.log = carve.take(tile);
    lse_tile_.rest = carve.take(tile);
  }

  int64_t group(StepPairs<T>& pairs, int64_t b, int64_t h, const Group& group, bool adds) {
    const int32_t* queries = call_.plan.queries(group);
    const RowLogs<T> lse = lse_.from((b * call_.H + h) * call_.Tq);
    if (group.alone) return alone(b, h, group, adds);
    const Rows<T> q = in_place<T>(group.gap, q_.ld)
                          ? Rows<T>{q_.at(b, h, queries[0]), group.gap * q_.ld}
                          : rows_at(q_.at(b, h, 0), q_.ld, queries, group.count, 0, call_.d, q_tile_);
    work_.start(q.data, q.ld, group.count, call_.factor());
    if (adds) resume(b, h, group, lse);
    int64_t flops = 0;
    const int64_t keys = call_.keys_of(b);
    for (int64_t s = group.first_step; s < group.last_step; ++s) {
      const Step& step = call_.plan.step(s);
      const int32_t* index = call_.plan.keys(step);
      const int64_t count = count_below(index, step.count, keys);
      if (count == 0) break;
      const Between<T> between = pairs.prepare(call_, b, h, group, step, count);
      Rows<T> k{k_.at(b, h, index[0]), step.gap * k_.ld}, v{v_.at(b, h, index[0]), step.gap * v_.ld};
      if (!in_place<T>(step.gap, std::max(k_.ld, v_.ld))) {
        k = rows_at(k_.at(b, h, 0), k_.ld, index, count, 0, call_.d, k_tile_);
        v = rows_at(v_.at(b, h, 0), v_.ld, index, count, 0, call_.dv, v_tile_);
      }
      const Stairs stairs = stairs_of(step, group.count, count);
      flops += work_.keys(k.data, k.ld, v.data, v.ld, stairs, between);
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
  /// From what the first pass has found.
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
      row_.start(q_.at(b, h, i), call_.factor());
      each_pick(call_, group.part, b, h, i,
                [&](Picked picked, const T* kept) { flops += row_.keys(k, v, picked, nullptr, T(0), kept); });
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

  const BlockAttentionCall<T>& call_;
  Heads<const T> q_, k_, v_;
  Heads<T> out_;
  RowLogs<T> lse_;
  ForwardTile<T> work_;
  ForwardRow<T> row_;
  T *q_tile_, *k_tile_, *v_tile_, *out_tile_;
  RowLogs<T> lse_tile_;
};

template <class T>
void forward(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms, const Tensor& out,
             const Tensor& lse) {
  const BlockAttentionCall<T> call(q, k, v, terms);
  PairCount::add(call.pairs());
  const int64_t most = std::max<int64_t>(1, call.plan.most_groups());
  Scratch scratch(
      static_cast<int64_t>(sizeof(StepPairs<T>) + sizeof(T) * Forward<T>::scratch(call.d, call.dv)));
  for (int64_t index = 0; index < call.plan.passes(); ++index) {
    const int64_t grain = piece_flops / (call.flops_of_head() / most + 1);
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

/// The backward pass of one group, with the memory it needs.
template <class T>
class Backward {
 public:
  static int64_t scratch(int64_t d, int64_t dv) {
    return BackTile<T>::scratch(d, dv) + BackRow<T>::scratch(d, dv) + 4 * wide_tile<T>(d) +
           5 * wide_tile<T>(dv) + 2 * tile;
  }
  Backward(T* memory, const BlockAttentionCall<T>& call, const Tensor& q, const Tensor& k, const Tensor& v,
           const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq)
      : call_(call),
        wide_d_(simd::padded<T>(call.d)),
        wide_dv_(simd::padded<T>(call.dv)),
        q_(q),
        k_(k),
        v_(v),
        out_(out),
        dout_(dout),
        dq_(dq),
        lse_(lse, call.B * call.H * call.Tq),
        work_(memory, call.d, call.dv),
        row_(memory + BackTile<T>::scratch(call.d, call.dv), call.d, call.dv) {
    Carve<T> carve(memory + BackTile<T>::scratch(call.d, call.dv) + BackRow<T>::scratch(call.d, call.dv));
    for (T** one : {&q_tile_, &k_tile_, &dk_tile_, &dq_tile_}) *one = carve.take(wide_tile<T>(call.d));
    for (T** one : {&v_tile_, &dv_tile_, &out_tile_, &dout_tile_}) *one = carve.take(wide_tile<T>(call.dv));
    lse_tile_.log = carve.take(tile);
    lse_tile_.rest = carve.take(tile);
    std::fill_n(dk_tile_, tile * wide_d_, T(0));
    std::fill_n(dv_tile_, tile * wide_dv_, T(0));
  }

  /// dk and dv: rows of whole vectors, the first of them that of key 0.
  int64_t group(StepPairs<T>& pairs, int64_t b, int64_t h, const Group& group, bool adds, Sums<T> dk,
                Sums<T> dv) {
    if (group.alone) return alone(b, h, group, adds, dk, dv);
    start(b, h, group);
    int64_t flops = 0;
    const int64_t keys = call_.keys_of(b);
    for (int64_t s = group.first_step; s < group.last_step; ++s) {
      const Step& step = call_.plan.step(s);
      const int32_t* index = call_.plan.keys(step);
      const int64_t count = count_below(index, step.count, keys);
      if (count == 0) break;
      const Between<T> between = pairs.prepare(call_, b, h, group, step, count);
      const Rows<T> k = rows_at(k_.at(b, h, 0), k_.ld, index, count, step.gap, call_.d, k_tile_);
      const Rows<T> v = rows_at(v_.at(b, h, 0), v_.ld, index, count, step.gap, call_.dv, v_tile_);
      const Stairs stairs = stairs_of(step, group.count, count);
      if (in_place<T>(step.gap, std::max(dk.ld, dv.ld))) {
        flops += work_.keys(k, v, stairs, between, {dk.row(index[0]), step.gap * dk.ld},
                            {dv.row(index[0]), step.gap * dv.ld});
        continue;
      }
      flops += work_.keys(k, v, stairs, between, {dk_tile_, wide_d_}, {dv_tile_, wide_dv_});
      scatter_rows(dk_tile_, index, count, wide_d_, dk);
      scatter_rows(dv_tile_, index, count, wide_dv_, dv);
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
                  group.count, call_.factor(), call_.scale);
      return;
    }
    const auto rows = [&](const Heads<const T>& x, int64_t width, T* copy) {
      return rows_at(x.at(b, h, 0), x.ld, queries, group.count, group.gap, width, copy);
    };
    const Rows<T> q = rows(q_, call_.d, q_tile_), dout = rows(dout_, call_.dv, dout_tile_),
                  out = rows(out_, call_.dv, out_tile_);
    for (int64_t i = 0; i < group.count; ++i) lse_tile_.put(i, lse.at(queries[i]));
    work_.start(q.data, q.ld, dout.data, dout.ld, out.data, out.ld, lse_tile_, group.count, call_.factor(),
                call_.scale);
  }

  int64_t alone(int64_t b, int64_t h, const Group& group, bool adds, Sums<T> dk, Sums<T> dv) {
    int64_t flops = 0;
    for (int64_t n = 0; n < group.count; ++n) {
      const int64_t i = call_.plan.queries(group)[n];
      row_.start(q_.at(b, h, i), dout_.at(b, h, i), out_.at(b, h, i),
                 lse_.at((b * call_.H + h) * call_.Tq + i), call_.factor(), call_.scale);
      each_pick(call_, group.part, b, h, i, [&](Picked picked, const T* kept) {
        if (wide_d_ == call_.d && wide_dv_ == call_.dv) {
          flops += row_.keys({k_.at(b, h, 0), k_.ld}, {v_.at(b, h, 0), v_.ld}, picked, dk, dv, kept);
          return;
        }
        gather_rows(k_.at(b, h, 0), k_.ld, picked.index, picked.count, call_.d, k_tile_);
        gather_rows(v_.at(b, h, 0), v_.ld, picked.index, picked.count, call_.dv, v_tile_);
        int32_t here[tile];
        for (int32_t j = 0; j < tile; ++j) here[j] = j;
        flops += row_.keys({k_tile_, wide_d_}, {v_tile_, wide_dv_}, {here, picked.count}, {dk_tile_, wide_d_},
                           {dv_tile_, wide_dv_}, kept);
        scatter_rows(dk_tile_, picked.index, picked.count, wide_d_, dk);
        scatter_rows(dv_tile_, picked.index, picked.count, wide_dv_, dv);
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

  const BlockAttentionCall<T>& call_;
  int64_t wide_d_, wide_dv_;
  Heads<const T> q_, k_, v_, out_, dout_;
  Heads<T> dq_;
  RowLogs<T> lse_;
  BackTile<T> work_;
  BackRow<T> row_;
  T *q_tile_, *k_tile_, *dk_tile_, *dq_tile_, *v_tile_, *dv_tile_, *out_tile_, *dout_tile_;
  RowLogs<T> lse_tile_;
};

template <class T>
void backward(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms, const Tensor& out,
              const Tensor& lse, const Tensor& dout, const Tensor& dq, const Tensor& dk, const Tensor& dv) {
  const BlockAttentionCall<T> call(q, k, v, terms);
  const Heads<T> dks(dk), dvs(dv);
  const int64_t wide_d = simd::padded<T>(call.d), wide_dv = simd::padded<T>(call.dv);
  const Cuts cuts(call);
  const bool whole = cuts.count == 1;
  // Rows of whole vectors are summed where they belong.
  const auto own = [&](int64_t width, int64_t wide) {
    return whole && wide != width ? Carve<T>::rounded(call.Tk * wide) : 0;
  };
  const int64_t numbers = Backward<T>::scratch(call.d, call.dv) + own(call.d, wide_d) + own(call.dv, wide_dv);
  Scratch scratch(static_cast<int64_t>(sizeof(StepPairs<T>) + sizeof(T) * numbers));
  Storage shares(static_cast<int64_t>(sizeof(T)) * call.B * cuts.rows * (wide_d + wide_dv), Device::cpu);
  T* dk_shares = static_cast<T*>(shares.data());
  T* dv_shares = dk_shares + call.B * cuts.rows * wide_d;

  const auto over = [&](int64_t pieces, int64_t grain, auto&& piece) {
    parallel_rows(pieces, grain, [&](int64_t begin, int64_t end) {
      const Scratch::Part part(scratch);
      auto& pairs = *part.template data<StepPairs<T>>();
      T* memory = reinterpret_cast<T*>(&pairs + 1);
      Backward<T> work(memory, call, q, k, v, out, lse, dout, dq);
      int64_t flops = 0;
      for (int64_t at = begin; at < end; ++at)
        piece(at, memory + Backward<T>::scratch(call.d, call.dv),
              [&](auto&&... args) { flops += work.group(pairs, std::forward<decltype(args)>(args)...); });
      Count::add(flops);
    });
  };

  if (whole) {
    const int64_t together = piece_flops / std::max<int64_t>(1, 2 * call.flops_of_head());
    over(call.B * call.H, together, [&](int64_t at, T* memory, auto&& group) {
      const int64_t b = at / call.H, h = at % call.H;
      Carve<T> carve(memory);
      const auto sums = [&](const Heads<T>& to, int64_t width, int64_t wide) {
        return wide == width ? Sums<T>{to.at(b, h, 0), to.ld} : Sums<T>{carve.take(call.Tk * wide), wide};
      };
      const Sums<T> dk_sum = sums(dks, call.d, wide_d), dv_sum = sums(dvs, call.dv, wide_dv);
      int64_t ready = 0;  // rows that hold sums
      const auto make_ready = [&](int64_t end) {
        if (end <= ready) return;
        zero_rows(dk_sum.row(ready), dk_sum.ld, end - ready, wide_d);
        zero_rows(dv_sum.row(ready), dv_sum.ld, end - ready, wide_dv);
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
        if (wide_d != call.d) copy_row(dk_sum.row(r), call.d, dks.at(b, h, r));
        if (wide_dv != call.dv) copy_row(dv_sum.row(r), call.dv, dvs.at(b, h, r));
      }
    });
    return;
  }
  for (int64_t p = 0; p < call.plan.passes(); ++p) {
    over(call.B * call.H * cuts.count, 1, [&](int64_t at, T*, auto&& group) {
      const int64_t c = at % cuts.count, h = at / cuts.count % call.H, b = at / cuts.count / call.H;
      const Cuts::Share& share = cuts.at(h, c);
      const int64_t row = b * cuts.rows + share.place, rows = share.end - share.begin;
      T *dk_sum = dk_shares + row * wide_d, *dv_sum = dv_shares + row * wide_dv;
      if (p == 0) {
        std::fill_n(dk_sum, rows * wide_d, T(0));
        std::fill_n(dv_sum, rows * wide_dv, T(0));
      }
      const int64_t end = cuts.at(h, c + 1).group[p];
      for (int64_t g = share.group[p]; g < end; ++g)
        group(b, h, call.plan.group(g), p > 0, Sums<T>{dk_sum - share.begin * wide_d, wide_d},
              Sums<T>{dv_sum - share.begin * wide_dv, wide_dv});
    });
  }
  const int64_t together = pieces_of(light_grain, std::max<int64_t>(call.d, 1));
  parallel_rows(call.B * call.H * call.Tk, together, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / call.Tk / call.H, h = at / call.Tk % call.H, key = at % call.Tk;
      T *to_k = dks.at(b, h, key), *to_v = dvs.at(b, h, key);
      std::fill_n(to_k, call.d, T(0));
      std::fill_n(to_v, call.dv, T(0));
      for (int64_t c = 0; c < cuts.count; ++c) {
        const Cuts::Share& share = cuts.at(h, c);
        if (key < share.begin || key >= share.end) continue;
        const int64_t row = b * cuts.rows + share.place + key - share.begin;
        for (int64_t n = 0; n < call.d; ++n) to_k[n] += dk_shares[row * wide_d + n];
        for (int64_t n = 0; n < call.dv; ++n) to_v[n] += dv_shares[row * wide_dv + n];
      }
    }
  });
}

}  // namespace

template <>
void BlockAttention::cpu<here>(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                               const Tensor& out, const Tensor& lse) {
  visit_float("block_attention", q.dtype(),
              [&](auto type) { forward<typename decltype(type)::type>(q, k, v, terms, out, lse); });
}

template <>
void BlockAttentionBack::cpu<here>(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                                   const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                                   const Tensor& dk, const Tensor& dv) {
  visit_float("block_attention", q.dtype(), [&](auto type) {
    backward<typename decltype(type)::type>(q, k, v, terms, out, lse, dout, dq, dk, dv);
  });
}

}  // namespace heed::kernel
