// fit() in a program that mpirun starts several times.
#include "heed/tests/catch.h"
#include "heed/tests/integration/several_processes.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

std::vector<std::string> lines_of(const std::string& output) {
  std::vector<std::string> lines;
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("fit processes: two share each batch, end with the same weights, and one writes", "[slow]") {
  if (!mpirun_is_there()) return;
  Shell shell;
  shell.started = {fit_program()};
  const Result one = shell.run({"one"});
  CAPTURE(one.err);
  REQUIRE(one.code == 0);
  shell.before = as_processes(2);
  const Result two = shell.run({"two"});
  CAPTURE(two.err);
  REQUIRE(two.code == 0);
  const std::vector<std::string> said = lines_of(two.out);
  REQUIRE(said.size() == 2);
  CHECK(said[0] == said[1]);
  CHECK(said[0].starts_with("step 21 best "));
  CHECK(count_of("2, which share each batch of 15 examples", two.err) == 1);  // one speaks
  const double off = distance(shell.scratch / "two", shell.scratch / "one");
  CHECK(off < 1e-5);
  CHECK(list_checkpoints(shell.scratch / "two") == list_checkpoints(shell.scratch / "one"));

  // Called again, the run is complete: both get its weights from the checkpoint that one of them has read.
  const Result again = shell.run({"two"});
  CAPTURE(again.err);
  CHECK(again.code == 0);
  CHECK(again.out == two.out);
}

TEST_CASE("fit processes: a signal to one stops all after the same step, and the run goes on", "[slow]") {
  if (!mpirun_is_there()) return;
  Shell shell;
  shell.started = {fit_program()};
  shell.before = as_processes(2);
  const Result whole = shell.run({"whole"});
  REQUIRE(whole.code == 0);
  const Result stopped = shell.run({"stopped", "stop"});
  CAPTURE(stopped.err);
  CHECK(stopped.code == 143);
  CHECK(list_checkpoints(shell.scratch / "stopped") == std::vector<int64_t>{5});
  const Result resumed = shell.run({"stopped"});
  CAPTURE(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(resumed.out == whole.out);
}

TEST_CASE("fit processes: what goes wrong in one ends all, and other data are refused", "[slow]") {
  if (!mpirun_is_there()) return;
  Shell shell;
  shell.started = {fit_program()};
  shell.before = as_processes(2);
  const Result failed = shell.run({"failed", "fail"});
  CAPTURE(failed.err);
  CHECK(failed.code == 3);
  CHECK(count_of("error: ", failed.err) == 1);
  CHECK_THAT(failed.err, containing("process 2 of 2 on ") && containing("the third batch is bad"));
  const Result differ = shell.run({"differ", "differ"});
  CAPTURE(differ.err);
  CHECK(differ.code == 3);
  CHECK(count_of("error: ", differ.err) == 1);
  CHECK_THAT(differ.err, containing("process 2 of 2: fit: the loader has 90 examples") &&
                             containing("that of process 1 has 100 examples"));
  CHECK(!io::exists(shell.scratch / "differ"));
}
