// Gathers the stop requests of all processes, each packed into one number.
#include "heed/train/distributed/stop_agreement.h"

namespace heed {

StopRequest agree_on_stop(ProcessGroup& group, const StopRequest& own) {
  const int packed = 4 * own.signal + (own.out_of_time ? 2 : 0) + (own.save ? 1 : 0);
  const std::vector<double> all = group.all_gather(packed);
  StopRequest agreed{.out_of_time = (static_cast<int>(all[0]) & 2) != 0};
  for (const double one : all) {
    const int request = static_cast<int>(one);
    if (agreed.signal == 0) agreed.signal = request / 4;
    agreed.save |= (request & 1) != 0;
  }
  return agreed;
}

}  // namespace heed
