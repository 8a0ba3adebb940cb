// Tiled attention forward on the tensor cores: a block takes 128 queries, 32 a warp, through the keys, with
// the next 64 under way while these are multiplied. Weights go from one product to the next in registers.
#include "core/kernels/attention_bf16_device.h"

namespace heed::kernel {
namespace {

constexpr int M = 2;  // blocks of 16 queries a warp
constexpr int tall = 4 * 16 * M;

struct ForwardCall : AttentionScores<float> {
  PackedRows qs, ks, vs;
  Heads<float> outs;
  float* lse;
  DeviceDraw drawn;
};

template <int D>
__global__ void __launch_bounds__(cuda::tile_threads) forward(ForwardCall x) {
  constexpr int ld = packed_ld<D>, N = met / 8;
  bf16* q_tile = cuda::shared<bf16>();
  bf16* k_tiles = q_tile + tall * ld;      // two
  bf16* v_tiles = k_tiles + 2 * met * ld;  // two
  const KeptPairs kept{reinterpret_cast<uint8_t*>(v_tiles + 2 * met * ld)};
  const WarpPlace me;
  const int64_t tiles = (x.Tq + tall - 1) / tall, head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t shared_head = h / x.group, first = (tiles - 1 - blockIdx.x % tiles) * tall;
  const int64_t queries = min(x.Tq - first, int64_t{tall}), keys = x.keys_before(b, first + queries);
  const float factor = x.factor();

  const auto fetch_keys = [&](int64_t j) {
    const int64_t place = j / met % 2 * met * ld;
    fetch_packed<D, met>(k_tiles + place, x.ks.at<D>(b, shared_head, j), keys - j);
    fetch_packed<D, met>(v_tiles + place, x.vs.at<D>(b, shared_head, j), keys - j);
    cuda::commit_copies();
  };
  float most[M][2], total[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      most[m][half] = x.sink_of(h);
      total[m][half] = me.lane % 4 == 0 && most[m][half] != -infinity<float> ? 1.0F : 0.0F;
    }
  }
  WarpSums<M, D / 8> sums;
  sums.clear();
  if (keys > 0) {
    fetch_packed<D, tall>(q_tile, x.qs.at<D>(b, h, first), queries);
    fetch_keys(0);
  }
  for (int64_t j = 0; j < keys; j += met) {
    const int64_t place = j / met % 2 * met * ld;
    if (j + met < keys) {
      fetch_keys(j + met);
      cuda::wait_for_copies<1>();
    } else {
      cuda::wait_for_copies<0>();
    }
    if (x.dropped) {
      kept.draw(x.drawn, static_cast<int>(queries), static_cast<int>(min(keys - j, int64_t{met})),
                [&](int i, int key) { return x.element(b, h, first + i, j + key); });
    }
    __syncthreads();
    WarpSums<M, N> map;
    map.clear();
    warp_dots<D, M>(me, q_tile, k_tiles + place, map);
    const bool plain =
        x.cap == 0.0F && !x.added() && j + met <= keys && queries == tall && x.sees(first, j + met - 1);
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t i = first + me.row<M>(m, half);
        float top = most[m][half];
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            float& s = map.x[m][n][e];
            if (plain) {
              s *= factor;
            } else {
              const int64_t key = j + me.column(n, e);
              float steep;
              const bool pair = i < x.Tq && key < keys && x.sees(i, key);
              s = pair ? score_of<float>(x, factor, b, h, i, key, s, steep) : -infinity<float>;
            }
            top = s > top ? s : top;
          }
        }
        for (int bits = 2; bits > 0; bits /= 2) {
          const float other = __shfl_xor_sync(0xffffffffU, top, bits);
          top = other > top ? other : top;
        }
        const float base = top == -infinity<float> ? 0.0F : top;  // no key yet: weights are 2^-inf, not NaN
        const float shrink = exp2(most[m][half] - base);
        most[m][half] = top;
        float sum = 0.0F;
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            float& p = map.x[m][n][e];
            p = exp2(p - base);
            sum += p;
            if (x.dropped) p = kept.has(me.row<M>(m, half), me.column(n, e)) ? p * x.keep_scale : 0.0F;
          }
        }
        total[m][half] = total[m][half] * shrink + sum;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          sums.x[m][n][2 * half] *= shrink;
          sums.x[m][n][2 * half + 1] *= shrink;
        }
      }
    }
    warp_gather<D, M>(me, map, v_tiles + place, sums);
    __syncthreads();
  }
  float inverse[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float all = total[m][half];
      for (int bits = 2; bits > 0; bits /= 2) all += __shfl_xor_sync(0xffffffffU, all, bits);
      const int64_t i = first + me.row<M>(m, half);
      inverse[m][half] = all == 0.0F ? 0.0F : 1.0F / all;
      if (me.lane % 4 == 0 && i < x.Tq) {
        x.lse[head * x.Tq + i] =
            all == 0.0F ? -infinity<float> : (most[m][half] + log2(all)) * static_cast<float>(ln_2);
      }
    }
  }
  put_warp_rows(
      me, sums, x.dv,
      [&](int m, int half) {
        const int64_t i = first + me.row<M>(m, half);
        return i < x.Tq ? x.outs.at(b, h, i) : nullptr;
      },
      [&](int m, int half) { return inverse[m][half]; });
}

template <int D>
void start(const ForwardCall& call) {
  constexpr int bytes = (tall + 4 * met) * packed_ld<D> * 2 + tall * 8;
  cuda::run(forward<D>,
            {.blocks = dim3(static_cast<unsigned>(call.B * call.H * cuda::pieces(call.Tq, tall))),
             .threads = dim3(cuda::tile_threads),
             .shared_bytes = bytes},
            call);
}

}  // namespace

void attention_bf16(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                    const Tensor& out, const Tensor& lse) {
  const int D = packed_width(std::max(q.extent(3), v.extent(3)));
  const Tensor all_q = packed(q, D), all_k = packed(k, D), all_v = packed(v, D);
  const ForwardCall call{{q, k, v, terms},
                         {all_q.data<bf16>(), q.extent(1), q.extent(2)},
                         {all_k.data<bf16>(), k.extent(1), k.extent(2)},
                         {all_v.data<bf16>(), k.extent(1), k.extent(2)},
                         Heads<float>(out),
                         lse.data<float>(),
                         DeviceDraw(terms.dropout, terms.draw)};
  visit_tiles<float>(D, [&](auto wide) { start<decltype(wide)::value>(call); });
}

}  // namespace heed::kernel
