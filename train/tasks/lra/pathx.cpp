// Path-X of the Long Range Arena: Pathfinder with 128 x 128 pixels.
#include "heed/train/tasks/lra/pathfinder_images.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {

TaskEntry task::lra_pathx() {
  return {"lra-pathx", "Long Range Arena: are two discs on one curve? 128 x 128 pixels, 16,384 tokens",
          [] { return pathfinder_task(128); }};
}

}  // namespace heed
