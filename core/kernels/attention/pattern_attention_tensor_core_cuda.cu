// Pattern attention forward on the tensor cores: a block handles a group of the plan, 16 queries per warp,
// and loops over its steps, copying the next keys while it multiplies.
#include "heed/core/kernels/attention/attention_tensor_core_softmax.h"
#include "heed/core/kernels/attention/pattern_attention_tensor_core_device.h"
#include "heed/core/kernels/elementwise/copy.h"

namespace heed::kernel {
namespace {

/// Inputs and outputs of the forward kernel.
template <class E>
struct ForwardCall : DevicePatternAttentionCall<float> {
  RoundedRows<E> rounded_q, rounded_k, rounded_v;
  HeadView<float> outs;
  LseView<float> lse, earlier_lse;  ///< earlier_lse: merged over earlier passes; null for one pass
};

/// out[b, h, i, :] = sum_j softmax_j(scale q_i . k_j) v_j and lse over the pairs of one group, up to 64
/// queries, by one block: each of its four warps holds 16 queries, with its output_sum [16, D] in registers,
/// and loops over steps of up to 64 keys with an online softmax. Two buffers of keys and values take turns. A
/// later pass merges its result with that of all earlier ones.
template <class E, int D>
__global__ void __launch_bounds__(cuda::tile_threads) forward(ForwardCall<E> x) {
  constexpr int ld = rounded_ld<E, D>, N = key_tile / 8;
  E* q_tile = cuda::shared<E>();
  E* k_tiles = q_tile + key_tile * ld;       // two buffers
  E* v_tiles = k_tiles + 2 * key_tile * ld;  // two buffers
  const KeepMask keep_mask{reinterpret_cast<uint8_t*>(v_tiles + 2 * key_tile * ld)};
  const WarpThread thread;
  const PlanBlock block(x, x.plan, x.pass);
  if (block.group == nullptr) return;
  const BlockPlan::Group group = *block.group;
  const int32_t* query_index = x.plan.queries + group.queries;
  const int64_t key_end = x.num_keys(block.b), step_begin = group.first_step;
  const int64_t step_end = end_of_steps(x.plan, group, key_end);
  const float scale_log2 = x.scale_log2();
  // Products are scaled when they become weights where the scale is positive, so that it keeps their order.
  const bool scales_late = scale_log2 > 0.0F;
  const float unit = scales_late ? scale_log2 : 1.0F;

  const auto fetch_keys = [&](int64_t s) {
    const BlockPlan::Step& step = x.plan.steps[s];
    const int32_t* key_index = x.plan.keys + step.keys;
    const int64_t buffer = (s - step_begin) % 2 * key_tile * ld;
    fetch_rows<E, D>(k_tiles + buffer, x.rounded_k, block.b, block.h, key_index, step.count, key_end);
    fetch_rows<E, D>(v_tiles + buffer, x.rounded_v, block.b, block.h, key_index, step.count, key_end);
    cuda::commit_copies();
  };
  WarpOnlineSoftmax<1> rows;
  rows.start(thread, minus_infinity<float>);
  WarpAccumulator<1, D / 8> output_sum;
  output_sum.clear();
  if (step_begin < step_end) {
    fetch_rows<E, D>(q_tile, x.rounded_q, block.b, block.h, query_index, group.count, x.Tq);
    fetch_keys(step_begin);
  }
  for (int64_t s = step_begin; s < step_end; ++s) {
    const int64_t buffer = (s - step_begin) % 2 * key_tile * ld;
    if (s + 1 < step_end) {
      fetch_keys(s + 1);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    const BlockPlan::Step step = x.plan.steps[s];
    const int32_t* key_index = x.plan.keys + step.keys;
    const int num_keys = count_below(key_index, step.count, key_end);
    if (x.has_dropout) {
      keep_mask.draw(x.dropout, group.count, num_keys, [&](int i, int j) {
        return x.dropout_index(block.b, block.h, query_index[i], key_index[j]);
      });
    }
    __syncthreads();
    // scores [16 queries of this warp, 64 keys] = q . k, then -infinity for masked pairs.
    WarpAccumulator<1, N> scores;
    scores.clear();
    warp_dots<D, 1>(thread, q_tile, k_tiles + buffer, scores);
    if (!scales_late) scores.each([scale_log2](float& score) { score *= scale_log2; });
    if (step.pairs >= 0 || num_keys < key_tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = thread.row<1>(0, half);
        const uint64_t pair_bits =
            i >= group.count || step.pairs < 0 ? ~uint64_t{0} : x.plan.pairs[step.pairs + i];
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            const int j = thread.column(n, e);
            if (j >= num_keys || ((pair_bits >> j) & 1) == 0) scores.x[0][n][e] = minus_infinity<float>;
          }
        }
      }
    }
    // scores become weights after dropout; output_sum [16, D] += weights v.
    rows.scores_to_weights(scores, unit, output_sum, [&](int, int half) {
      const uint64_t bits =
          x.has_dropout ? keep_mask.of(thread.row<1>(0, half)) >> thread.column(0, 0) : ~uint64_t{0};
      return [bits, scale = x.has_dropout ? x.keep_scale : 1.0F](int n, int e) {
        return (bits >> (8 * n + e % 2) & 1) != 0 ? scale : 0.0F;
      };
    });
    warp_gather<D, 1>(thread, scores, v_tiles + buffer, output_sum);
    __syncthreads();
  }
  // lse of each row, and the factors of output_sum and of the output of earlier passes.
  RowFactors factors[2];
  bool is_written[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = thread.row<1>(0, half);
    RowLse<float> lse;
    factors[half] = {rows.finish(0, half, unit, lse)};
    is_written[half] = i < group.count;
    if (!is_written[half]) continue;
    const int64_t row = block.head * x.Tq + query_index[i];
    if (x.pass > 0) {
      is_written[half] = lse.log != minus_infinity<float>;  // else there is nothing to add
      if (!is_written[half]) continue;
      const MergedRows<float> merged(x.earlier_lse.at(row), lse);
      factors[half] = {factors[half].new_factor * merged.factor_b / merged.total,
                       merged.factor_a / merged.total};
      lse = merged.lse;
    }
    if (thread.lane % 4 == 0) x.lse.put(row, lse);
  }
  store_warp_rows(
      thread, output_sum, x.dv,
      [&](int, int half) {
        return is_written[half] ? x.outs.at(block.b, block.h, query_index[thread.row<1>(0, half)]) : nullptr;
      },
      [&](int, int half) { return factors[half]; });
}

}  // namespace

/// PatternAttention with products of rounded factors (bf16 or tf32) and sums in f32: rounds q, k and v into
/// rows of D numbers, then launches one block per group of a head for each pass of the plan.
void pattern_attention_rounded(const Tensor& q, const Tensor& k, const Tensor& v, const PatternParams& params,
                               const Tensor& out, const Tensor& lse) {
  const int64_t rows = q.extent(0) * q.extent(1) * q.extent(2);
  with_rounded(params.rounding, std::max(q.extent(3), v.extent(3)), [&]<class E, int D>() {
    const auto rounded = rounded_copies<E>(D, {{q}, {k}, {v}});
    ForwardCall<E> call{{q, k, v, params, plan_on_device(*params.pattern).straight},
                        rounded[0],
                        rounded[1],
                        rounded[2],
                        HeadView<float>(out),
                        LseView<float>(lse, rows),
                        {}};
    // earlier_lse is a copy: four lanes read each number, and one of them replaces that of lse.
    const Tensor earlier = call.plan.passes > 1 ? empty_like(lse) : Tensor();
    if (earlier) call.earlier_lse = LseView<float>(earlier, rows);
    constexpr int bytes = 5 * key_tile * rounded_ld<E, D> * static_cast<int>(sizeof(E)) + KeepMask::bytes;
    for (; call.pass < call.plan.passes; ++call.pass) {
      if (call.pass > 0) Copy::cuda(lse, earlier);
      cuda::run(forward<E, D>, tile_grid(call.B * call.H * call.plan.max_groups, 1, bytes), call);
    }
  });
}

}  // namespace heed::kernel
