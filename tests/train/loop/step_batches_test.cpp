// The batches of a step: weights and order.
#include "heed/train/loop/step_batches.h"

#include "heed/core/io/json.h"
#include "heed/core/launch.h"
#include "heed/tests/train/shell.h"
#include "heed/tests/train/small_presets.h"

using namespace heed;

namespace {

/// A batch of 100 numbers, each equal to `number`.
Batch numbered(int64_t number) {
  Batch batch;
  batch.tensors = {Tensor::full(Shape{100}, static_cast<double>(number), DType::f32, Device::cpu)};
  batch.weight = static_cast<double>(number + 1);
  batch.tokens = 10 * number;
  return batch;
}

}  // namespace

TEST_CASE("gradient accumulation: batches made one by one equal held ones") {
  StepBatches held({numbered(0), numbered(1), numbered(2)}), made({1, 2, 3}, numbered);
  for (StepBatches* batches : {&held, &made}) {
    REQUIRE(batches->count() == 3);
    batches->change_first([](Batch& batch) { batch.tensors[0] = numbered(7).tensors[0]; });
    CHECK(batches->weight() == 6);
    CHECK(batches->at(0).tensors[0].to_doubles()[0] == 7);
    for (int64_t i = 1; i < 3; ++i) {
      CHECK(batches->weight(i) == static_cast<double>(i + 1));
      CHECK(batches->at(i).tensors[0].to_doubles()[0] == static_cast<double>(i));
    }
    CHECK(batches->tokens() == 30);
  }
  CHECK(held.is_held());
  CHECK_THROWS_WITH(made.all(), containing("made one by one"));
  StepBatches wrong({1, 5}, numbered);
  CHECK_THROWS_WITH(wrong.at(1), containing("batch 2 weighs 2, and the task told 5"));
}

TEST_CASE("gradient accumulation: a share of a batch counts with the weight of the whole") {
  Batch share = numbered(3);
  share.whole_weight = 9;
  const StepBatches held({share, numbered(0)});
  CHECK(held.weight(0) == 9);
  CHECK(held.weight() == 10);
}

TEST_CASE("gradient accumulation: batches are copied into tensors that stay where they are") {
  StepBatches place({numbered(0), numbered(1)});
  const Tensor first = place.all()[0].tensors[0];
  StepBatches next({numbered(5), numbered(6)});
  next.copy_to(place);
  CHECK(first.to_doubles()[99] == 5);
  CHECK(place.at(0).tensors[0].storage() == first.storage());
  CHECK(place.at(1).tensors[0].to_doubles()[0] == 6);
  CHECK(place.weight() == 13);
  CHECK(place.tokens() == 110);
  next.to_device();  // not made ahead: they lie where they are wanted
  CHECK(next.at(0).tensors[0].to_doubles()[0] == 5);
}

TEST_CASE("gradient accumulation: Task::weight() is the weight of the batch, in every preset") {
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    Config config = small_preset(preset.name);
    if (preset.name != std::string("lra-listops") && std::string(preset.task).starts_with("lra-")) continue;
    config.task->load(config, {}, [](const std::string&) {});
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      const int64_t planned = config.task->plan(epoch);
      for (int64_t position : {int64_t{0}, planned / 2, planned - 1})
        CHECK(config.task->weight(position) == config.task->batch(position).weight);
    }
  }
}

TEST_CASE("gradient accumulation: a step of thousands of batches uses the estimated memory of one") {
  const Shell shell;
  const Result result = shell.run(command_words(
      "train mnist --name r --num-examples 300 --test-size 100 --d-model 8 --layers 1 --heads 2 --epochs 0 "
      "--steps 1 --batch-size 8 --device cpu --quiet --threads 1 --grad-accumulation 3000 --d-ff 8 "
      "--model.patch 14"));
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  const Path manifest = shell.scratch / "runs/r/manifest.json";
  const Json metadata = parse_json(io::read(manifest), manifest.string());
  const int64_t one = 8 * 28 * 28 * 4;  // bytes of the images of a batch
  const int64_t estimated = metadata.at("estimate").at("tensor_bytes").integer(),
                took = metadata.at("took").at("tensor_bytes").integer();
  CHECK(took < estimated + 20 * one);  // all would be 3,000
}
