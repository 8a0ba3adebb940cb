// Lists, registers and makes tasks.
#include "heed/train/tasks/registry.h"

#include "heed/nn/set_option.h"
#include "heed/train/run/program_name.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

std::vector<TaskEntry>& all_tasks() {
  static std::vector<TaskEntry> all{
#define TASK(name) task::name(),
#include "heed/train/tasks/tasks.def"
#undef TASK
  };
  return all;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskEntry& entry : all_tasks()) names.emplace_back(entry.name);
  return names;
}

}  // namespace

std::span<const TaskEntry> tasks() { return all_tasks(); }

void register_task(const TaskEntry& entry) {
  check_registration("register_task", entry.name, entry.about, task_names());
  if (entry.make == nullptr)
    fail("register_task: '", entry.name, "' has no function that makes it. Set TaskEntry::make.");
  all_tasks().push_back(entry);
}

std::unique_ptr<Task> make_task(const std::string& name) {
  for (const TaskEntry& entry : all_tasks()) {
    if (name == entry.name) return entry.make();
  }
  fail("task '", shown(name), "' is unknown.", suggestion(name, task_names()));
}

}  // namespace heed
