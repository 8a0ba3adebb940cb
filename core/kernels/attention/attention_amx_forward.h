// The forward pass of dense attention in bf16 by the matrix tiles of AMX. Scores are stored transposed, [key,
// query], as in attention_tile.h; sums of outputs are transposed, too, so that every product reads its right
// factor as pairs of adjacent rows.
#pragma once

#include "heed/core/kernels/attention/amx_key_tiles.h"
#include "heed/core/kernels/attention/attention_forward_loop.h"
#include "heed/core/kernels/attention/dense_tiles.h"

namespace heed::kernel::amx {

using V = simd::Vector<float>;
inline constexpr int64_t lanes = 16;

/// c [rows, columns] = a b, or c += a b: a [rows, pairs] with rows of `lda` words, b [pairs, 64], c with rows
/// of `ldc` floats. Rows and columns are computed in multiples of sixteen, pairs are one.
inline void multiply(int64_t rows, int64_t columns, int64_t pairs, const uint32_t* a, int64_t lda,
                     const uint32_t* b, float* c, int64_t ldc, bool add) {
  for (int64_t i = 0; i < rows; i += 32) {
    for (int64_t j = 0; j < columns; j += 32)
      amx_tiles::multiply_block(rows - i > 16, columns - j > 16, a + i * lda, lda, b + j, tile, pairs, add,
                                c + i * ldc + j, ldc);
  }
}

/// Rounds the numbers of two rows to sixteen words: those of `even` in the lower halves.
__attribute__((target("avx512bf16"))) inline void put_pair(V even, V odd, uint32_t* words) {
  _mm512_storeu_si512(words, bf16_tiles::paired((__m512)even, (__m512)odd));
}

/// One tile of up to 64 queries, as ForwardTile: start(), add_keys() for each tile of keys, finish().
class ForwardTile {
 public:
  /// Floats of working memory.
  static int64_t scratch_size(int64_t d, int64_t dv) {
    return (bf16_tiles::pairs_of(d) + 2 * whole(dv) + tile + pairs_of_tile + 3) * tile;
  }
  ForwardTile(float* memory, int64_t d, int64_t dv) : d_(d), dv_(dv) {
    BumpAllocator<float> arena(memory);
    q_ = reinterpret_cast<uint32_t*>(arena.take(bf16_tiles::pairs_of(d) * tile));
    weights_ = reinterpret_cast<uint32_t*>(arena.take(pairs_of_tile * tile));
    scores_ = arena.take(tile * tile);
    sums_ = arena.take(whole(dv) * tile);
    out_ = arena.take(whole(dv) * tile);
    row_max_ = arena.take(tile);
    row_sum_ = arena.take(tile);
    correction_ = arena.take(tile);
  }

  /// Begins with queries q [queries, d], rows ldq apart; see ForwardTile::start().
  void start(const float* q, int64_t ldq, int64_t queries, float scale_log2, float sink) {
    queries_ = queries;
    scale_ = scale_log2;
    bf16_tiles::pack_strip_of_columns(q, ldq, queries, d_, q_);
    std::fill_n(sums_, whole(dv_) * tile, 0.0F);
    std::fill_n(row_max_, tile, sink);
    std::fill_n(row_sum_, tile, sink == minus_infinity<float> ? 0.0F : 1.0F);
  }

  /// Adds a tile of `keys` keys: k by rows, v by columns.
  void add_keys(const uint32_t* k, const uint32_t* v, int64_t keys, const ScoreModifiers<float>& modifiers) {
    const amx_tiles::Shaped shaped;
    const int64_t pairs = bf16_tiles::pairs_of(d_);
    multiply(keys, queries_, pairs, k, pairs, q_, scores_, tile, /*add=*/false);
    const bool has_dropout = modifiers.keep_mask != nullptr;
    if (modifiers.changes_scores()) {
      has_dropout ? to_weights<true, true>(keys, modifiers) : to_weights<true, false>(keys, modifiers);
    } else {
      has_dropout ? to_weights<false, true>(keys, modifiers) : to_weights<false, false>(keys, modifiers);
    }
    for (int64_t c = 0; c < dv_; ++c) {
      for (int64_t query = 0; query < queries_; query += lanes) {
        float* sum = sums_ + c * tile + query;
        simd::store(sum, simd::load(sum) * simd::load(correction_ + query));
      }
    }
    multiply(dv_, queries_, bf16_tiles::pairs_of(keys), v, pairs_of_tile, weights_, sums_, tile,
             /*add=*/true);
  }

  /// Writes out [queries, dv] and the log-sum-exp of each query.
  void finish(float* out, int64_t ldo, const LseView<float>& lse) const {
    const int64_t width = whole(dv_);
    simd::scaled_transpose(sums_, tile, dv_, queries_, 1.0F, out_, width);
    for (int64_t i = 0; i < queries_; ++i) {
      const float total = row_sum_[i];
      simd::scaled(out_ + i * width, dv_, total == 0 ? 0.0F : 1.0F / total, out + i * ldo);
      lse.put(i,
              total == 0 ? RowLse<float>::of_empty_row() : RowLse<float>::of(row_max_[i], std::log2(total)));
    }
  }

 private:
  /// Replaces the raw scores [keys, queries] by weights 2^(s - row_max) after dropout, rounded and in pairs
  /// of keys, with zeros up to whole pairs; updates row_max_, row_sum_ and correction_.
  template <bool changes_scores, bool has_dropout>
  __attribute__((target("avx512bf16"))) void to_weights(int64_t keys,
                                                        const ScoreModifiers<float>& modifiers) {
    const int64_t padded_queries = simd::padded<float>(queries_);
    for (int64_t query = 0; query < queries_; query += lanes) {
      const V old_max = simd::load(row_max_ + query);
      const auto score_of = [&](int64_t j) -> V {
        float* const place = scores_ + j * tile + query;
        const V raw = simd::load(place) * scale_;
        if constexpr (!changes_scores) return raw;
        const V score = modified_score<float>(raw, modifiers, j, query, padded_queries);
        simd::store(place, score);
        return score;
      };
      const auto larger = [](V a, V b) -> V { return a > b ? a : b; };
      V even_max = old_max, odd_max = old_max;
      for (int64_t j = 0; j + 1 < keys; j += 2) {
        even_max = larger(even_max, score_of(j));
        odd_max = larger(odd_max, score_of(j + 1));
      }
      if (keys % 2 == 1) even_max = larger(even_max, score_of(keys - 1));
      const V new_max = larger(even_max, odd_max);
      // No visible key yet: 2^-inf = 0 instead of NaN.
      const V base = new_max == simd::splat(minus_infinity<float>) ? V{} : new_max;
      const auto weight_of = [&](int64_t j, V& sum) -> V {
        const V score = simd::load(scores_ + j * tile + query);
        const V weight = simd::exp2<float>(changes_scores ? score - base : score * scale_ - base);
        sum += weight;
        if constexpr (!has_dropout) return weight;
        return modifiers.keep_mask->select(j, query, weight * modifiers.keep_scale, V{});
      };
      V even_sum = {}, odd_sum = {};
      for (int64_t j = 0; j + 1 < keys; j += 2) {
        const V even = weight_of(j, even_sum), odd = weight_of(j + 1, odd_sum);
        put_pair(even, odd, weights_ + j / 2 * tile + query);
      }
      if (keys % 2 == 1) put_pair(weight_of(keys - 1, even_sum), V{}, weights_ + keys / 2 * tile + query);
      for (int64_t pair = (keys + 1) / 2; pair < bf16_tiles::pairs_of(keys); ++pair)
        put_pair(V{}, V{}, weights_ + pair * tile + query);
      const V correction = simd::exp2<float>(old_max - base);
      simd::store(correction_ + query, correction);
      simd::store(row_sum_ + query, simd::load(row_sum_ + query) * correction + (even_sum + odd_sum));
      simd::store(row_max_ + query, new_max);
    }
  }

  int64_t d_, dv_, queries_ = 0;
  float scale_ = 1;
  uint32_t *q_, *weights_;
  float *scores_, *sums_, *out_, *row_max_, *row_sum_, *correction_;
};

/// attention_forward() with factors rounded to bf16. One task is some tiles of queries.
inline void attention_forward(const DenseTiles<float>& tiles, const Tensor& q, const Tensor& k,
                              const Tensor& v, const Tensor& out, const Tensor& lse) {
  const AttentionCall<float>& call = tiles.call;
  const HeadView<const float> queries(q, call.query_starts);
  const HeadView<float> outputs(out, call.query_starts);
  const LseView<float> all_lse(lse, call.B * call.H * call.Tq);
  const KeyTiles keys(KeyTiles::By::rows, HeadView<const float>(k, call.key_starts), call.d, call),
      values(KeyTiles::By::columns, HeadView<const float>(v, call.key_starts), call.dv, call);
  const int64_t tiles_per_head = tiles.max_query_tiles();
  Scratch scratch(LoopMemory<float>::bytes(ForwardTile::scratch_size(call.d, call.dv)));
  parallel_rows(
      call.B * call.H * tiles_per_head, flops_per_task / tiles.flops_of_tile(),
      [&](int64_t begin, int64_t end) {
        const Scratch::Part part(scratch);
        LoopMemory<float> memory(part);
        ForwardTile one(memory.arena.take(0), call.d, call.dv);
        for (int64_t index = begin; index < end; ++index) {
          const int64_t head = index / tiles_per_head, b = head / call.H, h = head % call.H;
          // The causal tiles with most keys first.
          const int64_t tile_in_head = index % tiles_per_head,
                        n = call.causal ? tiles_per_head - 1 - tile_in_head : tile_in_head;
          if (n >= tiles.query_tiles(b, h, 0)) continue;
          const QueryTile query_tile = tiles.query_tile(b, h, 0, n);
          const int64_t first = query_tile.rows.first;
          one.start(queries.at(b, h, first), queries.ld, query_tile.rows.count, call.scale_log2(),
                    call.sink_log2(h));
          tiles.each_key_tile(query_tile, 0, call.num_keys(b), memory.tile_pair, [&](const TileRows& rows) {
            one.add_keys(keys.at(b, h / call.group, rows.first), values.at(b, h / call.group, rows.first),
                         rows.count, memory.tile_pair.modifiers);
          });
          one.finish(outputs.at(b, h, first), outputs.ld, all_lse.from(head * call.Tq + first));
        }
      });
  Count::add(2 * call.num_pairs() * (call.d + call.dv));
}

}  // namespace heed::kernel::amx
