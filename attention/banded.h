// What maps with a band have in common: which pairs are in it, and sparse places elsewhere.
#pragma once

#include "attention/headed.h"

namespace heed {

/// u8 [Tq, Tk] for scores [B, H, Tq, Tk] whose first query stands at `first`: 1 where |i - j| <= width.
Tensor band_of(const Tensor& scores, int64_t first, int64_t width);
/// The other pairs.
Tensor outside_band(const Tensor& scores, int64_t first, int64_t width);
/// i32 [1, 1, n]: places of a row-major L x L matrix, n = density L^2 of them (density 0: L; at least one),
/// none twice, none on the diagonal, ascending; empty where there is but the diagonal. Fails for a density
/// that is no share, and where L is 0: it is not known.
Tensor sparse_places(const char* name, int64_t longest, double density, Rng& rng);
/// Fails when `length` tokens come where a matrix was made for `longest`.
void check_longest(const char* name, int64_t length, int64_t longest);

}  // namespace heed
