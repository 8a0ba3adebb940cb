// The backward pass of dense attention in bf16 by the matrix tiles of AMX: the formulas of
// attention_backward_tile.h. Weights and gradients of scores are kept as bf16 alone: by rows [keys, pairs of
// queries], the left factors of dv and dk, and in pairs of keys [pairs of keys, queries], the right factor of
// dq, which is summed transposed.
#pragma once

#include "heed/core/kernels/attention/attention_amx_forward.h"
#include "heed/core/kernels/attention/attention_backward_loop.h"

namespace heed::kernel::amx {

/// Rounds 32 numbers of a row, in two vectors, to sixteen words.
__attribute__((target("avx512bf16"))) inline void put_row(V first, V second, uint32_t* words) {
  _mm512_storeu_si512(words, (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first));
}

/// sums[i] += x[i] for the first `count` lanes, none where it is negative.
inline void add_first_lanes(V x, int64_t count, float* sums) {
  const __mmask16 valid = bf16_tiles::first_lanes(count);
  _mm512_mask_storeu_ps(sums, valid, _mm512_add_ps(_mm512_maskz_loadu_ps(valid, sums), (__m512)x));
}

/// A tile of keys: k and v by rows, and k by columns.
struct BackwardKeys {
  const uint32_t *k, *v, *k_columns;
  int64_t count;
};

/// One tile of up to 64 queries, as BackwardTile: start(), add_keys() for each tile of keys, finish().
class BackwardTile {
 public:
  /// Floats of working memory.
  static int64_t scratch_size(int64_t d, int64_t dv) {
    return (pair_floats(d) + pair_floats(dv) + 2 * whole(d) + whole(dv) + 2 * tile + 3 * pairs_of_tile + 2) *
           tile;
  }
  BackwardTile(float* memory, int64_t d, int64_t dv) : d_(d), dv_(dv) {
    BumpAllocator<float> arena(memory);
    const auto words = [&](int64_t rows) { return reinterpret_cast<uint32_t*>(arena.take(rows * tile)); };
    q_ = words(bf16_tiles::pairs_of(d));
    dout_ = words(bf16_tiles::pairs_of(dv));
    q_rows_ = words(ceil_div(d, tile) * pairs_of_tile);
    dout_rows_ = words(ceil_div(dv, tile) * pairs_of_tile);
    weight_rows_ = words(pairs_of_tile);
    grad_rows_ = words(pairs_of_tile);
    grad_pairs_ = words(pairs_of_tile);
    scores_ = arena.take(tile * tile);
    grad_weights_ = arena.take(tile * tile);
    dq_ = arena.take(whole(d) * tile);
    dq_rows_ = arena.take(whole(d) * tile);
    scaled_dout_ = arena.take(whole(dv) * tile);
    lse_ = arena.take(tile);
    delta_ = arena.take(tile);
  }

  /// Begins with `queries` rows of q [d], dout and out [dv], and their log-sum-exps.
  void start(Rows<float> q, Rows<float> dout, Rows<float> out, const LseView<float>& lse, int64_t queries,
             float scale_log2) {
    queries_ = queries;
    scale_ = scale_log2;
    std::fill_n(lse_, tile, infinity<float>);
    std::fill_n(delta_, tile, 0.0F);
    simd::row_dots(dout.data, dout.ld, out.data, out.ld, queries, dv_, delta_);
    for (int64_t i = 0; i < queries; ++i) {
      // A query without keys has weights 2^(s - inf) = 0. All gradients are linear in dout, so the factor of
      // the weights multiplies each row of dout.
      const RowLse<float> row = lse.at(i);
      const auto [base, factor] = row.weight_base();
      lse_[i] = row.log == minus_infinity<float> ? infinity<float> : base;
      delta_[i] *= factor;
      simd::scaled(dout.row(i), dv_, factor, scaled_dout_ + i * whole(dv_));
    }
    dout = {scaled_dout_, whole(dv_)};
    bf16_tiles::pack_strip_of_columns(q.data, q.ld, queries, d_, q_);
    bf16_tiles::pack_strip_of_columns(dout.data, dout.ld, queries, dv_, dout_);
    pack_rows(q, d_, q_rows_);
    pack_rows(dout, dv_, dout_rows_);
    std::fill_n(dq_, whole(d_) * tile, 0.0F);
  }

  /// Adds the gradients of a tile of keys to rows of dk and dv, which have whole(d) and whole(dv) columns,
  /// and the gradient of the score of query i and key j to diagonals[i - j]; null: not wanted.
  void add_keys(const BackwardKeys& keys, const ScoreModifiers<float>& modifiers, SumRows<float> dk,
                SumRows<float> dv, float* diagonals) {
    const amx_tiles::Shaped shaped;
    const int64_t pairs = bf16_tiles::pairs_of(d_), value_pairs = bf16_tiles::pairs_of(dv_);
    multiply(keys.count, queries_, pairs, keys.k, pairs, q_, scores_, tile, /*add=*/false);
    multiply(keys.count, queries_, value_pairs, keys.v, value_pairs, dout_, grad_weights_, tile,
             /*add=*/false);
    const bool has_dropout = modifiers.keep_mask != nullptr;
    if (modifiers.changes_scores()) {
      has_dropout ? score_gradients<true, true>(keys.count, modifiers, diagonals)
                  : score_gradients<true, false>(keys.count, modifiers, diagonals);
    } else {
      has_dropout ? score_gradients<false, true>(keys.count, modifiers, diagonals)
                  : score_gradients<false, false>(keys.count, modifiers, diagonals);
    }
    add_product(keys.count, dv_, weight_rows_, dout_rows_, dv);
    add_product(keys.count, d_, grad_rows_, q_rows_, dk);
    multiply(d_, queries_, bf16_tiles::pairs_of(keys.count), keys.k_columns, pairs_of_tile, grad_pairs_, dq_,
             tile, /*add=*/true);
  }

  /// Writes dq [queries, d] = scale times its sums.
  void finish(float* dq, int64_t ld, float scale) const {
    simd::scaled_transpose(dq_, tile, d_, queries_, scale, dq_rows_, whole(d_));
    for (int64_t i = 0; i < queries_; ++i) std::copy_n(dq_rows_ + i * whole(d_), d_, dq + i * ld);
  }

 private:
  /// Words of rows [width, 64] and of strips of 64 columns [64, width], in units of 64.
  static int64_t pair_floats(int64_t width) {
    return bf16_tiles::pairs_of(width) + ceil_div(width, tile) * pairs_of_tile;
  }
  /// Packs the queries' rows x [queries, width] in strips as a right factor.
  void pack_rows(Rows<float> x, int64_t width, uint32_t* words) const {
    for (int64_t c = 0; c < width; c += tile)
      bf16_tiles::pack_strip_of_rows(x.data + c, x.ld, std::min(tile, width - c), queries_,
                                     words + c / tile * pairs_of_tile * tile);
  }
  /// sums [keys, width] += left [keys, pairs of queries] rows [queries, width].
  void add_product(int64_t keys, int64_t width, const uint32_t* left, const uint32_t* rows,
                   SumRows<float> sums) const {
    const int64_t pairs = bf16_tiles::pairs_of(queries_);
    for (int64_t c = 0; c < width; c += tile)
      multiply(keys, std::min(tile, width - c), pairs, left, pairs, rows + c / tile * pairs_of_tile * tile,
               sums.data + c, sums.ld, /*add=*/true);
  }

  /// A weight after dropout and the gradient of its score.
  struct PairGradient {
    V weight, score;
  };

  /// From the raw scores and the gradients of the weights [keys, queries]: weights p = 2^(s - lse) after
  /// dropout by rows, and gradients p (dp - delta) of the scores by rows and in pairs of keys.
  template <bool changes_scores, bool has_dropout>
  __attribute__((target("avx512bf16"))) void score_gradients(int64_t keys,
                                                             const ScoreModifiers<float>& modifiers,
                                                             float* diagonals) {
    const int64_t row_words = bf16_tiles::pairs_of(queries_), padded_queries = simd::padded<float>(queries_);
    for (int64_t query = 0; query < queries_; query += 2 * lanes) {
      const bool has_second = query + lanes < padded_queries;
      const V lse[2] = {simd::load(lse_ + query), simd::load(lse_ + query + lanes)},
              delta[2] = {simd::load(delta_ + query), simd::load(delta_ + query + lanes)};
      const auto row = [&](int64_t j, V(&gradient)[2]) __attribute__((target("avx512bf16"))) {
        const PairGradient first =
            pair_gradient<changes_scores, has_dropout>(j, query, lse[0], delta[0], modifiers, padded_queries);
        const PairGradient second = has_second
                                        ? pair_gradient<changes_scores, has_dropout>(
                                              j, query + lanes, lse[1], delta[1], modifiers, padded_queries)
                                        : PairGradient{};
        put_row(first.weight, second.weight, weight_rows_ + j * row_words + query / 2);
        put_row(first.score, second.score, grad_rows_ + j * row_words + query / 2);
        gradient[0] = first.score;
        gradient[1] = second.score;
        for (int64_t n = 0; n < 2 && diagonals != nullptr; ++n)
          add_first_lanes(gradient[n], queries_ - query - n * lanes, diagonals + query + n * lanes - j);
      };
      for (int64_t j = 0; j < 2 * bf16_tiles::pairs_of(keys); j += 2) {
        V even[2] = {V{}, V{}}, odd[2] = {V{}, V{}};
        if (j < keys) row(j, even);
        if (j + 1 < keys) row(j + 1, odd);
        put_pair(even[0], odd[0], grad_pairs_ + j / 2 * tile + query);
        put_pair(even[1], odd[1], grad_pairs_ + j / 2 * tile + query + lanes);
      }
      // Rows that fill up a matrix tile belong to keys that these queries do not see.
      for (int64_t j = keys; j < whole(keys); ++j) {
        put_row(V{}, V{}, weight_rows_ + j * row_words + query / 2);
        put_row(V{}, V{}, grad_rows_ + j * row_words + query / 2);
      }
    }
  }

  template <bool changes_scores, bool has_dropout>
  PairGradient pair_gradient(int64_t j, int64_t query, V lse, V delta, const ScoreModifiers<float>& modifiers,
                             int64_t padded_queries) const {
    V s = simd::load(scores_ + j * tile + query) * scale_;
    [[maybe_unused]] V softcap_grad = simd::splat(1.0F);
    if constexpr (changes_scores) {
      if (modifiers.softcap != 0) {
        const V tanh_score = fast_tanh<float>(s / modifiers.softcap);
        softcap_grad = 1.0F - tanh_score * tanh_score;
      }
      s = modified_score<float>(s, modifiers, j, query, padded_queries);
    }
    const V p = simd::exp2<float>(s - lse);
    V dp = simd::load(grad_weights_ + j * tile + query), weight = p;
    if constexpr (has_dropout) {
      weight = modifiers.keep_mask->select(j, query, p * modifiers.keep_scale, V{});
      dp = modifiers.keep_mask->select(j, query, dp * modifiers.keep_scale, V{});
    }
    const V gradient = p * (dp - delta);
    return {weight, changes_scores ? gradient * softcap_grad : gradient};
  }

  int64_t d_, dv_, queries_ = 0;
  float scale_ = 1;
  uint32_t *q_, *dout_, *q_rows_, *dout_rows_, *weight_rows_, *grad_rows_, *grad_pairs_;
  float *scores_, *grad_weights_, *dq_, *dq_rows_, *scaled_dout_, *lse_, *delta_;
};

/// Keys and values of all heads, packed for BackwardTile.
struct BackwardKeyTiles {
  KeyTiles k, v, k_columns;

  BackwardKeyTiles(const BackwardHeads<float>& tensors, const AttentionCall<float>& call)
      : k(KeyTiles::By::rows, tensors.k, call.d, call),
        v(KeyTiles::By::rows, tensors.v, call.dv, call),
        k_columns(KeyTiles::By::columns, tensors.k, call.d, call) {}
  BackwardKeys at(int64_t b, int64_t kv_head, int64_t first, int64_t count) const {
    return {k.at(b, kv_head, first), v.at(b, kv_head, first), k_columns.at(b, kv_head, first), count};
  }
};

/// Computes dk and dv of runs of keys, and the part of dq of each run, in its working memory.
class BackwardLoop {
 public:
  /// Floats of working memory for runs of at most `keys` keys.
  static int64_t scratch_size(int64_t keys, int64_t d, int64_t dv) {
    return BackwardTile::scratch_size(d, dv) + ceil_div(keys, tile) * tile * (whole(d) + whole(dv));
  }
  BackwardLoop(LoopMemory<float> memory, const DenseTiles<float>& tiles, const BackwardHeads<float>& tensors,
               const KeyRuns<float>& runs, const BackwardKeyTiles& keys)
      : tiles_(tiles),
        call_(tiles.call),
        tensors_(tensors),
        runs_(runs),
        keys_(keys),
        tile_pair_(memory.tile_pair),
        tile_(memory.arena.take(BackwardTile::scratch_size(call_.d, call_.dv)), call_.d, call_.dv) {
    const int64_t rows = ceil_div(runs.max_length(), tile) * tile;
    dk_ = {memory.arena.take(rows * whole(call_.d)), whole(call_.d)};
    dv_ = {memory.arena.take(rows * whole(call_.dv)), whole(call_.dv)};
  }

  /// Computes run `index` of the keys of batch row b and key head `kv_head`.
  void run(int64_t index, int64_t b, int64_t kv_head) {
    const int64_t begin = index * runs_.length,
                  end = std::max(begin, std::min(begin + runs_.length, call_.num_keys(b))),
                  keys = end - begin, rows = ceil_div(keys, tile) * tile,
                  filled = std::min(runs_.length, call_.key_rows(b) - begin);  // with keys past the length
    std::fill_n(dk_.data, rows * dk_.ld, 0.0F);
    std::fill_n(dv_.data, rows * dv_.ld, 0.0F);
    for (int64_t h = kv_head * call_.group; h < (kv_head + 1) * call_.group; ++h) {
      diagonals_ = runs_.diagonals(index, b, h);
      for (int64_t n = 0; n < tiles_.query_tiles(b, h, 0); ++n)
        add_queries(tiles_.query_tile(b, h, 0, n), begin, end, runs_.dq(index));
    }
    for (int64_t j = 0; j < filled; ++j) {
      float *dk = tensors_.dk.at(b, kv_head, begin + j), *dv = tensors_.dv.at(b, kv_head, begin + j);
      if (j < keys) {
        simd::scaled(dk_.row(j), call_.d, call_.scale, dk);
        std::copy_n(dv_.row(j), call_.dv, dv);
      } else {
        std::fill_n(dk, call_.d, 0.0F);
        std::fill_n(dv, call_.dv, 0.0F);
      }
    }
  }

 private:
  /// Adds the gradients of a tile of queries with the keys [begin, end) that they see, and writes dq.
  void add_queries(const QueryTile& queries, int64_t begin, int64_t end, const HeadView<float>& dq) {
    const int64_t b = queries.b, h = queries.h, first = queries.rows.first, count = queries.rows.count;
    float* dq_rows = dq.at(b, h, first);
    if (!tiles_.sees(queries, begin, end)) return zero_rows(dq_rows, dq.ld, count, call_.d);
    const auto rows = [&](const HeadView<const float>& heads) -> Rows<float> {
      return {heads.at(b, h, first), heads.ld};
    };
    tile_.start(rows(tensors_.q), rows(tensors_.dout), rows(tensors_.out),
                tensors_.lse.from((b * call_.H + h) * call_.Tq + first), count, call_.scale_log2());
    tiles_.each_key_tile(queries, begin, end, tile_pair_, [&](const TileRows& keys) {
      // Pair (i, j), counted within tiles, belongs to diagonal Tk - 1 + i - j of the head.
      float* diagonals =
          diagonals_ == nullptr ? nullptr : diagonals_ + first - (begin + keys.first) + call_.Tk - 1;
      tile_.add_keys(keys_.at(b, h / call_.group, begin + keys.first, keys.count), tile_pair_.modifiers,
                     {dk_.row(keys.first), dk_.ld}, {dv_.row(keys.first), dv_.ld}, diagonals);
    });
    tile_.finish(dq_rows, dq.ld, call_.scale);
  }

  const DenseTiles<float>& tiles_;
  const AttentionCall<float>& call_;
  const BackwardHeads<float>& tensors_;
  const KeyRuns<float>& runs_;
  const BackwardKeyTiles& keys_;
  TilePair<float>& tile_pair_;
  BackwardTile tile_;
  SumRows<float> dk_{}, dv_{};
  float* diagonals_ = nullptr;
};

/// attention_backward() with factors rounded to bf16. One task is some runs of keys of a key head.
inline void attention_backward(const DenseTiles<float>& tiles, const AttentionBackTensors& t) {
  const AttentionCall<float>& call = tiles.call;
  const BackwardHeads<float> tensors(t, call);
  const BackwardKeyTiles keys(tensors, call);
  const int64_t heads = call.B * tensors.kv_heads;
  const KeyRuns<float> runs(call, tensors, tiles.max_key_runs(std::max<int64_t>(1, heads)));
  Scratch scratch(LoopMemory<float>::bytes(BackwardLoop::scratch_size(runs.max_length(), call.d, call.dv)));
  const int64_t flops_per_run = std::max<int64_t>(1, 2 * call.group * tiles.flops_of_head() / runs.count);
  parallel_rows(heads * runs.count, flops_per_task / flops_per_run, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    BackwardLoop loop(LoopMemory<float>(part), tiles, tensors, runs, keys);
    for (int64_t n = begin; n < end; ++n)
      loop.run(n / heads, n % heads / tensors.kv_heads, n % tensors.kv_heads);
  });
  runs.sum_runs();
  Count::add(2 * call.num_pairs() * (3 * call.d + 2 * call.dv));
}

}  // namespace heed::kernel::amx
