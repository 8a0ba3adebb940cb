// Indices that a kernel cannot use. A kernel cannot throw: it notes the first such place, goes on without
// touching anything outside its tensors, and the host fails when it next waits for the device.
#pragma once

#include <cstdint>

#include "heed/core/cuda/device/grid.h"

namespace heed::cuda {

/// Who refuses.
enum class Refuser : int { cross_entropy, gather, scatter_add, gather_rows, scatter_add_rows };
inline constexpr int refusers = 5;

/// The first place that was refused and what stood there: place and value as one number, so that the least
/// place wins whichever thread comes first; all ones where nothing was refused.
struct DeviceError {
  unsigned long long first;
  int64_t rows;          ///< legal are 0 to rows - 1,
  int64_t spared;        ///< and this one (cross_entropy)
  int64_t heads, count;  ///< extents that a place is made of (gather_rows, scatter_add_rows)
};

/// The note of one refuser, in the memory of the device.
DeviceError* refusal(Refuser who);

/// Notes `value` at `place` < 2^32.
__device__ inline void refuse(DeviceError* note, int64_t place, int32_t value, const DeviceError& legal) {
  note->rows = legal.rows;
  note->spared = legal.spared;
  note->heads = legal.heads;
  note->count = legal.count;
  atomicMin(&note->first, (static_cast<unsigned long long>(place) << 32) |
                              static_cast<unsigned long long>(static_cast<uint32_t>(value)));
}

}  // namespace heed::cuda
