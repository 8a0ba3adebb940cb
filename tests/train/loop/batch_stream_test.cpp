// The stream of batches: over epochs, from any step on, made one by one or shared by processes.
#include "heed/train/loop/batch_stream.h"

#include "heed/core/distributed/single_process.h"
#include "heed/tests/catch.h"
#include "heed/tests/thread_group.h"
#include "heed/tests/train/small_run.h"

using namespace heed;

namespace {

Config loaded(const Settings& more = {}) {
  Config config = tiny(more);
  config.task->load(config, {}, [](const std::string&) {});
  return config;
}

/// The numbers of all tensors of a step.
std::vector<double> numbers_of(StepBatches batches) {
  std::vector<double> all;
  for (int64_t i = 0; i < batches.count(); ++i) {
    for (const Tensor& x : batches.at(i).tensors) {
      for (const double one : x.to_doubles()) all.push_back(one);
    }
  }
  return all;
}

std::vector<std::vector<double>> steps_of(BatchStream& stream, int64_t steps) {
  std::vector<std::vector<double>> all;
  for (int64_t step = 0; step < steps; ++step) all.push_back(numbers_of(stream.next(steps - step)));
  return all;
}

}  // namespace

TEST_CASE("batch stream: it goes on where a state stands, over the ends of epochs") {
  Config config = loaded();
  RunState state;
  BatchStream whole(config, single_process(), state);
  std::vector<RunState> behind{state};
  std::vector<std::vector<double>> all;
  for (int64_t step = 0; step < 15; ++step) {
    all.push_back(numbers_of(whole.next(15 - step)));
    behind.push_back(state);
  }
  CHECK(state.epoch >= 2);
  CHECK(all[0] != all[1]);
  for (const size_t from : {1, 5, 8, 14}) {
    RunState there = behind[from];
    Config again = loaded();
    BatchStream rest(again, single_process(), there);
    CHECK((steps_of(rest, static_cast<int64_t>(15 - from)) ==
           std::vector(all.begin() + static_cast<std::ptrdiff_t>(from), all.end())));
    CHECK((there.epoch == state.epoch && there.position == state.position));
  }
}

TEST_CASE("batch stream: batches made one by one are the same, in any order of asking") {
  // One batch a step is held; the batches of two such steps are those of one step of two.
  Config single = loaded({{"train.grad_accumulation", "1"}}), paired = loaded();
  RunState of_single, of_paired;
  BatchStream held(single, single_process(), of_single), made(paired, single_process(), of_paired);
  for (int step = 0; step < 9; ++step) {
    const std::vector<double> first = numbers_of(held.next(1)), second = numbers_of(held.next(1));
    StepBatches two = made.next(1);
    REQUIRE(two.count() == 2);
    CHECK(numbers_of(StepBatches({two.at(1)})) == second);
    CHECK(numbers_of(StepBatches({two.at(0)})) == first);
  }
  CHECK((of_single.epoch == of_paired.epoch && of_single.position == of_paired.position));
}

TEST_CASE("batch stream: each process gets its rows of every batch") {
  std::vector<int64_t> rows(3);
  std::vector<double> weights(3), wholes(3);
  as_members(3, [&](ProcessGroup& group) {
    Config config = loaded({{"train.grad_accumulation", "1"}});
    RunState state;
    BatchStream stream(config, group, state);
    StepBatches batches = stream.next(1);
    const Batch batch = batches.at(0);
    const auto me = static_cast<size_t>(group.rank());
    rows[me] = batch.rows.count;
    weights[me] = batch.weight;
    wholes[me] = batch.whole_weight;
  });
  Config config = loaded({{"train.grad_accumulation", "1"}});
  RunState state;
  BatchStream stream(config, single_process(), state);
  const Batch whole = stream.next(1).at(0);
  CHECK(rows[0] + rows[1] + rows[2] == whole.tensors[0].extent(0));
  CHECK(weights[0] + weights[1] + weights[2] == whole.weight);
  for (const double one : wholes) CHECK(one == whole.weight);
}
