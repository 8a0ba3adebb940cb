// HostCopy: host copies of integer buffers that do not change in training.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

/// Reads a buffer that does not change in training, such as random positions drawn at initialisation. While a
/// CUDA graph is captured, it returns the copy of the last uncaptured step instead of reading the device.
class HostCopy {
 public:
  using Numbers = std::shared_ptr<const std::vector<int64_t>>;  ///< a copy, which never changes
  /// The elements of `buffer`; none for an empty tensor. Waits for the device.
  Numbers read(const Tensor& buffer) const;
  /// The result of the last read() in any thread; null before its first call.
  Numbers last_read() const;

 private:
  mutable std::mutex mutex_;
  mutable Numbers numbers_;                // result of the last read()
  mutable std::weak_ptr<Storage> source_;  // storage that numbers_ were read from
};

}  // namespace heed
