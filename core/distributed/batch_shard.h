// Which rows of a batch this process computes when several processes share it.
#pragma once

#include <cstdint>

#include "heed/core/scope.h"

namespace heed {

/// Neighbouring rows of a batch.
struct BatchRows {
  int64_t first = 0;  ///< index of the first row
  int64_t count = 0;  ///< number of rows
};

/// While it lives, this thread computes these rows of the batch, and dropout draws the same numbers for them
/// as a single process that computes all rows. A count of 0 means the whole batch.
class SharedRows {
 public:
  explicit SharedRows(BatchRows rows);  ///< nests; restores the previous rows at its end

 private:
  ScopedValue<BatchRows> rows_;
};

/// Number of random numbers that the rows before this process's rows take, when its own rows take `count`; 0
/// for the whole batch. Dropout kernels begin behind them.
uint64_t skipped_draws(int64_t count);

}  // namespace heed
