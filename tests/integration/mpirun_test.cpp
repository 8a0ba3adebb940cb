// The program under mpirun: several processes, one run.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "heed/tests/catch.h"
#include "heed/tests/integration/several_processes.h"
#include "heed/tests/train/shell.h"
#include "heed/train/run/checkpoint_folder.h"

using namespace heed;

namespace {

/// A translator of seconds; batches of so many target tokens a process.
std::vector<std::string> small(const std::string& name, const std::string& tokens) {
  return {"train",
          "translate",
          "--name",
          name,
          "--data.num_examples",
          "400",
          "--data.validation",
          "20",
          "--data.test_size",
          "8",
          "--bleu-pairs",
          "2",
          "--d-model",
          "32",
          "--heads",
          "2",
          "--d-ff",
          "32",
          "--layers",
          "1",
          "--dropout",
          "0.2",
          "--attention-dropout",
          "0.1",
          "--steps",
          "30",
          "--epochs",
          "0",
          "--batch-tokens",
          tokens,
          "--validate-every",
          "10",
          "--keep-checkpoints",
          "9",
          "--threads",
          "1"};
}

std::vector<std::string> operator+(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Waits until the run has a checkpoint.
void wait_for_checkpoint(const Path& run) {
  for (int i = 0; i < 3000 && (!io::exists(run / "ckpt") || list_checkpoints(run).empty()); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  REQUIRE(!list_checkpoints(run).empty());
}

std::vector<pid_t> children_of(pid_t process) {
  std::istringstream list(io::read(text("/proc/", process, "/task/", process, "/children")));
  std::vector<pid_t> out;
  for (pid_t child = 0; list >> child;) out.push_back(child);
  return out;
}

}  // namespace

TEST_CASE("mpirun: two processes give the losses of one with twice the batch, the same bits each time",
          "[slow]") {
  if (!mpirun_is_there()) return;
  Shell shell;
  shell.before = as_processes(2);
  for (const char* name : {"first", "second"}) {
    const Result result = shell.run(small(name, "150"));
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    CHECK(count_of("run folder", result.err) == 1);  // one speaks
    CHECK(count_of("2, which share each batch of 300 target tokens", result.err) == 1);
  }
  const std::vector<std::string> exact{"--precision", "f64"};
  REQUIRE(shell.run(small("exact", "150") + exact).code == 0);
  shell.before.clear();
  REQUIRE(shell.run(small("one", "300")).code == 0);
  REQUIRE(shell.run(small("exact-one", "300") + exact).code == 0);
  const Path runs = shell.scratch / "runs";
  CHECK(distance(runs / "first", runs / "one") < 1e-5);
  CHECK(distance(runs / "exact", runs / "exact-one") < 1e-10);
  CHECK((weights(runs / "first", 30) == weights(runs / "second", 30)));
  CHECK(io::read(runs / "first/config.toml") == io::read(runs / "one/config.toml"));
  CHECK(io::exists(runs / "first/report.html"));
  CHECK(io::exists(runs / "first/scores.json"));
}

TEST_CASE("mpirun: a stopped run is saved, and resumed by as many processes it ends with the same weights",
          "[slow]") {
  if (!mpirun_is_there()) return;
  Shell shell;
  shell.before = as_processes(2);
  const Path runs = shell.scratch / "runs";
  REQUIRE(shell.run(small("whole", "150") + std::vector<std::string>{"--checkpoint-every", "1"}).code == 0);
  const auto words = small("stopped", "150") + std::vector<std::string>{"--checkpoint-every", "1"};
  const pid_t mpirun = shell.start(words);
  wait_for_checkpoint(runs / "stopped");
  const std::vector<pid_t> ranks = children_of(mpirun);
  REQUIRE(ranks.size() == 2);
  ::kill(ranks[1], SIGTERM);  // one of them; all stop at the same step
  const Result stopped = shell.end(mpirun);
  CAPTURE(stopped.err);
  CHECK(stopped.code == 143);
  CHECK(count_of("and saved at step", stopped.err) == 1);
  const int64_t step = list_checkpoints(runs / "stopped").back();
  CHECK(step < 30);
  const Result resumed = shell.run({"resume", "runs/stopped"});
  CAPTURE(resumed.err);
  CHECK(resumed.code == 0);
  CHECK((weights(runs / "whole", 30) == weights(runs / "stopped", 30)));
}

TEST_CASE("mpirun: a process that dies ends the others, and the run goes on from its checkpoint with one",
          "[slow]") {
  if (!mpirun_is_there()) return;
  Shell shell;
  shell.before = as_processes(2);
  const Path run = shell.scratch / "runs/killed";
  const pid_t mpirun = shell.start(small("killed", "150") +
                                   std::vector<std::string>{"--checkpoint-every", "1", "--steps", "3000"});
  wait_for_checkpoint(run);
  const std::vector<pid_t> ranks = children_of(mpirun);
  REQUIRE(ranks.size() == 2);
  const auto began = std::chrono::steady_clock::now();
  ::kill(ranks[1], SIGKILL);
  CHECK(shell.end(mpirun).code != 0);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(30));
  shell.before.clear();
  const int64_t step = list_checkpoints(run).back();
  const Result resumed = shell.run({"resume", "runs/killed", "--steps", std::to_string(step + 3)});
  CAPTURE(resumed.err);
  CHECK(resumed.code == 0);
}

TEST_CASE("mpirun: SIGUSR1 to one process saves once, and all go on", "[slow]") {
  if (!mpirun_is_there()) return;
  Shell shell;
  shell.before = as_processes(2);
  const Path runs = shell.scratch / "runs";
  const pid_t mpirun = shell.start(
      small("asked", "150") + std::vector<std::string>{"--steps", "100000", "--validate-every", "100000"});
  const Path metrics = runs / "asked/metrics.jsonl";
  for (int i = 0; i < 3000 && (!io::exists(metrics) || io::size(metrics) == 0); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::vector<pid_t> ranks = children_of(mpirun);
  REQUIRE(ranks.size() == 2);
  CHECK(list_checkpoints(runs / "asked").empty());
  ::kill(ranks[1], SIGUSR1);
  wait_for_checkpoint(runs / "asked");
  ::kill(ranks[0], SIGTERM);
  const Result stopped = shell.end(mpirun);
  CAPTURE(stopped.err);
  CHECK(stopped.code == 143);
  CHECK(count_of("as SIGUSR1 asked; training continues", stopped.err) == 1);
}

TEST_CASE("mpirun: one that gives no sign of life is named, and the others end", "[slow]") {
  if (!mpirun_is_there()) return;
  Shell shell;
  shell.before = as_processes(3);
  for (const size_t stopped : {0, 2}) {
    const std::string name = text("silent", stopped);
    const pid_t mpirun =
        shell.start(small(name, "150") + std::vector<std::string>{"--checkpoint-every", "1", "--steps",
                                                                  "100000", "--collective-timeout", "2"});
    wait_for_checkpoint(shell.scratch / "runs" / name);
    const std::vector<pid_t> ranks = children_of(mpirun);
    REQUIRE(ranks.size() == 3);
    ::kill(ranks[stopped], SIGSTOP);  // mpirun does not look at that, and srun not at one that dies
    const Result result = shell.end(mpirun);
    CAPTURE(result.err);
    CHECK(result.code == 8);
    CHECK(count_of("error: ", result.err) == 1);
    CHECK(count_of(text(": process ", stopped + 1, " of 3 gave no sign of life for 2 s"), result.err) == 1);
  }
}

TEST_CASE("mpirun: what goes wrong is said once, with the code of one process", "[slow]") {
  if (!mpirun_is_there()) return;
  Shell shell;
  shell.before = as_processes(2);
  int runs = 0;
  const auto check = [&](const Result& result) {
    CAPTURE(result.err);
    CHECK(count_of("error: ", result.err) == 1);
    return result;
  };
  const auto with = [&](const std::vector<std::string>& more) {
    return check(shell.run(small(text("run", ++runs), "150") + more));
  };
  const Result bad = check(shell.run_with_fault("gradient@2", small(text("run", ++runs), "150")));
  CHECK(bad.code == 4);
  CHECK(bad.err.find("process 2 of 2 on ") != std::string::npos);
  CHECK(with({"--data", "nowhere.tsv"}).code == 5);
  CHECK(with({"--lr", "fast"}).code == 2);
  CHECK(with({"--device", "quantum"}).code == 2);
  CHECK(runs == 4);
  CHECK(!io::exists(shell.scratch / "runs/run2"));  // what failed before its first step leaves nothing
  const Result refused = shell.run({"compare", "mnist", "--attention", "softmax,linear"});
  CHECK(refused.code == 2);
  CHECK(count_of("is the work of one process, but mpirun started 2", refused.err) == 1);
  CHECK(shell.run({"env"}).code == 0);
}

TEST_CASE("mpirun: what goes wrong is said though the process that says it comes last", "[slow]") {
  if (!mpirun_is_there()) return;
  Shell shell;
  shell.before = as_processes(2);
  for (const char* word : {"sh", "-c", "test $OMPI_COMM_WORLD_RANK = 1 || sleep 1; exec \"$@\"", "late"})
    shell.before.emplace_back(word);
  const Result result = shell.run(small("late", "150") + std::vector<std::string>{"--lr", "fast"});
  CAPTURE(result.err);
  CHECK(result.code == 2);
  CHECK(count_of("error: ", result.err) == 1);
}

TEST_CASE("mpirun: where MPI cannot be had, processes are refused instead of sharing one folder") {
  Shell shell;
  shell.before = {"env", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1"};
  const Result left = shell.run({"compare", "mnist"});  // nothing ends it, so the first one did not say it
  CHECK(left.code == 2);
  CHECK(left.err.find("error: process 2 of 2: heed compare is the work of one process") == 0);
  shell.before.back() = "OMPI_COMM_WORLD_RANK=0";
  const Result refused = shell.run({"train", "mnist", "--dry-run"});
  CHECK(refused.code == 2);
  CHECK(refused.err.find("--dry-run is the work of one process, but mpirun started 2") != std::string::npos);
}
