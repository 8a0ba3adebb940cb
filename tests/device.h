// Every test that computes runs on every device there is, within tolerances that follow from the dtype.
#pragma once

#include "core/dtype.h"
#include "tests/any_device.h"

namespace heed {

/// Largest error, relative to max(1, |expected|), of values that plain double code gives exactly.
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
