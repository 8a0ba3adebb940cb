// Which rows of a batch this process computes when several processes share it.
#pragma once

#include <cstdint>

namespace heed {

/// Neighbouring rows of a batch.
struct BatchRows {
  int64_t first = 0;  ///< index of the first row
  int64_t count = 0;  ///< number of rows
};

/// While it lives, this thread computes these rows of the batch, and dropout draws the same numbers for them
/// as a single process that computes all rows. A count of 0: the whole batch.
class SharedRows {
 public:
  explicit SharedRows(BatchRows rows);  ///< nests: the rows before hold again at its end
  ~SharedRows();
  SharedRows(const SharedRows&) = delete;
  SharedRows& operator=(const SharedRows&) = delete;

 private:
  BatchRows outer_;
};

/// Index of the first random number for `count` elements of this process's rows: it skips the numbers of
/// earlier rows. Dropout kernels call it.
uint64_t skipped_draws(int64_t count);

}  // namespace heed
