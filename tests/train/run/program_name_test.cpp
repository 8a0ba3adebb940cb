// Names that cannot be registered are refused, and change nothing. What is registered is tested in a program
// of its own: tests/integration/own_program_test.cpp.
#include "heed/train/run/program_name.h"

#include "heed/tests/catch.h"
#include "heed/train/commands/command.h"
#include "heed/train/tasks/registry.h"

using namespace heed;

namespace {

std::unique_ptr<Task> make_nothing() { return nullptr; }

int run_nothing(const ParsedArguments&) { return 0; }

}  // namespace

TEST_CASE("registration: a task whose name is taken or none, or that nothing makes, is refused") {
  const size_t before = tasks().size();
  CHECK_THROWS_WITH(register_task({"lm", "again", make_nothing}),
                    containing("register_task: the name 'lm' is taken"));
  for (const char* name : {"", "two words", "-dash", "a/b", "lm.toml", "caf\xC3\xA9"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH(register_task({name, "about", make_nothing}), containing("is no name"));
  }
  CHECK_THROWS_WITH(register_task({nullptr, "about", make_nothing}), containing("is no name"));
  CHECK_THROWS_WITH(register_task({"new", nullptr, make_nothing}), containing("no line of help"));
  CHECK_THROWS_WITH(register_task({"new", "about", nullptr}), containing("TaskEntry::make"));
  CHECK(tasks().size() == before);
}

TEST_CASE("registration: a command whose name is taken, or that nothing runs, is refused") {
  const size_t before = commands().size();
  for (const char* name : {"train", "help"}) {
    CHECK_THROWS_WITH(register_command({name, "about", "", "", 0, 0, {}, false, run_nothing}),
                      containing(std::string("'") + name + "' is taken"));
  }
  CHECK_THROWS_WITH(register_command({"new", "about", "", "", 0, 0, {}, false, nullptr}),
                    containing("Command::run"));
  CHECK_THROWS_WITH(register_command({"new", "about", "", "", 2, 1, {}, false, run_nothing}),
                    containing("min_positional must not be above max_positional"));
  CHECK_THROWS_WITH(register_command({"new", "about", nullptr, "", 0, 0, {}, false, run_nothing}),
                    containing("positional_help"));
  CHECK(commands().size() == before);
}

TEST_CASE("registration: a preset that training would refuse is refused at once") {
  const size_t before = presets().size();
  CHECK_THROWS_WITH(register_preset("translate", "task = 'translate'"), containing("'translate' is taken"));
  CHECK_THROWS_WITH(register_preset("new", "task = 'nothing'"),
                    containing("preset new:1:8: task 'nothing' is unknown"));
  CHECK_THROWS_WITH(register_preset("new", "preset = 'new'"), containing("preset 'new' is unknown"));
  CHECK_THROWS_WITH(register_preset("new", "task = 'lm'\n[train]\nmax_step = 3"),
                    containing("preset new:3:12: ") && containing("max_steps"));
  CHECK_THROWS_WITH(register_preset("new", "task = "), containing("preset new:1:"));
  CHECK_THROWS_WITH(register_preset("new", ""), containing("neither a preset nor a task"));
  CHECK(presets().size() == before);
}
