// Invalid indices found by kernels. A kernel cannot throw: it records the first invalid index, accesses
// nothing outside its tensors, and the host fails when it next waits for the device.
#pragma once

#include <cstdint>

#include "heed/core/cuda/device/grid.h"

namespace heed::cuda {

/// The ops whose kernels check indices.
enum class IndexOp : int { cross_entropy, gather, scatter_add, gather_rows, scatter_add_rows };
inline constexpr int num_index_ops = 5;

/// The first invalid index of an op. `first` holds its position in the upper and its value in the lower 32
/// bits, so that the smallest position wins in any order of threads; all bits are set where there is none.
struct DeviceError {
  unsigned long long first;
  int64_t rows;          ///< valid indices are 0 to rows - 1
  int64_t ignored;       ///< another valid index (cross_entropy)
  int64_t heads, count;  ///< extents of which a position consists (gather_rows, scatter_add_rows)
};

/// The error record of an op, in the memory of the device.
DeviceError* device_error(IndexOp who);

/// Records the invalid index `value` at `place` < 2^32; `valid` describes valid ones.
__device__ inline void record_index_error(DeviceError* record, int64_t place, int32_t value,
                                          const DeviceError& valid) {
  record->rows = valid.rows;
  record->ignored = valid.ignored;
  record->heads = valid.heads;
  record->count = valid.count;
  atomicMin(&record->first, (static_cast<unsigned long long>(place) << 32) |
                                static_cast<unsigned long long>(static_cast<uint32_t>(value)));
}

}  // namespace heed::cuda
