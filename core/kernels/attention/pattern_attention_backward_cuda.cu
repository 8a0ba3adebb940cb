// Attention over the pairs of a pattern on a device, backward: dq by the groups of the plan, dk and dv by
// those of the plan of the turned pattern, so that nothing is added by two blocks at once.
#include "core/count.h"
#include "core/kernels/attention_back_device.h"
#include "core/kernels/block_attention_rounded_device.h"

namespace heed::kernel {
namespace {

using cuda::mine;
using cuda::tile_rows;

template <class T>
struct BackCall : DeviceBlockAttentionCall<T> {
  using DeviceBlockAttentionCall<T>::DeviceBlockAttentionCall;
  Heads<const T> douts;
  Heads<T> dqs, dks, dvs;
  const RowStats<T>* stats = nullptr;  ///< [B, H, Tq]
};

/// Adds to a row what this thread has of it, or writes it where nothing is there yet.
template <class T, int C>
__device__ void put_sums(const cuda::Share& me, T (&sum)[C], T scale, bool adds, int64_t width, T* to) {
#pragma unroll
  for (int n = 0; n < C; ++n) {
    const int c = me.column<C>(n);
    sum[n] *= scale;
    if (adds && c < width) sum[n] += to[c];
  }
  cuda::put_columns(me, sum, width, to);
}

/// Of rows and columns of a tile: queries and keys (`keyed` false), giving dq; or keys and queries, giving dk
/// and dv.
template <class T, int D, bool keyed>
__global__ void __launch_bounds__(cuda::tile_threads) backward(BackCall<T> x) {
  constexpr int ld = cuda::tile_ld(D), ld_map = cuda::tile_ld(tile_rows), C = D / 16;
  T* own_tile = cuda::shared<T>();               // q, or k
  T* own_other = own_tile + cuda::tile_size(D);  // dout, or v
  T* met_tile = own_other + cuda::tile_size(D);  // k, or q
  T* met_other = met_tile + cuda::tile_size(D);  // v, or dout
  T* map_tile = met_other + cuda::tile_size(D);
  const KeptPairs kept{reinterpret_cast<uint8_t*>(map_tile + cuda::tile_size(tile_rows))};
  PlanTile at(kept.byte + KeptPairs::bytes);

  const cuda::Share me;
  const int64_t head = blockIdx.x / x.plan.most_groups, b = head / x.H, h = head % x.H;
  const BlockPlan::Group* group = x.plan.group(h, x.pass, blockIdx.x % x.plan.most_groups);
  if (group == nullptr) return;
  const int64_t column = int64_t{blockIdx.y} * D, keys = x.keys_of(b);
  const bool whole = x.d <= D && x.dv <= D;
  const T factor = x.factor();
  at.load_rows(x.plan.queries + group->queries, group->count);
  __syncthreads();

  const Heads<const T>&own = keyed ? x.ks : x.qs, &other = keyed ? x.vs : x.douts, &met = keyed ? x.qs : x.ks,
                    &last = keyed ? x.douts : x.vs;
  const RowStats<T>* stats = x.stats + head * x.Tq;
  const auto fetch_rows = [&](T* tile, const Heads<const T>& from, int64_t width, int64_t c) {
    const T* rows = from.at(b, h, 0);
    cuda::fetch_tile<T, D>(tile, static_cast<int>(min(width - c, int64_t{D})), rows, [&](int r) {
      const bool there = r < at.rows && (!keyed || at.row[r] < keys);
      return there ? rows + at.row[r] * from.ld + c : nullptr;
    });
  };
  const auto fetch_columns = [&](T* tile, const Heads<const T>& from, int64_t width, int64_t c) {
    const T* rows = from.at(b, h, 0);
    cuda::fetch_tile<T, D>(tile, static_cast<int>(min(width - c, int64_t{D})), rows, [&](int r) {
      const bool there = r < at.columns && (keyed || at.column[r] < keys);
      return there ? rows + at.column[r] * from.ld + c : nullptr;
    });
  };
  T first_sum[mine][C], second_sum[mine][C];  // dq, or dk and dv
  cuda::clear(first_sum);
  if constexpr (keyed) cuda::clear(second_sum);
  if (whole && group->first_step < group->last_step) {
    fetch_rows(own_tile, own, x.d, 0);
    fetch_rows(own_other, other, x.dv, 0);
  }
  for (int64_t s = group->first_step; s < group->last_step; ++s) {
    const BlockPlan::Step step = x.plan.steps[s];
    if (!keyed && x.plan.keys[step.keys] >= keys) break;
    at.load_columns(x.plan.keys + step.keys, step.count);
    __syncthreads();
    T map[mine][4], dmap[mine][4];
    cuda::clear(map);
    cuda::clear(dmap);
    if (x.dropped) {
      // Bits lie as [query, key], whichever of them are rows here.
      kept.draw(x.drawn, keyed ? at.columns : at.rows, keyed ? at.rows : at.columns, [&](int i, int j) {
        return keyed ? x.element(b, h, at.column[i], at.row[j]) : x.element(b, h, at.row[i], at.column[j]);
      });
    }
    uint64_t word[mine];
    load_pairs(me, x.plan, step, at.rows, word);
    if (whole) {
      fetch_columns(met_tile, met, x.d, 0);
      fetch_columns(met_other, last, x.dv, 0);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
      __syncthreads();
      cuda::dots<T, ld, ld>(me, own_tile, met_tile, static_cast<int>((x.d + 3) / 4 * 4), map);
      cuda::dots<T, ld, ld>(me, own_other, met_other, static_cast<int>((x.dv + 3) / 4 * 4), dmap);
    } else {
      cuda::dots_of_slices<T, D>(
          me, own_tile, met_tile, x.d, [&](int64_t c) { fetch_rows(own_tile, own, x.d, c); },
          [&](int64_t c) { fetch_columns(met_tile, met, x.d, c); }, map);
      cuda::dots_of_slices<T, D>(
          me, own_other, met_other, x.dv, [&](int64_t c) { fetch_rows(own_other, other, x.dv, c); },
          [&](int64_t c) { fetch_columns(met_other, last, x.dv, c); }, dmap);
      fetch_columns(met_tile, met, x.d, column);
      if (keyed) fetch_columns(met_other, last, x.dv, column);
      cuda::commit_copies();
      cuda::wait_for_copies<0>();
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int j = me.key(n);
      const bool there = j < at.columns && (keyed || at.column[j] < keys);
#pragma unroll
      for (int r = 0; r < mine; ++r) {
        const int i = me.row(r);
        const bool pair = there && i < at.rows && ((word[r] >> j) & 1) != 0 && (!keyed || at.row[i] < keys);
        BackPair<T> back{T(0), T(0)};
        if (pair) {
          const T keep = !x.dropped ? T(1) : kept.has(keyed ? j : i, keyed ? i : j) ? x.keep_scale : T(0);
          back = back_of(map[r][n] * factor, dmap[r][n], keep, stats[keyed ? at.column[j] : at.row[i]]);
        }
        map[r][n] = back.weight;
        dmap[r][n] = back.slope;
      }
    }
    if constexpr (keyed) {
      cuda::put_map(me, map, map_tile);
      __syncthreads();
      cuda::gather<T, ld_map, ld>(me, map_tile, met_other, tile_rows, second_sum);
      __syncthreads();
    }
    cuda::put_map(me, dmap, map_tile);
    __syncthreads();
    cuda::gather<T, ld_map, ld>(me, map_tile, met_tile, tile_rows, first_sum);
    __syncthreads();
  }
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  const Heads<T>& to = keyed ? x.dks : x.dqs;
#pragma unroll
  for (int r = 0; r < mine; ++r) {
    if (me.row(r) >= at.rows) continue;
    const int64_t i = at.row[me.row(r)];
    put_sums(me, first_sum[r], x.scale, x.pass > 0, x.d - column, to.at(b, h, i) + column);
    if constexpr (keyed)
      put_sums(me, second_sum[r], T(1), x.pass > 0, x.dv - column, x.dvs.at(b, h, i) + column);
  }
}

template <bool keyed, class T, int D>
void start(BackCall<T> call) {
  const int numbers = 4 * cuda::tile_size(D) + cuda::tile_size(tile_rows);
  const int64_t width = keyed ? std::max(call.d, call.dv) : call.d;
  for (call.pass = 0; call.pass < call.plan.passes; ++call.pass) {
    cuda::run(backward<T, D, keyed>,
              {.blocks = dim3(static_cast<unsigned>(call.B * call.H * call.plan.most_groups),
                              static_cast<unsigned>(std::max<int64_t>(1, cuda::pieces(width, D)))),
               .threads = dim3(cuda::tile_threads),
               .shared_bytes = numbers * static_cast<int>(sizeof(T)) + KeptPairs::bytes + PlanTile::bytes},
              call);
  }
}

template <bool keyed, class T>
void start(const BackCall<T>& call) {
  visit_tiles<T>(std::max(call.d, call.dv), [&](auto wide) { start<keyed, T, decltype(wide)::value>(call); });
}

}  // namespace

void BlockAttentionBack::cuda(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                              const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                              const Tensor& dk, const Tensor& dv) {
  visit_float("block_attention", q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const PlanOnDevice& plan = plan_on_device(*terms.pattern);
    BackCall<T> call(q, k, v, terms, plan.straight);
    Count::add(block_flops(call, *terms.pattern, true));
    if (std::is_same_v<T, float> && takes_tensor_cores(call, terms.rounding))
      return block_attention_rounded_back(q, k, v, terms, out, lse, dout, dq, dk, dv);
    const Tensor stats = row_stats<T>(out, lse, dout);
    call.stats = reinterpret_cast<const RowStats<T>*>(stats.data<T>());
    call.douts = Heads<const T>(dout);
    call.dqs = Heads<T>(dq);
    call.dks = Heads<T>(dk);
    call.dvs = Heads<T>(dv);
    start<false>(call);
    call.plan = plan.turned;
    start<true>(call);
  });
}

}  // namespace heed::kernel
