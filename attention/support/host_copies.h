// KnownNumbers: host copies of integer buffers that do not change in training.
#pragma once

#include <memory>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

/// Reads a buffer that does not change in training, such as random positions drawn at initialisation. While a
/// CUDA graph is captured, it returns the copy of the last uncaptured step instead of reading the device.
class KnownNumbers {
 public:
  /// The elements of `buffer`; none for an empty tensor. Waits for the device.
  const std::vector<int64_t>& of(const Tensor& buffer) const;

 private:
  mutable std::vector<int64_t> numbers_;
  mutable std::weak_ptr<Storage> read_;
};

}  // namespace heed
