// Pattern attention backward on the tensor cores: dq by the groups of the plan, dk and dv by the groups of
// the transposed pattern's plan. Weights stay in registers between products.
#include "heed/core/kernels/attention/attention_backward_device.h"
#include "heed/core/kernels/attention/pattern_attention_tensor_core_device.h"

namespace heed::kernel {
namespace {

template <class E>
struct BackCall : DevicePatternAttentionCall<float> {
  PackedRows<E> packed_q, packed_k, packed_v, packed_dout;
  HeadView<float> dqs, dks, dvs;
  const RowStats<float>* stats;  ///< [B, H, Tq]
};

/// Gradients of one group of a head: with rows as queries and columns as keys (`keys_are_rows` false) dq,
/// with rows as keys and columns as queries dk and dv. One block holds the group, up to 64 rows, and loops
/// over its steps of up to 64 columns; a warp has 16 rows.
template <class E, int D, bool keys_are_rows>
__global__ void __launch_bounds__(cuda::tile_threads) backward(BackCall<E> x) {
  constexpr int ld = packed_ld<E, D>, N = key_tile / 8;
  E* row_qk = cuda::shared<E>();                    // q, or k
  E* row_vdout = row_qk + key_tile * ld;            // dout, or v
  E* column_qk = row_vdout + key_tile * ld;         // k, or q: two
  E* column_vdout = column_qk + 2 * key_tile * ld;  // v, or dout: two
  auto* stats =
      reinterpret_cast<RowStats<float>*>(column_vdout + 2 * key_tile * ld);  // of the tile's queries
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(stats + key_tile)};
  const WarpPlace me;
  const PlanPlace at(x, x.plan, x.pass);
  if (at.group == nullptr) return;
  const BlockPlan::Group group = *at.group;
  const int32_t* row_index = x.plan.queries + group.queries;
  const int64_t keys = x.keys_of(at.b), begin = group.first_step;
  const int64_t row_end = keys_are_rows ? keys : x.Tq, column_end = keys_are_rows ? x.Tq : keys;
  const int64_t end = end_of_steps(x.plan, group, column_end);
  const float scale_log2 = x.scale_log2();
  const RowStats<float>* all_stats = x.stats + at.head * x.Tq;

  const auto fetch = [&](int64_t s) {
    const BlockPlan::Step& step = x.plan.steps[s];
    const int32_t* column_index = x.plan.keys + step.keys;
    const int64_t place = (s - begin) % 2 * key_tile * ld;
    fetch_listed<E, D>(column_qk + place, keys_are_rows ? x.packed_q : x.packed_k, at.b, at.h, column_index,
                       step.count, column_end);
    fetch_listed<E, D>(column_vdout + place, keys_are_rows ? x.packed_dout : x.packed_v, at.b, at.h,
                       column_index, step.count, column_end);
    cuda::commit_copies();
  };
  if (!keys_are_rows && static_cast<int>(threadIdx.x) < group.count)
    stats[threadIdx.x] = all_stats[row_index[threadIdx.x]];
  WarpSums<1, D / 8> sums, other_sums;  // dq, or dk and dv
  sums.clear();
  if constexpr (keys_are_rows) other_sums.clear();
  if (begin < end) {
    fetch_listed<E, D>(row_qk, keys_are_rows ? x.packed_k : x.packed_q, at.b, at.h, row_index, group.count,
                       row_end);
    fetch_listed<E, D>(row_vdout, keys_are_rows ? x.packed_v : x.packed_dout, at.b, at.h, row_index,
                       group.count, row_end);
    fetch(begin);
  }
  for (int64_t s = begin; s < end; ++s) {
    const int64_t place = (s - begin) % 2 * key_tile * ld;
    if (s + 1 < end) {
      fetch(s + 1);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    const BlockPlan::Step step = x.plan.steps[s];
    const int32_t* column_index = x.plan.keys + step.keys;
    const int num_columns = count_below(column_index, step.count, column_end);
    if (keys_are_rows && static_cast<int>(threadIdx.x) < num_columns)
      stats[threadIdx.x] = all_stats[column_index[threadIdx.x]];
    if (x.dropped) {
      // Bits lie as [query, key], whichever of them are rows here.
      keep_mask.draw(x.drawn, keys_are_rows ? num_columns : group.count,
                     keys_are_rows ? group.count : num_columns, [&](int i, int j) {
                       return keys_are_rows ? x.element(at.b, at.h, column_index[i], row_index[j])
                                            : x.element(at.b, at.h, row_index[i], column_index[j]);
                     });
    }
    __syncthreads();
    // Products of the tile [64 rows, 64 columns]: map = q . k and score_grads = dout . v.
    WarpSums<1, N> map, score_grads;
    map.clear();
    score_grads.clear();
    warp_dots<D, 1>(me, row_qk, column_qk + place, map);
    warp_dots<D, 1>(me, row_vdout, column_vdout + place, score_grads);
    // In place: map becomes the weights after dropout, score_grads the gradients of the scaled products.
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = me.row<1>(0, half);
      const bool row_is_valid = row < group.count && (!keys_are_rows || row_index[row] < keys);
      const uint64_t word = !row_is_valid    ? 0
                            : step.pairs < 0 ? ~uint64_t{0}
                                             : x.plan.pairs[step.pairs + row];
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          const int column = me.column(n, e), query = keys_are_rows ? column : row,
                    key = keys_are_rows ? row : column;
          PairGradient<float> back{0.0F, 0.0F};
          if (column < num_columns && ((word >> column) & 1) != 0) {
            const float keep = !x.dropped ? 1.0F : keep_mask.has(query, key) ? x.keep_scale : 0.0F;
            back = score_gradient(map.x[0][n][e] * scale_log2, score_grads.x[0][n][e], keep, stats[query]);
          }
          map.x[0][n][e] = back.weight;
          score_grads.x[0][n][e] = back.score_grad;
        }
      }
    }
    // dv += weights dout and dk += score_grads q; or dq += score_grads k.
    if constexpr (keys_are_rows) warp_gather<D, 1>(me, map, column_vdout + place, other_sums);
    warp_gather<D, 1>(me, score_grads, column_qk + place, sums);
    __syncthreads();
  }
  const auto put = [&](const WarpSums<1, D / 8>& from, const HeadView<float>& to, int64_t width,
                       float scale) {
    store_warp_rows(
        me, from, width,
        [&](int, int half) {
          const int row = me.row<1>(0, half);
          return row < group.count ? to.at(at.b, at.h, row_index[row]) : nullptr;
        },
        [&](int, int) {
          return RowFactors{scale, x.pass > 0 ? 1.0F : 0.0F};
        });
  };
  if constexpr (keys_are_rows) {
    put(sums, x.dks, x.d, x.scale);
    put(other_sums, x.dvs, x.dv, 1.0F);
  } else {
    put(sums, x.dqs, x.d, x.scale);
  }
}

/// Starts `backward` for each pass of the plan in turn: one block per group of a head. Later passes add to
/// what earlier ones wrote.
template <class E, int D, bool keys_are_rows>
void start(BackCall<E> call) {
  constexpr int bytes = 6 * key_tile * packed_ld<E, D> * static_cast<int>(sizeof(E)) +
                        key_tile * static_cast<int>(sizeof(RowStats<float>)) + KeepMask::bytes;
  for (; call.pass < call.plan.passes; ++call.pass) {
    cuda::run(backward<E, D, keys_are_rows>,
              {.blocks = dim3(static_cast<unsigned>(call.B * call.H * call.plan.max_groups)),
               .threads = dim3(cuda::tile_threads),
               .shared_bytes = bytes},
              call);
  }
}

}  // namespace

/// dq, dk and dv with products of rounded factors and sums in f32: rounds q, k, v and dout into rows of D
/// numbers, then computes dq by the groups of the plan, dk and dv by those of the transposed pattern's plan.
void pattern_attention_rounded_back(const AttentionBackTensors& t, const PatternParams& params) {
  const Tensor stats = row_stats<float>(t.out, t.lse, t.dout);
  const PlanOnDevice& plan = plan_on_device(*params.pattern);
  with_packed(params.rounding, std::max(t.q.extent(3), t.v.extent(3)), [&]<class E, int D>() {
    const Tensor all_q = packed<E>(t.q, D), all_k = packed<E>(t.k, D), all_v = packed<E>(t.v, D),
                 all_dout = packed<E>(t.dout, D);
    BackCall<E> call{{t.q, t.k, t.v, params, plan.straight},
                     {all_q, t.q},
                     {all_k, t.k},
                     {all_v, t.v},
                     {all_dout, t.dout},
                     HeadView<float>(t.dq),
                     HeadView<float>(t.dk),
                     HeadView<float>(t.dv),
                     reinterpret_cast<const RowStats<float>*>(stats.data<float>())};
    start<E, D, false>(call);
    call.plan = plan.turned;
    start<E, D, true>(call);
  });
}

}  // namespace heed::kernel
