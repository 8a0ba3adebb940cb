// The task of docs/how-to/own-task.md learns, and its batches are what the page says.
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/config/config.h"
#include "heed/train/loop/trainer.h"
#include "heed/train/tasks/map_provider.h"
#include "heed/train/tasks/registry.h"
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
  const Evaluation scored = config.task->test(trainer.model(), config.decode);
  CHECK(scored.scores.first() > 0.8);
  // What the task does not write has a default.
  CHECK(scored.scores.list == config.task->validate(trainer.model()).list);
  REQUIRE(scored.notes.size() == 1);
  CHECK_THAT(scored.notes[0], containing("no test split"));
  CHECK(config.task->artifacts().empty());
  CHECK(config.task->metadata().empty());
  CHECK(tensor_name(config.task->tensor_names(), 1) == "tensor_1");
  CHECK(tensor_name({"ids", "targets"}, 1) == "targets");
  std::string caption;
  CHECK_THROWS_WITH(map_provider(*config.task).maps(trainer.model(), "", caption),
                    containing("gives no attention maps") && containing("MapProvider"));
}

namespace {

/// The page's task, with validations that give nothing.
class Scoreless final : public Task {
 public:
  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override {
    return inner_->model(config, rng);
  }
  int64_t plan(int64_t epoch) override { return inner_->plan(epoch); }
  Batch batch(int64_t position) const override { return inner_->batch(position); }
  Tensor loss(Module& model, const Batch& batch, const ForwardContext& context) const override {
    return inner_->loss(model, batch, context);
  }
  Scores validate(Module&) const override { return {}; }

 private:
  std::unique_ptr<Task> inner_ = task::majority().make();
};

}  // namespace

TEST_CASE("own_task: five functions make a task, and a validation without a score is refused") {
  Config config = make_config("recall");
  config.task = std::make_unique<Scoreless>();
  config.task_name = "scoreless";
  config.set("train.max_steps", "2", "");
  const Scratch scratch;
  RunFolder folder = RunFolder::create({.out = scratch.path(), .name = "run"});
  Progress progress;
  progress.quiet = true;
  Trainer trainer(config, folder, std::nullopt, progress);
  CHECK_THROWS_WITH(trainer.run(), containing("task scoreless: validate() gave no score"));
}
