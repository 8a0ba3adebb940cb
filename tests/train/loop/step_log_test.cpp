// The time left on the line of progress: steps, the validations to come, and what follows the last step.
#include "heed/train/loop/step_log.h"

#include "heed/core/distributed/single_process.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

/// What `work` prints to standard error.
template <class Work>
std::string printed(const Work& work) {
  const Scratch scratch;
  const int before = ::dup(STDERR_FILENO);
  const int file = ::open((scratch / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  REQUIRE(::dup2(file, STDERR_FILENO) >= 0);
  work();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(file);
  return io::read(scratch / "err");
}

/// The line after step `at` of 10 quick steps; validations come every 4 steps, of which `seen` took 50 s
/// each.
std::string line_after(int64_t at, int seen, const StepLog::EvaluationTimes& beside) {
  return printed([&] {
    Progress progress;
    RunState state{.step = at - 1};
    const RunFolder none = RunFolder::none();
    StepLog log(none, single_process(), progress, state);
    log.begin(10, beside);
    for (int i = 0; i < seen; ++i) log.validation({.list = {{"loss", 1.0}}}, 50);
    state.step = at;
    log.step({.loss = 1, .norm = 1, .tokens = 1});
    log.show();
  });
}

}  // namespace

TEST_CASE("step log: the time left has the validations to come and the test after the last step") {
  const StepLog::EvaluationTimes beside{.validate_every = 4, .validation_seconds = 100, .test_seconds = 1000};
  CHECK_THAT(line_after(1, 0, beside), containing("eta 21:40"));  // at 4, 8 and 10
  CHECK_THAT(line_after(4, 0, beside), containing("eta 20:00"));  // that at 4 is being done
  CHECK_THAT(line_after(10, 0, beside), containing("eta 16:40"));
  CHECK_THAT(line_after(1, 0, {}), containing("eta 0:00"));
  CHECK_THAT(line_after(9, 1, {.validate_every = 4, .validation_seconds = 100}), containing("eta 0:50"));
}
