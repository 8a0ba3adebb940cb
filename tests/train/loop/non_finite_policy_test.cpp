// Steps that are not finite: buffers put back, steps counted, and when the run stops all the same.
#include "heed/train/loop/non_finite_policy.h"

#include <cmath>

#include "heed/core/distributed/single_process.h"
#include "heed/core/settings_in_errors.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/loop/find_non_finite.h"

using namespace heed;

namespace {

/// A guard and what it works on; routing attention has buffers.
struct Guarded {
  explicit Guarded(const Settings& more) : config(tiny(more)) {
    config.set("attention.encoder", "routing", "");
    config.task->load(config, {}, [](const std::string&) {});
    model = new_model(config, rng);
    optimizer = std::make_unique<Optimizer>(*model, config.train.optimizer);
    progress.quiet = true;
    checkpoints.emplace(config, folder, *model, *optimizer, rng, single_process(), state, log, std::nullopt);
    guard.emplace(config.train, *model, *optimizer, single_process(), state, log, progress, *checkpoints);
    state.step = 4;
  }
  /// What the guard says of a step with this loss, or nothing where it goes on.
  std::string failed(double loss, const std::string& bad = "first bad value in x (nan)") {
    try {
      guard->failed({.loss = loss, .norm = NAN, .skipped = true}, bad);
      return {};
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::numeric);
      return error.what();
    }
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
  std::optional<CheckpointManager> checkpoints;
  std::optional<NonFinitePolicy> guard;
};

}  // namespace

TEST_CASE("non-finite guard: buffers are put back, written or replaced") {
  Guarded one(Settings{{"train.on_nan", "skip"}});
  const std::vector<Named> all = buffers(*one.model);
  REQUIRE(!all.empty());
  Tensor& buffer = *all[0].tensor;
  const std::vector<double> before = buffer.to_doubles();
  one.guard->keep_buffers();
  buffer.data<float>()[0] = NAN;
  CHECK_THAT(find_bad_buffer(*one.model), containing(all[0].name) && containing("a buffer"));
  one.guard->restore_buffers();
  CHECK(buffer.to_doubles() == before);
  one.guard->keep_buffers();
  buffer = Tensor::full(buffer.shape(), 7, buffer.dtype(), buffer.device());
  one.guard->restore_buffers();
  CHECK(buffer.to_doubles() == before);
}

TEST_CASE("non-finite guard: without skipping the step ends the run, and says where") {
  const SettingsSourceScope program(SettingsSource::command_line);
  Guarded one(Settings{});
  CHECK_THAT(one.failed(NAN), containing("the loss became nan at step 4: first bad value in x (nan).") &&
                                  containing("No checkpoint was there yet.") && containing("--on-nan skip"));
  CHECK_THAT(one.failed(1.5), containing("the gradient norm became nan at step 4"));
  CHECK_THAT(one.failed(NAN, ""), containing("suspect the machine's memory"));
  CHECK(one.state.skipped == 0);
}

TEST_CASE("non-finite guard: skipped steps are counted, and so many in a row are too many") {
  Guarded one(Settings{{"train.on_nan", "skip"}, {"train.skip_limit", "3"}});
  CHECK(one.failed(NAN).empty());
  CHECK(one.failed(NAN).empty());
  CHECK((one.state.skipped == 2 && one.state.skipped_in_a_row == 2));
  one.guard->passed();
  CHECK((one.state.skipped == 2 && one.state.skipped_in_a_row == 0));
  CHECK(one.failed(NAN).empty());
  CHECK(one.failed(NAN).empty());
  CHECK_THAT(one.failed(NAN), containing("3 steps in a row were left out (train.skip_limit)"));
}

TEST_CASE("non-finite guard: skipping does not help weights that are not finite") {
  Guarded one(Settings{{"train.on_nan", "skip"}});
  one.optimizer->leaves()[0].data<float>()[0] = NAN;
  CHECK_THAT(one.failed(NAN), containing("The weights themselves are not finite"));
}
