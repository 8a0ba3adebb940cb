// Every test that computes runs on every device there is, within tolerances that follow from the dtype.
#pragma once

#include "core/device.h"
#include "core/dtype.h"
#include "tests/catch.h"

namespace heed {

/// The device of this run of a test case, which is run once for each: `const Device device = any_device();`
inline Device any_device() {
  const Device device = GENERATE(from_range(devices()));
  CAPTURE(to_string(device));
  return device;
}

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
