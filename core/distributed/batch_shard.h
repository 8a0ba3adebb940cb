// Which rows of a batch are computed here, where several processes share it.
#pragma once

#include <cstdint>

namespace heed {

/// Neighbouring rows of a batch.
struct BatchRows {
  int64_t first = 0, count = 0;
};

/// While one lives, what this thread computes is of these rows of the batch, and dropout draws for them what
/// one process draws that computes all rows. A count of 0: the whole batch, as without it.
class SharedRows {
 public:
  explicit SharedRows(BatchRows rows);
  ~SharedRows();
  SharedRows(const SharedRows&) = delete;
  SharedRows& operator=(const SharedRows&) = delete;

 private:
  BatchRows outer_;
};

/// Where the counters of `count` elements begin that lie row after row of the batch: behind those of the rows
/// before. 0 where they do not lie so. Kernels that drop ask when they are called.
uint64_t skipped_draws(int64_t count);

}  // namespace heed
