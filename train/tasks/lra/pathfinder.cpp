// Pathfinder of the Long Range Arena: are two discs on one dashed curve?
#include "heed/train/tasks/lra/pathfinder_images.h"

#include "heed/train/tasks/task_declarations.h"

namespace heed {

TaskEntry task::lra_pathfinder() {
  return {"lra-pathfinder", "Long Range Arena: are two discs on one curve? 32 x 32 pixels, 1,024 tokens",
          [] { return pathfinder_task(32); }};
}

}  // namespace heed
