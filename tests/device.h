// Tolerances by dtype for tests that run on every device.
#pragma once

#include "heed/core/dtype.h"
#include "heed/tests/any_device.h"

namespace heed {

/// Maximum error, relative to max(1, |expected|), of results against references in double.
inline double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e-12;
    case DType::f32:
      return 2e-6;
    case DType::bf16:
      return 1e-2;
    default:
      return 0;
  }
}

}  // namespace heed
