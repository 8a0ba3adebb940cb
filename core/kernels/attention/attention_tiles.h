// How dense and pattern attention describe their tiles to the one loop that computes them.
//
// A provider of tiles, DenseTiles or PatternTiles, has
//   Queries           a tile of queries: QueryTile or a class derived from it
//   scattered_rows    false if rows of its tiles always follow each other
//   call              extents, scores and dropout: a Call<T>
//   passes()          how often a loop goes over the queries; a later pass adds to what earlier ones found
//   max_query_tiles() of any head and pass
//   query_tiles(h, pass), query_tile(b, h, pass, n)  their number, and one of them
//   sees(queries, first, last)  false only if none of the queries sees a key of [first, last)
//   each_key_tile(queries, first, last, step, f)  calls f(keys) for each tile of keys
//                     in [first, last) that the queries see, after preparing `step`; rows count from `first`
//   each_pick(queries, i, first, last, f)  calls f(picked, bias, keep_mask) for the keys of query i alone,
//                     as ForwardRow takes them; rows count from `first`
//   flops_of_head(), flops_of_tile()  about the operations of the forward pass: of a head, of a query tile
//   key_runs(heads)   into how many runs the backward pass may cut the keys of each of so many heads
#pragma once

#include "heed/core/kernels/attention/attention_call.h"
#include "heed/core/kernels/attention/attention_single_query.h"
#include "heed/core/kernels/attention/tile_rows.h"
#include "heed/core/kernels/simd/scratch.h"

namespace heed::kernel {

/// Queries of one head that see common keys.
struct QueryTile {
  int64_t b, h;
  TileRows rows;
  bool alone = false;  ///< each query goes by itself through keys of its own
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

/// Scratch memory of a loop: the params of a step, then numbers.
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
