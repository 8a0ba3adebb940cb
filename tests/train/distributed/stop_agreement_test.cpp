// A request is what any process was asked, and the main one's clock.
#include "heed/train/distributed/stop_agreement.h"

#include <csignal>
#include <vector>

#include "heed/core/distributed/single_process.h"
#include "heed/tests/catch.h"
#include "heed/tests/thread_group.h"

using namespace heed;

TEST_CASE("stop agreement: a process alone does what it is asked") {
  CHECK(!agree_on_stop(single_process(), {}).out_of_time);
  CHECK(agree_on_stop(single_process(), {.out_of_time = true}).out_of_time);
  const StopRequest save = agree_on_stop(single_process(), {.save = true});
  CHECK((save.save && save.signal == 0));
  CHECK(agree_on_stop(single_process(), {.signal = SIGTERM}).signal == SIGTERM);
}

TEST_CASE("stop agreement: a signal or a save counts wherever it came, a clock on the main process alone") {
  for (const int64_t asked : {0, 1}) {
    std::vector<StopRequest> requests(2);
    as_members(2, [&](ProcessGroup& group) {
      StopRequest own{.out_of_time = group.rank() == asked};
      if (group.rank() == asked) own.signal = SIGHUP;
      if (group.rank() != asked) own.save = true;
      requests[static_cast<size_t>(group.rank())] = agree_on_stop(group, own);
    });
    for (const StopRequest& request : requests) {
      CHECK(request.out_of_time == (asked == 0));
      CHECK((request.signal == SIGHUP && request.save));
    }
  }
}
