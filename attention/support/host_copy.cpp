// Copies integer buffers to the host.
#include "heed/attention/support/host_copy.h"

#include "heed/core/constant_table.h"

namespace heed {

HostCopy::Numbers HostCopy::read(const Tensor& buffer) const {
  if (buffer && step_is_recorded()) {
    const std::lock_guard lock(mutex_);
    if (source_.lock() == buffer.storage()) return numbers_;
  }
  const std::vector<double> values = buffer ? buffer.to_doubles() : std::vector<double>();
  auto numbers = std::make_shared<const std::vector<int64_t>>(values.begin(), values.end());
  const std::lock_guard lock(mutex_);
  numbers_ = numbers;
  source_ = buffer.storage();
  return numbers;
}

HostCopy::Numbers HostCopy::last_read() const {
  const std::lock_guard lock(mutex_);
  return numbers_;
}

}  // namespace heed
