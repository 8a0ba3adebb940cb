// What every op asks of tensors that meet.
#pragma once

#include "heed/core/tensor.h"

namespace heed {

/// Fails unless both have one dtype and live on one device.
inline void agree(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype()) {
    fail(op, ": ", a.dtype(), " ", a.shape(), " with ", b.dtype(), " ", b.shape(),
         ". Convert one with cast().");
  }
  if (a.device() != b.device()) {
    fail(op, ": ", a.shape(), " is on ", a.device(), ", ", b.shape(), " on ", b.device(),
         ". Move one of them.");
  }
}

}  // namespace heed
