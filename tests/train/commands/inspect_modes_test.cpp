// heed inspect with several steps, runs and layers: watching, maps on the way, side by side, the logit lens.
#include <atomic>
#include <thread>

#include "heed/core/io/json.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/shell.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/commands/inspect_watch.h"
#include "heed/train/run/run_lock.h"

using namespace heed;

namespace {

/// A small trained run in the shell's folder, one of its checkpoints each three steps.
void train_small(const Shell& shell, const std::string& name, Settings more = {}) {
  more.emplace_back("train.keep_checkpoints", "9");
  train_session(shell.scratch / name, tiny(more));
}

}  // namespace

TEST_CASE("watch: shows the newest checkpoint and each newer one until the training ends") {
  const Scratch scratch;
  const Path run = scratch / "run";
  io::make_directories(run);
  write_checkpoint(run, 3, {{"a", "x"}});
  auto lock = std::make_unique<RunLock>(run, "test");
  std::vector<int64_t> shown;
  std::thread trainer;
  const int64_t count = watch_checkpoints(
      run,
      [&](int64_t step) {
        shown.push_back(step);
        if (step == 3) write_checkpoint(run, 6, {{"a", "y"}});
        if (step == 6) {  // while it waits
          trainer = std::thread([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(60));
            write_checkpoint(run, 9, {{"a", "z"}});
            lock.reset();
          });
        }
      },
      [] { return false; }, 0.01);
  trainer.join();
  CHECK(shown == std::vector<int64_t>{3, 6, 9});
  CHECK(count == 3);
}

TEST_CASE("watch: a checkpoint that is pruned while it is shown is left out, other faults are told") {
  const Scratch scratch;
  const Path run = scratch / "run";
  io::make_directories(run);
  write_checkpoint(run, 3, {{"a", "x"}});
  std::vector<int64_t> shown;
  watch_checkpoints(
      run,
      [&](int64_t step) {
        if (step == 3) {
          write_checkpoint(run, 6, {{"a", "y"}});
          drop_checkpoints_after(run, 0);
          write_checkpoint(run, 6, {{"a", "y"}});
          fail(Fault::file, "gone");
        }
        shown.push_back(step);
      },
      [] { return false; }, 0.01);
  CHECK(shown == std::vector<int64_t>{6});
  CHECK_THROWS_WITH(watch_checkpoints(
                        run, [](int64_t) { fail("no maps"); }, [] { return false; }, 0.01),
                    "no maps");
  CHECK(watch_checkpoints(
            run, [](int64_t) {}, [] { return true; }, 0.01) == 0);
  CHECK_THROWS_WITH(watch_checkpoints(
                        scratch / "none", [](int64_t) {}, [] { return false; }, 0.01),
                    containing("nobody trains it"));
}

TEST_CASE("heed inspect: --watch draws the head as plain text where there is no terminal") {
  const Shell shell;
  train_small(shell, "run");
  const Result done =
      shell.run({"inspect", "run", "Anna reads.", "--watch", "--kind", "cross", "--head", "1"});
  CHECK(done.code == 0);
  CHECK(done.out.find("step 12, loss ") == 0);
  CHECK(done.out.find("cross, head 1") != std::string::npos);
  CHECK(done.out.find('\033') == std::string::npos);
  CHECK(done.out.find("nobody trains this run any more") != std::string::npos);
}

TEST_CASE("heed inspect: --through-training writes the page and the animation") {
  const Shell shell;
  train_small(shell, "run", {{"train.maps_every", "4"}});
  const Result done = shell.run({"inspect", "run", "--through-training"});
  CHECK(done.err == "");
  CHECK(done.code == 0);
  CHECK(done.out.find("4 steps, 0 to 12") != std::string::npos);
  CHECK(done.out.find("cross 0, head 1") != std::string::npos);
  CHECK(io::size(shell.scratch / "run/inspect/through-training.html") > 10000);
  CHECK(io::size(shell.scratch / "run/inspect/through-training.svg") > 2000);
  CHECK(shell.run({"inspect", "run", "Anna.", "--through-training"}).err.find("--maps-of") !=
        std::string::npos);
  train_small(shell, "plain");
  CHECK(shell.run({"inspect", "plain", "--through-training"}).err.find("--maps-every") != std::string::npos);
}

TEST_CASE("heed inspect: several runs side by side, other tokens are refused with the reason") {
  const Shell shell;
  train_small(shell, "one");
  train_small(shell, "two", {{"train.seed", "2"}});
  const Result done = shell.run({"inspect", "one", "two"});
  CHECK(done.err == "");
  CHECK(done.code == 0);
  CHECK_THAT(done.out, Catch::Matchers::Matches("[^]*\n  one +two +distance in nats[^]*"));
  CHECK(done.out.find("cross 0.1") != std::string::npos);
  CHECK(io::size(shell.scratch / "one/inspect/side-by-side.html") > 10000);
  const Result other = shell.run({"inspect", "one", "two", "Anna reads. ||| Anna legge.", "--out", "both"});
  CHECK(other.code == 0);
  CHECK(io::size(shell.scratch / "both/side-by-side.html") > 10000);
  train_small(shell, "small", {{"data.vocab_size", "40"}});  // words that one has and the other has not
  const Result refused = shell.run({"inspect", "one", "small"});
  CHECK(refused.code != 0);
  CHECK(refused.err.find("cannot be laid side by side: in ") != std::string::npos);
  CHECK(shell.run({"inspect", "one", "two", "--watch"}).err.find("is for one run") != std::string::npos);
  CHECK(shell.run({"inspect", "one", "nothing here", "two"}).err.find("is not the folder of a run") !=
        std::string::npos);
}

TEST_CASE("heed compare: its page leads to the heads side by side") {
  const Shell shell;
  for (const char* name : {"one", "two"}) {
    train_small(shell, name, {{"train.seed", name == std::string("one") ? "1" : "2"}});
    io::write(shell.scratch / name / "scores.json", "{\"step\":12,\"of\":12,\"bleu\":1.5}\n");
    io::write(shell.scratch / name / "manifest.json",
              "{\"format\":3,\"seed\":1,\"parameters\":9,\"estimate\":{\"flops_a_step\":1}}\n");
  }
  const Result done = shell.run({"compare", "one", "two"});
  CHECK(done.err == "  page        laying the heads of all side by side\n");
  CHECK(done.code == 0);
  CHECK(io::read(shell.scratch / "runs/compare/compare.html").find("<a href=\"maps.html\">") !=
        std::string::npos);
  CHECK(io::read(shell.scratch / "runs/compare/maps.html").find("\"matches\":[[{\"one\":[0,0]") !=
        std::string::npos);
}

TEST_CASE("heed inspect: --logit-lens gives a table, a page and JSON whose last layer is the model") {
  const Shell shell;
  train_small(shell, "run", {{"model.layers", "2"}});
  const Result table = shell.run({"inspect", "run", "Anna reads.", "--logit-lens"});
  CHECK(table.err == "");
  CHECK(table.code == 0);
  CHECK(table.out.find("embedding") != std::string::npos);
  CHECK(io::size(shell.scratch / "run/inspect/logit-lens.html") > 5000);
  const Result json = shell.run({"inspect", "run", "Anna reads.", "--logit-lens", "--json"});
  const Json lens = parse_json(json.out, "lens");
  CHECK(lens.at("layers").list().size() == 3);
  // Greedy decoding takes the most probable word, so the last layer says what was written.
  const Json::List& last = lens.at("cells").list()[2].list();
  const Json::List& next = lens.at("next").list();
  REQUIRE(last.size() == next.size());
  int64_t same = 0;
  for (size_t i = 0; i < last.size(); ++i)
    same += last[i].at("best").list()[0].at("token").text() == next[i].text() ? 1 : 0;
  CHECK(same >= static_cast<int64_t>(last.size()) - 1);  // decoding forbids [UNK], and stops at its limit
  CHECK(shell.run({"inspect", "run", "--json"}).err.find("--json is for --logit-lens") != std::string::npos);
}
