// The list of tasks: those of tasks.def, and those that a program registers.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "heed/train/tasks/task.h"

namespace heed {

/// A registered task: its name, help text and factory.
struct TaskEntry {
  const char* name;                 ///< as TOML files say it: task = "name"
  const char* about;                ///< one line, for `heed list tasks`
  std::unique_ptr<Task> (*make)();  ///< a new task with the defaults of its settings
};

/// The entry of a task class with a default constructor.
template <class SomeTask>
TaskEntry task_entry(const char* name, const char* about) {
  return {name, about, []() -> std::unique_ptr<Task> { return std::make_unique<SomeTask>(); }};
}

/// All tasks: those of tasks.def, then those that register_task() has added, in their order.
std::span<const TaskEntry> tasks();
/// Makes a task by name. A usage error with the nearest name and the list when there is none.
std::unique_ptr<Task> make_task(const std::string& name);
/// Adds a task: `task = "NAME"` in .toml files, `heed list tasks`, every setting of its fields() as an
/// option. Called before run_program(), from one thread. A usage error when the name is taken or is none.
void register_task(const TaskEntry& entry);

}  // namespace heed
