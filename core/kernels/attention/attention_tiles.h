// An attention call on the CPU, and how dense and pattern attention describe their tiles to the one loop that
// computes them.
//
// A provider of tiles, DenseTiles or PatternTiles, has
//   Queries           a tile of queries: QueryTile or a class derived from it
//   scattered_rows    false if rows of its tiles always follow each other
//   call              extents, scores and dropout: a Call<T>
//   passes()          number of times that a loop goes over the queries; a later pass merges with the earlier
//   ones max_query_tiles() of any head and pass query_tiles(h, pass), query_tile(b, h, pass, n)  their
//   number, and one of them sees(queries, key_begin, key_end)  false only if none of the queries sees a key
//   of [key_begin, key_end) each_key_tile(queries, key_begin, key_end, step, f)  calls f(keys) for each tile
//   of keys in [key_begin, key_end)
//                     that the queries see, after preparing `step`; rows count from key_begin
//   each_key_list(queries, i, key_begin, key_end, f)  calls f(keys, bias, keep_mask) for the keys of query i
//   alone, as
//                     ForwardRow takes them; rows count from key_begin
//   flops_of_head(), flops_of_tile()  about the operations of the forward pass: of a head, of a query tile
//   max_key_runs(heads)  limit of the runs into which the backward pass may cut the keys of each of so many
//   heads
#pragma once

#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/attention/attention_dropout.h"
#include "heed/core/kernels/attention/attention_single_query.h"
#include "heed/core/kernels/attention/attention_tile.h"
#include "heed/core/kernels/attention/tile_rows.h"
#include "heed/core/kernels/simd/scratch.h"

namespace heed::kernel {

/// Extents, score settings and dropout of a call.
template <class T>
struct Call : AttentionScores<T> {
  DropoutParams dropout;

  Call(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params)
      : AttentionScores<T>(q, k, v, params) {
    if (this->has_dropout) dropout = DropoutParams::of(params.dropout, params.draw);
  }
  /// True for heads so short that the hardware prefetcher cannot learn their layout.
  bool has_short_heads() const { return this->Tq <= 2 * tile && this->Tk <= 2 * tile; }
  /// Number of visible pairs of all heads.
  int64_t pairs() const {
    int64_t total = 0;
    for (int64_t b = 0; b < this->B; ++b) {
      for (int64_t i = 0; this->causal && i < this->Tq; ++i) total += this->num_keys_before(b, i + 1);
      if (!this->causal) total += this->Tq * this->num_keys(b);
    }
    return total * this->H;
  }
};

/// Queries of one head that see common keys.
struct QueryTile {
  int64_t b, h;
  TileRows rows;
  bool alone = false;  ///< each query is computed by itself, with its own keys
};

/// Masks, bias and dropout of one tile of queries and one tile of keys, with their memory.
template <class T>
struct StepParams {
  PairBits<T> visible, keep_mask;
  alignas(64) T bias[tile * tile];
  int32_t index[tile];
  TileMask tile_mask;
  ScoreModifiers<T> modifiers;
};

/// Scratch memory of a loop: a StepParams, then numbers.
template <class T>
struct LoopMemory {
  StepParams<T>& step;
  BumpAllocator<T> arena;

  static int64_t bytes(int64_t numbers) {
    return static_cast<int64_t>(sizeof(StepParams<T>) + sizeof(T) * numbers);
  }
  explicit LoopMemory(const Scratch::Part& part)
      : step(*part.template data<StepParams<T>>()), arena(reinterpret_cast<T*>(&step + 1)) {}
};

}  // namespace heed::kernel
