// Copies integer buffers to the host.
#include "heed/attention/support/host_copies.h"

#include "heed/core/constant_table.h"

namespace heed {

const std::vector<int64_t>& KnownNumbers::of(const Tensor& buffer) const {
  if (buffer && step_is_recorded() && read_.lock() == buffer.storage()) return numbers_;
  const std::vector<double> values = buffer ? buffer.to_doubles() : std::vector<double>();
  numbers_.assign(values.begin(), values.end());
  read_ = buffer.storage();
  return numbers_;
}

}  // namespace heed
