// Whole numbers that were drawn once, as the host knows them.
#pragma once

#include <memory>
#include <vector>

#include "core/tensor.h"

namespace heed {

/// Reads a buffer that does not change while a model is trained, such as places that were drawn when it was
/// made. While a step is recorded it is not read again: the numbers are those that the last step read, which
/// ran as it is.
class KnownNumbers {
 public:
  /// Of an empty tensor, none. Waits for the device.
  const std::vector<int64_t>& of(const Tensor& buffer) const;

 private:
  mutable std::vector<int64_t> numbers_;
  mutable std::weak_ptr<Storage> read_;
};

}  // namespace heed
