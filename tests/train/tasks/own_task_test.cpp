// The task of docs/how-to/own-task.md learns, and its batches are what the page says.
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/loop/trainer.h"
#include "heed/train/tasks/task.h"

namespace heed::task {
TaskEntry majority();  // compiled out of the page
}

using namespace heed;

TEST_CASE("own_task: the page's task trains as those of the program do") {
  Config config = make_config("recall");
  config.task = task::majority().make();
  config.task_name = task::majority().name;
  config.set("train.max_steps", "80", "");
  config.task->load(config, {}, [](const std::string&) {});
  REQUIRE(config.task->plan(3) == 100);
  const Batch batch = config.task->batch(7);
  REQUIRE(batch.tensors.size() == config.task->tensor_names().size());
  REQUIRE(batch.tensors[0].shape() == Shape{32, 15});
  const std::vector<double> bits = batch.tensors[0].to_doubles(), targets = batch.tensors[1].to_doubles();
  for (size_t row = 0; row < targets.size(); ++row) {
    double ones = 0;
    for (size_t i = 0; i < 15; ++i) ones += bits[15 * row + i];
    CHECK(targets[row] == (ones > 7 ? 1 : 0));
  }
  config.task->batch(8);
  CHECK(config.task->batch(7).tensors[0].to_doubles() == bits);  // whatever was asked before
  CHECK(config.task->shard(7, {.part = 1, .parts = 2}).tensors[1].to_doubles() ==
        std::vector<double>(targets.begin() + 16, targets.end()));

  const Scratch scratch;
  RunFolder folder = RunFolder::create({.out = scratch.path(), .name = "run"});
  Progress progress;
  progress.quiet = true;
  Trainer trainer(config, folder, std::nullopt, progress);
  trainer.run();
  CHECK(config.task->test(trainer.model(), config.decode).scores.first() > 0.8);
  std::string caption;
  const std::vector<MapView> maps = config.task->maps(trainer.model(), "", caption);
  REQUIRE(maps.size() == static_cast<size_t>(config.model.layers));
  CHECK(maps[0].query_tokens.size() == 15);
}
