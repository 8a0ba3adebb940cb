// Checkpoints of a run: which ones stay, which one is the best, and what is not saved.
#include "heed/train/loop/checkpoint_manager.h"

#include <cmath>

#include "heed/core/distributed/single_process.h"
#include "heed/core/io/safetensors.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"

using namespace heed;

namespace {

/// What a manager works on.
struct Parts {
  explicit Parts(const Settings& more = {}) : config(tiny(more)) {
    config.task->load(config, {}, [](const std::string&) {});
    io::write(folder.config(), to_toml(config));
    model = new_model(config, rng);
    rng.advance();
    optimizer = std::make_unique<Optimizer>(*model, config.train.optimizer);
    progress.quiet = true;
  }
  CheckpointManager manager(const std::optional<Checkpoint>& resume = std::nullopt) {
    return {config, folder, *model, *optimizer, rng, single_process(), state, log, resume};
  }
  /// Pretends that so many steps are done and that `best` is the best of them.
  void go_to(int64_t step, int64_t best) {
    while (state.step < step) {
      ++state.step;
      state.position += config.train.grad_accumulation;
      rng.advance();
    }
    state.validated = step;
    state.best_step = best;
    state.best = Scores{.list = {{"loss", 1}}};
    state.without_better = step - best;
  }

  Scratch scratch;
  Config config;
  RunFolder folder = RunFolder::create({.out = scratch.path(), .name = "run", .command = "test"});
  Rng rng{3};
  std::unique_ptr<Module> model;
  std::unique_ptr<Optimizer> optimizer;
  Progress progress;
  RunState state;
  StepLog log{folder, single_process(), progress, state};
};

/// A model of so many tensors, of one number each.
struct ManyTensors final : Module {
  explicit ManyTensors(int64_t count) {
    for (int64_t i = 0; i < count; ++i) list.push_back(leaf(Tensor::zeros(Shape{1}, DType::f32)));
  }
  void fields(Fields& f) override {
    for (size_t i = 0; i < list.size(); ++i)
      f(text("decoder.blocks.", i, ".attention.query_projection.weight").c_str(), list[i]);
  }
  std::vector<Tensor> list;
};

}  // namespace

TEST_CASE("checkpoints: a model of more tensors than one can hold is refused before it is trained") {
  ManyTensors fits(max_tensors), too_many(max_tensors + 1);
  CHECK_NOTHROW(check_savable(fits));
  CHECK_NOTHROW(load_bytes(fits, save_bytes(fits)));
  CHECK_THROWS_WITH(check_savable(too_many), containing("the model has 32769 tensors") &&
                                                 containing("at most 32768") && containing("fewer layers"));
}

TEST_CASE("checkpoints: the last ones and the best are kept") {
  Parts parts(Settings{{"train.keep_checkpoints", "2"}});
  CheckpointManager manager = parts.manager();
  CHECK(manager.saved() == -1);
  CHECK(manager.last_good() == " No checkpoint was there yet.");
  for (const int64_t step : {1, 2, 3, 4, 5}) {
    parts.go_to(step, std::min<int64_t>(step, 2));
    manager.save();
    CHECK(manager.saved() == step);
  }
  const Path run = parts.folder.path();
  CHECK(list_checkpoints(run) == std::vector<int64_t>{2, 4, 5});
  CHECK(best_step(run) == std::optional<int64_t>(2));
  CHECK(manager.last_good() == " Last good: step_000005.");
  manager.mark_best();
  CHECK(best_step(run) == std::optional<int64_t>(5));
}

TEST_CASE("checkpoints: a run that goes on from one drops those after it") {
  Parts parts(Settings{{"train.keep_checkpoints", "9"}});
  {
    CheckpointManager manager = parts.manager();
    for (const int64_t step : {1, 2, 3}) {
      parts.go_to(step, step);
      manager.save();
    }
  }
  const Path run = parts.folder.path();
  for (const Tensor& leaf : parts.optimizer->leaves()) leaf.data<float>()[0] += 1;
  const float moved = parts.optimizer->leaves()[0].data<float>()[0];
  CheckpointManager manager = parts.manager(open_checkpoint(run, "2"));
  CHECK(parts.state.step == 2);
  CHECK(parts.rng.tick() == 3);
  CHECK(parts.optimizer->leaves()[0].data<float>()[0] != moved);
  CHECK(manager.saved() == 2);
  CHECK(list_checkpoints(run) == std::vector<int64_t>{1, 2, 3});
  manager.truncate();
  CHECK(list_checkpoints(run) == std::vector<int64_t>{1, 2});
  CHECK(best_step(run) == std::optional<int64_t>(2));
}

TEST_CASE("checkpoints: weights that are not finite are not saved, and named") {
  Parts parts;
  CheckpointManager manager = parts.manager();
  parts.go_to(1, 1);
  manager.save();
  parts.go_to(2, 1);
  parts.optimizer->leaves()[0].data<float>()[0] = INFINITY;
  CHECK(fault_of([&] { manager.save(); }) == Fault::numeric);
  CHECK_THROWS_WITH(manager.save(), containing("stopped being finite at step 2: first bad value in ") &&
                                        containing("Last good: step_000001."));
  CHECK(list_checkpoints(parts.folder.path()) == std::vector<int64_t>{1});
}
