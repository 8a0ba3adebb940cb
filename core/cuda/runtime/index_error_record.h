// Records of invalid indices, left by kernels. A kernel cannot throw: it records the first invalid index and
// accesses nothing outside its tensors; the host fails when it next waits for the device.
#pragma once

#include <cstdint>

#include "heed/core/cuda/device/grid.h"

namespace heed::cuda {

/// The ops whose kernels check indices.
enum class IndexOp : int { cross_entropy, gather, scatter_add, gather_rows, scatter_add_rows };
inline constexpr int num_index_ops = 5;

/// The first invalid index of an op. `first` holds its position in the upper and its value in the lower 32
/// bits, so that the smallest position wins in any order of threads; all bits are set where there is none.
struct IndexErrorRecord {
  unsigned long long first;
  int64_t rows;          ///< valid indices are 0 to rows - 1
  int64_t ignored;       ///< the index that cross_entropy ignores, valid too
  int64_t heads, count;  ///< the position is (sequence, head, i < count) (gather_rows, scatter_add_rows)
};

/// The error record of an op, in the memory of the device.
IndexErrorRecord* index_error_record(IndexOp op);

/// Records the invalid index `value` at position `place` < 2^32. All fields of `valid` but `first` are
/// copied.
__device__ inline void record_index_error(IndexErrorRecord* record, int64_t place, int32_t value,
                                          const IndexErrorRecord& valid) {
  record->rows = valid.rows;
  record->ignored = valid.ignored;
  record->heads = valid.heads;
  record->count = valid.count;
  atomicMin(&record->first, (static_cast<unsigned long long>(place) << 32) |
                                static_cast<unsigned long long>(static_cast<uint32_t>(value)));
}

}  // namespace heed::cuda
