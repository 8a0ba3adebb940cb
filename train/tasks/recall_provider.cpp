// Finds the RecallProvider of a task.
#include "heed/train/tasks/recall_provider.h"

namespace heed {

const RecallProvider& recall_provider(const Task& task) {
  const auto* provider = dynamic_cast<const RecallProvider*>(&task);
  if (provider == nullptr)
    fail(
        "this task has no keys with values to ask for. Take a run of mqar, mad-recall or mad-noisy; a task "
        "of ",
        "your own has them by deriving from RecallProvider.");
  return *provider;
}

}  // namespace heed
