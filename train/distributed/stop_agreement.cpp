// Gathers the stop requests of all processes, each packed into one number.
#include "heed/train/distributed/stop_agreement.h"

namespace heed {

StopRequest agree_on_stop(ProcessGroup& group, const StopRequest& own) {
  constexpr int save_bit = 1, out_of_time_bit = 2, signal_factor = 4;
  const std::vector<double> requests = group.all_gather(
      signal_factor * own.signal + (own.out_of_time ? out_of_time_bit : 0) + (own.save ? save_bit : 0));
  StopRequest agreed{.out_of_time = (static_cast<int>(requests[0]) & out_of_time_bit) != 0};
  for (const double request : requests) {
    const int packed = static_cast<int>(request);
    if (agreed.signal == 0) agreed.signal = packed / signal_factor;
    agreed.save |= (packed & save_bit) != 0;
  }
  return agreed;
}

}  // namespace heed
