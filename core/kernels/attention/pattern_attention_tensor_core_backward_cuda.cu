// Attention over the pairs of a pattern on the tensor cores, backward: dq by the groups of the plan, dk and
// dv by those of the plan of the turned pattern. Maps go from one product to the next in registers.
#include "core/kernels/attention_back_device.h"
#include "core/kernels/block_attention_rounded_device.h"

namespace heed::kernel {
namespace {

template <class E>
struct BackCall : DeviceBlockAttentionCall<float> {
  PackedRows<E> packed_q, packed_k, packed_v, packed_dout;
  Heads<float> dqs, dks, dvs;
  const RowStats<float>* stats;  ///< [B, H, Tq]
};

/// Of rows and columns of a tile: queries and keys (`keyed` false), giving dq; or keys and queries, giving dk
/// and dv.
template <class E, int D, bool keyed>
__global__ void __launch_bounds__(cuda::tile_threads) backward(BackCall<E> x) {
  constexpr int ld = packed_ld<E, D>, N = met / 8;
  E* own_tile = cuda::shared<E>();                                              // q, or k
  E* own_other = own_tile + met * ld;                                           // dout, or v
  E* met_tiles = own_other + met * ld;                                          // k, or q: two
  E* met_others = met_tiles + 2 * met * ld;                                     // v, or dout: two
  auto* stats = reinterpret_cast<RowStats<float>*>(met_others + 2 * met * ld);  // of the tile's queries
  const KeptPairs kept{reinterpret_cast<uint8_t*>(stats + met)};
  const WarpPlace me;
  const PlanPlace at(x, x.plan, x.pass);
  if (at.group == nullptr) return;
  const BlockPlan::Group group = *at.group;
  const int32_t* own = x.plan.queries + group.queries;
  const int64_t keys = x.keys_of(at.b), begin = group.first_step;
  const int64_t own_end = keyed ? keys : x.Tq, met_end = keyed ? x.Tq : keys;
  const int64_t end = end_of_steps(x.plan, group, met_end);
  const float factor = x.factor();
  const RowStats<float>* all_stats = x.stats + at.head * x.Tq;

  const auto fetch = [&](int64_t s) {
    const BlockPlan::Step& step = x.plan.steps[s];
    const int32_t* list = x.plan.keys + step.keys;
    const int64_t place = (s - begin) % 2 * met * ld;
    fetch_listed<E, D>(met_tiles + place, keyed ? x.packed_q : x.packed_k, at.b, at.h, list, step.count,
                       met_end);
    fetch_listed<E, D>(met_others + place, keyed ? x.packed_dout : x.packed_v, at.b, at.h, list, step.count,
                       met_end);
    cuda::commit_copies();
  };
  if (!keyed && static_cast<int>(threadIdx.x) < group.count) stats[threadIdx.x] = all_stats[own[threadIdx.x]];
  WarpSums<1, D / 8> sums, other_sums;  // dq, or dk and dv
  sums.clear();
  if constexpr (keyed) other_sums.clear();
  if (begin < end) {
    fetch_listed<E, D>(own_tile, keyed ? x.packed_k : x.packed_q, at.b, at.h, own, group.count, own_end);
    fetch_listed<E, D>(own_other, keyed ? x.packed_v : x.packed_dout, at.b, at.h, own, group.count, own_end);
    fetch(begin);
  }
  for (int64_t s = begin; s < end; ++s) {
    const int64_t place = (s - begin) % 2 * met * ld;
    if (s + 1 < end) {
      fetch(s + 1);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    const BlockPlan::Step step = x.plan.steps[s];
    const int32_t* list = x.plan.keys + step.keys;
    const int there = count_below(list, step.count, met_end);
    if (keyed && static_cast<int>(threadIdx.x) < there) stats[threadIdx.x] = all_stats[list[threadIdx.x]];
    if (x.dropped) {
      // Bits lie as [query, key], whichever of them are rows here.
      kept.draw(x.drawn, keyed ? there : group.count, keyed ? group.count : there, [&](int i, int j) {
        return keyed ? x.element(at.b, at.h, list[i], own[j]) : x.element(at.b, at.h, own[i], list[j]);
      });
    }
    __syncthreads();
    WarpSums<1, N> map, slopes;
    map.clear();
    slopes.clear();
    warp_dots<D, 1>(me, own_tile, met_tiles + place, map);
    warp_dots<D, 1>(me, own_other, met_others + place, slopes);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = me.row<1>(0, half);
      const bool row_there = row < group.count && (!keyed || own[row] < keys);
      const uint64_t word = !row_there ? 0 : step.pairs < 0 ? ~uint64_t{0} : x.plan.pairs[step.pairs + row];
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          const int column = me.column(n, e), query = keyed ? column : row, key = keyed ? row : column;
          BackPair<float> back{0.0F, 0.0F};
          if (column < there && ((word >> column) & 1) != 0) {
            const float keep = !x.dropped ? 1.0F : kept.has(query, key) ? x.keep_scale : 0.0F;
            back = back_of(map.x[0][n][e] * factor, slopes.x[0][n][e], keep, stats[query]);
          }
          map.x[0][n][e] = back.weight;
          slopes.x[0][n][e] = back.slope;
        }
      }
    }
    if constexpr (keyed) warp_gather<D, 1>(me, map, met_others + place, other_sums);
    warp_gather<D, 1>(me, slopes, met_tiles + place, sums);
    __syncthreads();
  }
  const auto put = [&](const WarpSums<1, D / 8>& from, const Heads<float>& to, int64_t width, float scale) {
    put_warp_rows(
        me, from, width,
        [&](int, int half) {
          const int row = me.row<1>(0, half);
          return row < group.count ? to.at(at.b, at.h, own[row]) : nullptr;
        },
        [&](int, int) {
          return RowShares{scale, x.pass > 0 ? 1.0F : 0.0F};
        });
  };
  if constexpr (keyed) {
    put(sums, x.dks, x.d, x.scale);
    put(other_sums, x.dvs, x.dv, 1.0F);
  } else {
    put(sums, x.dqs, x.d, x.scale);
  }
}

template <class E, int D, bool keyed>
void start(BackCall<E> call) {
  constexpr int bytes = 6 * met * packed_ld<E, D> * static_cast<int>(sizeof(E)) +
                        met * static_cast<int>(sizeof(RowStats<float>)) + KeptPairs::bytes;
  for (; call.pass < call.plan.passes; ++call.pass) {
    cuda::run(backward<E, D, keyed>,
              {.blocks = dim3(static_cast<unsigned>(call.B * call.H * call.plan.most_groups)),
               .threads = dim3(cuda::tile_threads),
               .shared_bytes = bytes},
              call);
  }
}

}  // namespace

void block_attention_rounded_back(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                                  const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                                  const Tensor& dk, const Tensor& dv) {
  const Tensor stats = row_stats<float>(out, lse, dout);
  const PlanOnDevice& plan = plan_on_device(*terms.pattern);
  with_packed(terms.rounding, std::max(q.extent(3), v.extent(3)), [&]<class E, int D>() {
    const Tensor all_q = packed<E>(q, D), all_k = packed<E>(k, D), all_v = packed<E>(v, D),
                 all_dout = packed<E>(dout, D);
    BackCall<E> call{{q, k, v, terms, plan.straight},
                     {all_q, q},
                     {all_k, k},
                     {all_v, v},
                     {all_dout, dout},
                     Heads<float>(dq),
                     Heads<float>(dk),
                     Heads<float>(dv),
                     reinterpret_cast<const RowStats<float>*>(stats.data<float>())};
    start<E, D, false>(call);
    call.plan = plan.turned;
    start<E, D, true>(call);
  });
}

}  // namespace heed::kernel
