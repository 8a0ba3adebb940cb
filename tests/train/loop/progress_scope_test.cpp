// Counted work is shown to the scope of its thread, by the outermost loop, and each task counts what it
// scores.
#include "heed/train/loop/progress_scope.h"

#include <thread>

#include "heed/autograd/tape.h"
#include "heed/tests/catch.h"
#include "heed/train/tasks/task.h"

using namespace heed;

namespace {

/// The shares that `work` shows, in order.
std::vector<double> shares_of(const std::function<void()>& work) {
  std::vector<double> shares;
  const ProgressScope scope([&](const Progress::Work& now) { shares.push_back(now.share); });
  work();
  return shares;
}

}  // namespace

TEST_CASE("progress scope: a loop shows its share, and one inside it or in another thread shows nothing") {
  CHECK(shares_of([] {
          CountedWork outer(4);
          outer.add();
          CountedWork inner(2);
          inner.add();
          outer.add(3);
          outer.add();  // more than was said
        }) == std::vector<double>{0.25, 1, 1});
  CHECK(shares_of([] {
          for (int i = 0; i < 2; ++i) {
            CountedWork loop(2);
            loop.add();
          }
        }) == std::vector<double>{0.5, 0.5});
  CHECK(shares_of([] {
          std::thread([] {
            CountedWork elsewhere(2);
            elsewhere.add();
          }).join();
        }).empty());
  CHECK(shares_of([] { CountedWork(0).add(); }) == std::vector<double>{1});
  CountedWork nobody(3);
  nobody.add();
}

TEST_CASE("progress scope: the inner scope shows, and the outer one again after it") {
  std::vector<double> outer, inner;
  const ProgressScope one([&](const Progress::Work& now) { outer.push_back(now.share); });
  {
    const ProgressScope two([&](const Progress::Work& now) { inner.push_back(now.share); });
    CountedWork(2).add();
  }
  CountedWork(4).add();
  CHECK(inner == std::vector<double>{0.5});
  CHECK(outer == std::vector<double>{0.25});
}

TEST_CASE("progress scope: validation and test of every task count to their ends") {
  const std::string name =
      GENERATE("translate", "lm", "mnist", "recall", "lra-listops", "lra-text", "lra-image");
  CAPTURE(name);
  Config config = make_config(name);
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"model.d_model", "8"}, {"model.heads", "2"}, {"model.layers", "1"}})
    config.set(key, value, "");
  for (const auto& [key, value] : config.task->small_data())
    config.set("data." + key, std::to_string(value), "");
  config.task->load(config, {}, [](const std::string&) {});
  Rng rng(5);
  const auto model = new_model(config, rng);
  const NoGrad no_tape;
  for (const bool validates : {true, false}) {
    CAPTURE(validates);
    const std::vector<double> shares = shares_of([&] {
      if (validates)
        config.task->validate(*model);
      else
        config.task->test(*model, config.decode);
    });
    REQUIRE(!shares.empty());
    CHECK(*std::max_element(shares.begin(), shares.end()) == 1);
    CHECK(*std::min_element(shares.begin(), shares.end()) > 0);
  }
}
