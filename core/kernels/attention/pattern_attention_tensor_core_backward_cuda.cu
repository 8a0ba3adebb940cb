// Pattern attention backward on the tensor cores: dq by the groups of the plan, dk and dv by the groups of
// the transposed pattern's plan. Weights stay in registers between products.
#include "heed/core/kernels/attention/attention_backward_device.h"
#include "heed/core/kernels/attention/pattern_attention_tensor_core_device.h"

namespace heed::kernel {
namespace {

/// Inputs and outputs of the backward kernel.
template <class E>
struct BackCall : DevicePatternAttentionCall<float> {
  RoundedRows<E> rounded_q, rounded_k, rounded_v, rounded_dout;
  HeadView<float> dqs, dks, dvs;
  const RowStats<float>* stats;  ///< [B, H, Tq]
};

/// Gradients of one group of a head: with rows as queries and columns as keys (`keys_are_rows` false) dq,
/// with rows as keys and columns as queries dk and dv. One block holds the group, up to 64 rows, and loops
/// over its steps of up to 64 columns; a warp has 16 rows. Two buffers of columns take turns.
template <class E, int D, bool keys_are_rows>
__global__ void __launch_bounds__(cuda::tile_threads) backward(BackCall<E> x) {
  constexpr int ld = rounded_ld<E, D>, N = key_tile / 8;
  E* row_qk = cuda::shared<E>();                    // q, or k
  E* row_vdout = row_qk + key_tile * ld;            // dout, or v
  E* column_qk = row_vdout + key_tile * ld;         // k, or q: two buffers
  E* column_vdout = column_qk + 2 * key_tile * ld;  // v, or dout: two buffers
  auto* stats =
      reinterpret_cast<RowStats<float>*>(column_vdout + 2 * key_tile * ld);  // one for each query of the tile
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(stats + key_tile)};
  const WarpThread thread;
  const PlanBlock block(x, x.plan, x.pass);
  if (block.group == nullptr) return;
  const BlockPlan::Group group = *block.group;
  const int32_t* row_index = x.plan.queries + group.queries;
  const int64_t key_end = x.num_keys(block.b), step_begin = group.first_step;
  const int64_t row_end = keys_are_rows ? key_end : x.Tq, column_end = keys_are_rows ? x.Tq : key_end;
  const int64_t step_end = end_of_steps(x.plan, group, column_end);
  const float scale_log2 = x.scale_log2();
  const RowStats<float>* all_stats = x.stats + block.head * x.Tq;

  const auto fetch = [&](int64_t s) {
    const BlockPlan::Step& step = x.plan.steps[s];
    const int32_t* column_index = x.plan.keys + step.keys;
    const int64_t buffer = (s - step_begin) % 2 * key_tile * ld;
    fetch_rows<E, D>(column_qk + buffer, keys_are_rows ? x.rounded_q : x.rounded_k, block.b, block.h,
                     column_index, step.count, column_end);
    fetch_rows<E, D>(column_vdout + buffer, keys_are_rows ? x.rounded_dout : x.rounded_v, block.b, block.h,
                     column_index, step.count, column_end);
    cuda::commit_copies();
  };
  if (!keys_are_rows && static_cast<int>(threadIdx.x) < group.count)
    stats[threadIdx.x] = all_stats[row_index[threadIdx.x]];
  WarpAccumulator<1, D / 8> dq_or_dk, dv;  // dv where rows are keys
  dq_or_dk.clear();
  if constexpr (keys_are_rows) dv.clear();
  if (step_begin < step_end) {
    fetch_rows<E, D>(row_qk, keys_are_rows ? x.rounded_k : x.rounded_q, block.b, block.h, row_index,
                     group.count, row_end);
    fetch_rows<E, D>(row_vdout, keys_are_rows ? x.rounded_v : x.rounded_dout, block.b, block.h, row_index,
                     group.count, row_end);
    fetch(step_begin);
  }
  for (int64_t s = step_begin; s < step_end; ++s) {
    const int64_t buffer = (s - step_begin) % 2 * key_tile * ld;
    if (s + 1 < step_end) {
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
    if (x.has_dropout) {
      // The mask is [query, key], whichever of them are rows.
      keep_mask.draw(x.dropout, keys_are_rows ? num_columns : group.count,
                     keys_are_rows ? group.count : num_columns, [&](int i, int j) {
                       return keys_are_rows
                                  ? x.dropout_index(block.b, block.h, column_index[i], row_index[j])
                                  : x.dropout_index(block.b, block.h, row_index[i], column_index[j]);
                     });
    }
    __syncthreads();
    // Products [16 rows of this warp, 64 columns]: scores = q . k and grad_scores = dout . v.
    WarpAccumulator<1, N> scores, grad_scores;
    scores.clear();
    grad_scores.clear();
    warp_dots<D, 1>(thread, row_qk, column_qk + buffer, scores);
    warp_dots<D, 1>(thread, row_vdout, column_vdout + buffer, grad_scores);
    // In place, scores are replaced by the weights after dropout and grad_scores by the gradients of the
    // scaled products.
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = thread.row<1>(0, half);
      const bool is_valid = row < group.count && (!keys_are_rows || row_index[row] < key_end);
      const uint64_t pair_bits = !is_valid        ? 0
                                 : step.pairs < 0 ? ~uint64_t{0}
                                                  : x.plan.pairs[step.pairs + row];
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          const int column = thread.column(n, e), query = keys_are_rows ? column : row,
                    key = keys_are_rows ? row : column;
          PairGradient<float> gradients{0.0F, 0.0F};
          if (column < num_columns && ((pair_bits >> column) & 1) != 0) {
            gradients = score_gradient(scores.x[0][n][e] * scale_log2, grad_scores.x[0][n][e],
                                       keep_mask.factor(x, query, key), stats[query]);
          }
          scores.x[0][n][e] = gradients.weight;
          grad_scores.x[0][n][e] = gradients.grad_score;
        }
      }
    }
    // dv += weights dout and dk += grad_scores q; or dq += grad_scores k.
    if constexpr (keys_are_rows) warp_gather<D, 1>(thread, scores, column_vdout + buffer, dv);
    warp_gather<D, 1>(thread, grad_scores, column_qk + buffer, dq_or_dk);
    __syncthreads();
  }
  const auto store = [&](const WarpAccumulator<1, D / 8>& sums, const HeadView<float>& gradient,
                         int64_t width, float scale) {
    store_warp_rows(
        thread, sums, width,
        [&](int, int half) {
          const int row = thread.row<1>(0, half);
          return row < group.count ? gradient.at(block.b, block.h, row_index[row]) : nullptr;
        },
        [&](int, int) {
          return RowFactors{scale, x.pass > 0 ? 1.0F : 0.0F};
        });
  };
  if constexpr (keys_are_rows) {
    store(dq_or_dk, x.dks, x.d, x.scale);
    store(dv, x.dvs, x.dv, 1.0F);
  } else {
    store(dq_or_dk, x.dqs, x.d, x.scale);
  }
}

/// Launches `backward` for each pass of the plan in turn: one block per group of a head. Later passes add to
/// the gradients of the earlier ones.
template <class E, int D, bool keys_are_rows>
void launch(BackCall<E> call) {
  constexpr int bytes = 6 * key_tile * rounded_ld<E, D> * static_cast<int>(sizeof(E)) +
                        key_tile * static_cast<int>(sizeof(RowStats<float>)) + KeepMask::bytes;
  for (; call.pass < call.plan.passes; ++call.pass) {
    cuda::run(backward<E, D, keys_are_rows>, tile_grid(call.B * call.H * call.plan.max_groups, 1, bytes),
              call);
  }
}

}  // namespace

/// dq, dk and dv with products of rounded factors and sums in f32: rounds q, k, v and dout into rows of D
/// numbers, then computes dq by the groups of the plan, dk and dv by those of the transposed pattern's plan.
void pattern_attention_rounded_back(const AttentionBackTensors& t, const PatternParams& params) {
  const Tensor stats = row_stats<float>(AttentionShape(t.q, t.k, t.v), t.out, t.lse, t.dout);
  const PlanOnDevice& plan = plan_on_device(*params.pattern);
  with_rounded(params.rounding, std::max(t.q.extent(3), t.v.extent(3)), [&]<class E, int D>() {
    const auto rounded = rounded_copies<E>(D, {{t.q}, {t.k}, {t.v}, {t.dout}});
    BackCall<E> call{{t.q, t.k, t.v, params, plan.straight},
                     rounded[0],
                     rounded[1],
                     rounded[2],
                     rounded[3],
                     HeadView<float>(t.dq),
                     HeadView<float>(t.dk),
                     HeadView<float>(t.dv),
                     reinterpret_cast<const RowStats<float>*>(stats.data<float>())};
    launch<E, D, /*keys_are_rows=*/false>(call);
    call.plan = plan.transposed;
    launch<E, D, /*keys_are_rows=*/true>(call);
  });
}

}  // namespace heed::kernel
