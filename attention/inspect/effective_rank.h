// How many independent rows a matrix of attention weights has.
#pragma once

#include <cstdint>
#include <span>

namespace heed {

/// The effective rank of a matrix [rows, columns]: e to the entropy of its singular values, which are divided
/// by their sum. 1 when all rows point the same way, min(rows, columns) for a permutation; 0 for a matrix of
/// zeros. Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality".
double effective_rank(std::span<const float> matrix, int64_t rows, int64_t columns);

}  // namespace heed
