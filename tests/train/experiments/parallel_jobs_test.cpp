// Several trainings at once: how many, their threads, their lines, and that each is as it would be alone.
#include "heed/train/experiments/parallel_jobs.h"

#include <csignal>

#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/shell.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/experiments/run_progress.h"
#include "heed/train/run/checkpoint_folder.h"

using namespace heed;

namespace {

std::vector<std::string> compare(const std::vector<std::string>& more) {
  return with({"compare", "recall", "--d-model", "16", "--heads", "2", "--d-ff", "16", "--layers", "1",
               "--batch-size", "16", "--threads", "2"},
              more);
}

/// The finished or unfinished runs in a folder of compare, by their names.
std::vector<Path> runs_in(const Path& folder) {
  std::vector<Path> out;
  if (!io::exists(folder)) return out;
  for (const Path& name : io::list(folder)) {
    if (!name.native().starts_with('.')) out.push_back(name);
  }
  return out;
}

}  // namespace

TEST_CASE("jobs: a number from 1 to 1000, or auto") {
  CHECK(parse_jobs("1") == 1);
  CHECK(parse_jobs("1000") == 1000);
  CHECK(parse_jobs("auto") == 0);
  for (const char* bad : {"0", "-1", "1001", "99999999999999999999", "two", "", "2.5", "2 ", "1e400"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH(parse_jobs(bad), containing("from 1 to 1000") && containing("auto"));
  }
}

TEST_CASE("jobs: as many as fit whichever run at once, and one at least") {
  CHECK(jobs_that_fit({10, 10, 10}, 25, 3) == 2);
  CHECK(jobs_that_fit({1, 1, 20, 1}, 25, 4) == 4);
  CHECK(jobs_that_fit({1, 20, 1, 10}, 25, 4) == 1);  // 20 and 10 might meet
  CHECK(jobs_that_fit({1, 1, 1, 1}, 25, 2) == 2);
  CHECK(jobs_that_fit({30, 1}, 25, 2) == 1);
  CHECK(jobs_that_fit({0, 0}, 0, 2) == 2);
}

TEST_CASE("jobs: threads are divided, and one job has the options as they are") {
  using Words = std::vector<std::string>;
  const int before = threads();
  set_threads(8);
  CHECK(machine_options_of_job({"--device", "cpu"}, 1) == Words{"--device", "cpu"});
  CHECK(machine_options_of_job({"--device", "cpu"}, 3) == Words{"--device", "cpu", "--threads", "2"});
  CHECK(machine_options_of_job({"--threads", "8", "--memory", "2G"}, 4) ==
        Words{"--threads", "2", "--memory", "2G"});
  CHECK(machine_options_of_job({}, 20) == Words{"--threads", "1"});
  set_threads(before);
}

TEST_CASE("jobs: a line has the name, the steps and the time left, in fewer than 80 columns") {
  RunProgress run{.steps = {.step = 120000, .total = 500000, .loss = 1.25, .norm = 3}};
  run.steps.seconds_left = 7384;
  run.steps.take_score(110000, "accuracy", 0.5);
  run.steps.take_score(110000, "loss", 1.5);
  run.steps.tokens_per_second = 12345;
  const std::string name = "12/35 fastmax:p=2,dropout=1d, seed 100";
  const std::string line = run_line(name, run, 0, 80);
  CAPTURE(line);
  CHECK(line.size() < 80);
  CHECK_THAT(line, containing("  12/35 fastmax:p=2,drop") && containing("step 120000/500000") &&
                       containing("eta 2:03:04"));
  CHECK_THAT(run_line("1/2 softmax, seed 1", {}, 0, 80),
             containing("softmax, seed 1") && containing("begins"));
  RunProgress scoring{.seconds = 100, .test_seconds = 40, .is_testing = true};
  const std::string test = run_line("1/2 softmax, seed 1", scoring, seconds_now() - 10, 80);
  CHECK(test.size() < 80);
  CHECK_THAT(test, containing("softmax, seed 1") && containing("test") && containing("25%") &&
                       containing("eta 0:30"));
}

TEST_CASE("compare --jobs: two at once have the bits of one after the other") {
  const Shell shell;
  const std::vector<std::string> words{"--attention", "softmax,fastmax:p=1", "--steps",
                                       "12",          "--validate-every",    "4"};
  REQUIRE(shell.run(compare(with(words, {"--name", "alone"}))).code == 0);
  const Result both = shell.run(compare(with(words, {"--name", "both", "--jobs", "2"})));
  CAPTURE(both.err);
  REQUIRE(both.code == 0);
  CHECK_THAT(both.err, containing("jobs        2 at once; 1 thread each"));
  CHECK_THAT(both.err, containing("1 of 2: softmax, seed 1: accuracy") &&
                           containing("2 of 2: fastmax:p=1, seed 1: accuracy"));
  const Path alone = shell.scratch / "runs/alone/runs", together = shell.scratch / "runs/both/runs";
  const std::vector<Path> runs = runs_in(alone);
  REQUIRE(runs.size() == 2);
  CHECK(runs_in(together) == runs);
  for (const Path& run : runs) {
    check_same(alone / run, together / run, 12);
    CHECK(io::read(alone / run / "scores.json") == io::read(together / run / "scores.json"));
  }
}

TEST_CASE("compare --jobs: a run that fails is named and stops no other, and too many jobs become fewer") {
  const Shell shell;
  const std::vector<std::string> words{
      "--attention", "softmax,linear,fastmax:p=1", "--steps", "4", "--jobs", "3"};
  const Result planned = shell.run(compare(with(words, {"--budget", "1s", "--steps", "1000000"})));
  REQUIRE(planned.code == 0);
  CHECK_THAT(planned.err, containing("2 at once instead of 3: there are 2 threads; 1 thread each"));
  const Path folder = shell.scratch / "runs/compare-recall/runs";
  // What does not fit alone does not fit beside another.
  const Result large = shell.run(compare(with(words, {"--memory", "1M", "--name", "large", "--jobs", "2"})));
  CHECK(large.code == static_cast<int>(Fault::memory));
  CHECK_THAT(large.err, containing("1 at once instead of 2: ") &&
                            containing("are free for runs, and the largest takes more"));
  // A file in the place of a run's folder: that training cannot begin.
  Path taken;
  const Shell other;
  REQUIRE(other.run(compare(with(words, {"--quiet"}))).code == 0);
  for (const Path& run : runs_in(other.scratch / "runs/compare-recall/runs")) {
    if (run.native().starts_with("linear")) taken = run;
  }
  REQUIRE_FALSE(taken.empty());
  io::make_directories(folder);
  io::write(folder / taken, "in the way");
  const Result mixed = shell.run(compare(words));
  CAPTURE(mixed.err);
  CHECK(mixed.code != 0);
  CHECK_THAT(mixed.err, containing("failed      2 of 3: linear, seed 1: "));
  CHECK_THAT(mixed.err, containing("1 of 3: softmax, seed 1: accuracy") &&
                            containing("3 of 3: fastmax:p=1, seed 1: accuracy"));
}

TEST_CASE("compare --jobs: Ctrl-C stops and saves all, and the same command goes on") {
  const Shell shell;
  const auto words = compare(
      {"--attention", "softmax,linear", "--steps", "300", "--validate-every", "10", "--jobs", "auto"});
  const pid_t child = shell.start(words);
  const Path folder = shell.scratch / "runs/compare-recall/runs";
  const auto num_saved = [&] {
    int64_t count = 0;
    for (const Path& run : runs_in(folder)) count += list_checkpoints(folder / run).empty() ? 0 : 1;
    return count;
  };
  for (int i = 0; i < 1200 && num_saved() < 2; ++i) ::usleep(50000);
  REQUIRE(num_saved() == 2);
  ::kill(child, SIGINT);
  const Result stopped = shell.end(child);
  CAPTURE(stopped.err);
  CHECK(stopped.code == 130);
  CHECK_THAT(stopped.err, containing("stopped, and saved; run the same command again to continue"));
  std::vector<int64_t> kept;
  for (const Path& run : runs_in(folder)) {
    CHECK_FALSE(io::exists(folder / run / "scores.json"));
    kept.push_back(list_checkpoints(folder / run).back());
  }
  const Result again = shell.run(words);
  CAPTURE(again.err);
  CHECK(again.code == 0);
  CHECK_THAT(again.err, containing("softmax, seed 1: resumed") && containing("linear, seed 1: resumed"));
  size_t i = 0;
  for (const Path& run : runs_in(folder)) {
    CHECK(io::exists(folder / run / "scores.json"));
    CHECK(list_checkpoints(folder / run).back() == 300);
    CHECK(kept[i++] < 300);
  }
}

TEST_CASE("compare and reproduce --jobs: wrong use is named") {
  const Shell shell;
  for (const char* bad : {"0", "-1", "1001", "two"})
    check_refused(shell, compare({"--attention", "softmax,linear", "--jobs", bad}), 2,
                  {text("--jobs = '", bad, "'"), "from 1 to 1000", "auto"});
  check_refused(shell, {"reproduce", "fast-figure3", "--jobs", "2"}, 2,
                {"reproduce: --jobs is for tables whose cells are trained", "fast-figure3"});
}
