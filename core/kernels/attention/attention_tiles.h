// An attention call on the CPU, and how dense and pattern attention describe their tiles to the loops of
// attention_forward_loop.h and attention_backward_loop.h.
//
// A provider of tiles, DenseTiles or PatternTiles, has these members:
// - Queries: a tile of queries, QueryTile or a class derived from it.
// - scattered_rows: false if the rows of each of its tiles follow each other in memory.
// - call: the AttentionCall<T>.
// - passes(): number of times that a loop goes over all queries; a later pass merges its results into those
//   of the earlier ones.
// - max_query_tiles(), query_tiles(b, h, pass), query_tile(b, h, pass, n): the largest number of query tiles
//   of a head and pass, their number in head h of sequence b and a pass, and the n-th of them.
// - sees(queries, key_begin, key_end): false only if no query of the tile sees a key of [key_begin, key_end).
// - each_key_tile(queries, key_begin, key_end, tile_pair, f): calls f(keys) for each tile of those keys of
//   [key_begin, key_end) that the queries see, after preparing tile_pair. `keys` counts rows from key_begin.
// - each_key_list(queries, i, key_begin, key_end, f): calls f(keys, bias, dropout_factors) with lists of the
//   keys that query i sees, for ForwardRow::add_keys(). `keys` counts rows from key_begin.
// - flops_of_head(), flops_of_tile(): about the floating-point operations of the forward pass of a head, and
//   of a tile of queries.
// - max_key_runs(heads): the largest number of runs into which the backward pass of so many heads may cut the
//   keys of each.
#pragma once

#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/attention/attention_dropout.h"
#include "heed/core/kernels/attention/attention_single_query.h"
#include "heed/core/kernels/attention/attention_tile.h"
#include "heed/core/kernels/attention/tile_rows.h"
#include "heed/core/kernels/simd/scratch.h"

namespace heed::kernel {

/// Calls with at most this many queries, such as those of decoding, compute each query by itself, and never
/// round: vectors of queries would be mostly empty.
inline constexpr int64_t few_queries = 3;

/// Shape, score settings and dropout of a call.
template <class T>
struct AttentionCall : AttentionScores<T> {
  DropoutParams dropout;
  bool rounds;                        ///< AMX computes the call in bf16
  const ScoreFormula* score_formula;  ///< null: none
  const MaskFormula* mask_formula;    ///< null: none

  AttentionCall(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params)
      : AttentionScores<T>(q, k, v, params),
        rounds(params.rounding == Rounding::bf16 && std::is_same_v<T, float> && has_amx() &&
               this->Tq > few_queries && !params.formulas),
        score_formula(params.formulas.score.get()),
        mask_formula(params.formulas.mask.get()) {
    if (this->has_dropout) dropout = DropoutParams::of(params.dropout, params.draw);
  }
  /// True for heads so short that the hardware prefetcher cannot learn their layout.
  bool has_short_heads() const { return this->Tq <= 2 * tile && this->Tk <= 2 * tile; }
  /// Number of pairs of a query and a key that it sees, in all heads.
  int64_t num_pairs() const {
    int64_t total = 0;
    for (int64_t b = 0; b < this->B; ++b) {
      const int64_t queries = this->num_queries(b);
      for (int64_t i = 0; this->causal && i < queries; ++i) total += this->num_keys_before(b, i + 1);
      if (!this->causal) total += queries * this->num_keys(b);
    }
    return total * this->H;
  }
};

/// Queries of one head that are computed together.
struct QueryTile {
  int64_t b, h;
  TileRows rows;
  bool row_by_row = false;  ///< each query is computed by itself, with lists of the keys that it sees
};

/// Masks, bias and dropout of a tile of queries and a tile of keys, and the memory to which `modifiers`
/// points.
template <class T>
struct TilePair {
  PairBits<T> visible, keep_mask;
  alignas(64) T bias[tile * tile];
  alignas(64) T slopes[tile * tile];
  int32_t key_index[tile];
  TileMask tile_mask;
  ScoreModifiers<T> modifiers;
};

/// Scratch memory of a loop: a TilePair, then elements of type T.
template <class T>
struct LoopMemory {
  TilePair<T>& tile_pair;
  BumpAllocator<T> arena;

  static int64_t bytes(int64_t elements) {
    return static_cast<int64_t>(sizeof(TilePair<T>) + sizeof(T) * elements);
  }
  explicit LoopMemory(const Scratch::Part& part)
      : tile_pair(*part.template data<TilePair<T>>()), arena(reinterpret_cast<T*>(&tile_pair + 1)) {}
};

}  // namespace heed::kernel
