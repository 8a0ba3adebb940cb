// Pattern attention forward on the tensor cores: a block handles a group of the plan, 16 queries per warp,
// and loops over its steps, copying the next keys while it multiplies.
#include "heed/core/kernels/attention/attention_tensor_core_softmax.h"
#include "heed/core/kernels/attention/pattern_attention_tensor_core_device.h"
#include "heed/core/kernels/elementwise/copy.h"

namespace heed::kernel {
namespace {

template <class E>
struct ForwardCall : DevicePatternAttentionCall<float> {
  PackedRows<E> packed_q, packed_k, packed_v;
  HeadView<float> outs;
  RowLogs<float> lse, earlier_lse;  ///< earlier_lse: after all earlier passes; null where there is one pass
};

/// out[b, h, i, :] = sum_j softmax_j(scale q_i . k_j) v_j and lse over the pairs of one group, up to 64
/// queries, by one block: each of its four warps holds 16 queries and loops over steps of up to 64 keys with
/// an online softmax. A later pass joins its result with that of all earlier ones.
template <class E, int D>
__global__ void __launch_bounds__(cuda::tile_threads) forward(ForwardCall<E> x) {
  constexpr int ld = packed_ld<E, D>, N = key_tile / 8;
  E* q_tile = cuda::shared<E>();
  E* k_tiles = q_tile + key_tile * ld;       // two
  E* v_tiles = k_tiles + 2 * key_tile * ld;  // two
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(v_tiles + 2 * key_tile * ld)};
  const WarpPlace me;
  const PlanPlace at(x, x.plan, x.pass);
  if (at.group == nullptr) return;
  const BlockPlan::Group group = *at.group;
  const int32_t* query_index = x.plan.queries + group.queries;
  const int64_t keys = x.keys_of(at.b), begin = group.first_step;
  const int64_t end = end_of_steps(x.plan, group, keys);
  const float scale_log2 = x.scale_log2();
  // Products are scaled on becoming weights: the scale is positive, so it keeps their order.
  const bool scales = scale_log2 > 0.0F;
  const float unit = scales ? scale_log2 : 1.0F;

  const auto fetch_keys = [&](int64_t s) {
    const BlockPlan::Step& step = x.plan.steps[s];
    const int32_t* key_index = x.plan.keys + step.keys;
    const int64_t place = (s - begin) % 2 * key_tile * ld;
    fetch_listed<E, D>(k_tiles + place, x.packed_k, at.b, at.h, key_index, step.count, keys);
    fetch_listed<E, D>(v_tiles + place, x.packed_v, at.b, at.h, key_index, step.count, keys);
    cuda::commit_copies();
  };
  WarpOnlineSoftmax<1> rows;
  rows.start(me, -infinity<float>);
  WarpSums<1, D / 8> sums;
  sums.clear();
  if (begin < end) {
    fetch_listed<E, D>(q_tile, x.packed_q, at.b, at.h, query_index, group.count, x.Tq);
    fetch_keys(begin);
  }
  for (int64_t s = begin; s < end; ++s) {
    const int64_t place = (s - begin) % 2 * key_tile * ld;
    if (s + 1 < end) {
      fetch_keys(s + 1);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    const BlockPlan::Step step = x.plan.steps[s];
    const int32_t* key_index = x.plan.keys + step.keys;
    const int num_keys = count_below(key_index, step.count, keys);
    if (x.dropped) {
      keep_mask.draw(x.drawn, group.count, num_keys,
                     [&](int i, int j) { return x.element(at.b, at.h, query_index[i], key_index[j]); });
    }
    __syncthreads();
    // map [16 queries of this warp, 64 keys] = q . k, then -infinity for what is no pair.
    WarpSums<1, N> map;
    map.clear();
    warp_dots<D, 1>(me, q_tile, k_tiles + place, map);
    if (!scales) map.each([scale_log2](float& score) { score *= scale_log2; });
    if (step.pairs >= 0 || num_keys < key_tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = me.row<1>(0, half);
        const uint64_t word =
            i >= group.count || step.pairs < 0 ? ~uint64_t{0} : x.plan.pairs[step.pairs + i];
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            const int j = me.column(n, e);
            if (j >= num_keys || ((word >> j) & 1) == 0) map.x[0][n][e] = -infinity<float>;
          }
        }
      }
    }
    // Weights relative to the largest score so far, with dropout; sums [16, D] += weights v.
    rows.scores_to_weights(map, unit, sums, [&](int, int half) {
      const uint64_t bits = x.dropped ? keep_mask.of(me.row<1>(0, half)) >> me.column(0, 0) : ~uint64_t{0};
      return [bits, scale = x.dropped ? x.keep_scale : 1.0F](int n, int e) {
        return (bits >> (8 * n + e % 2) & 1) != 0 ? scale : 0.0F;
      };
    });
    warp_gather<D, 1>(me, map, v_tiles + place, sums);
    __syncthreads();
  }
  // lse of each row, and the factors of the new sums and of what the earlier passes wrote.
  RowFactors shares[2];
  bool written[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = me.row<1>(0, half);
    RowLog<float> lse;
    shares[half] = {rows.finish(0, half, unit, lse)};
    written[half] = i < group.count;
    if (!written[half]) continue;
    const int64_t row = at.head * x.Tq + query_index[i];
    if (x.pass > 0) {
      written[half] = lse.log != -infinity<float>;  // else there is nothing to add
      if (!written[half]) continue;
      const JoinedRows<float> both(x.earlier_lse.at(row), lse);
      shares[half] = {shares[half].new_factor * both.second / both.total, both.first / both.total};
      lse = both.log;
    }
    if (me.lane % 4 != 0) continue;
    x.lse.put(row, lse);
  }
  store_warp_rows(
      me, sums, x.dv,
      [&](int, int half) {
        return written[half] ? x.outs.at(at.b, at.h, query_index[me.row<1>(0, half)]) : nullptr;
      },
      [&](int, int half) { return shares[half]; });
}

}  // namespace

/// PatternAttention with products of rounded factors (bf16 or tf32) and sums in f32: rounds q, k and v into
/// rows of D numbers, then starts one block per group of a head for each pass of the plan.
void pattern_attention_rounded(const Tensor& q, const Tensor& k, const Tensor& v, const PatternParams& params,
                               const Tensor& out, const Tensor& lse) {
  const int64_t rows = q.extent(0) * q.extent(1) * q.extent(2);
  with_packed(params.rounding, std::max(q.extent(3), v.extent(3)), [&]<class E, int D>() {
    const Tensor all_q = packed<E>(q, D), all_k = packed<E>(k, D), all_v = packed<E>(v, D);
    ForwardCall<E> call{{q, k, v, params, plan_on_device(*params.pattern).straight},
                        {all_q, q},
                        {all_k, k},
                        {all_v, v},
                        HeadView<float>(out),
                        RowLogs<float>(lse, rows),
                        {}};
    // A copy: four lanes read what one of them replaces.
    const Tensor earlier = call.plan.passes > 1 ? empty_like(lse) : Tensor();
    if (earlier) call.earlier_lse = RowLogs<float>(earlier, rows);
    constexpr int bytes = 5 * key_tile * packed_ld<E, D> * static_cast<int>(sizeof(E)) + KeepMask::bytes;
    for (; call.pass < call.plan.passes; ++call.pass) {
      if (call.pass > 0) Copy::cuda(lse, earlier);
      cuda::run(forward<E, D>,
                {.blocks = dim3(static_cast<unsigned>(call.B * call.H * call.plan.max_groups)),
                 .threads = dim3(cuda::tile_threads),
                 .shared_bytes = bytes},
                call);
    }
  });
}

}  // namespace heed::kernel
