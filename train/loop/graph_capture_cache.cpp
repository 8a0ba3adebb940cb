// Finds the captured step whose batch shapes are those of the next step.
#include "heed/train/loop/graph_capture_cache.h"

#include <utility>

namespace heed {

CapturedStepCache::CapturedStepCache(std::function<void(StepBatches&)> step, Module& model,
                                     Optimizer& optimizer, Rng& rng, ProcessGroup& group)
    : step_(std::move(step)), model_(model), optimizer_(optimizer), rng_(rng), group_(group) {}

void CapturedStepCache::run(StepBatches& batches) {
  batches.to_device();
  step_(batches);
}

void CapturedStepCache::replay(StepBatches& batches) {
  ShapeSteps* const steps = capture_wanted() ? find(batches) : nullptr;
  if (steps == nullptr) return run(batches);
  steps->draws = rng_.draws();
  (*steps->captured)();
  if (steps->captured->replays()) ++replayed_;
  if (why_not_.empty()) why_not_ = steps->captured->why_not();
}

CapturedStepCache::ShapeSteps* CapturedStepCache::find(StepBatches& batches) {
  constexpr size_t max_shapes = 256;  // further shapes are rare and seldom repeat
  if (!batches.is_held()) {
    if (why_not_.empty()) why_not_ = text("each would keep its ", batches.count(), " batches on the device");
    return nullptr;
  }
  const std::string key = key_of(batches);
  if (shapes_.size() == max_shapes && !shapes_.contains(key)) return nullptr;
  ShapeSteps& steps = shapes_[key];
  if (steps.captured == nullptr) {
    begin(steps, batches);
  } else {
    batches.copy_to(steps.batches);
    batches = steps.batches;
  }
  return &steps;
}

void CapturedStepCache::begin(ShapeSteps& steps, StepBatches& batches) {
  batches.to_device();
  steps.batches = batches;
  const auto kept = [this] {
    std::vector<Tensor*> out;
    visit_tensors(model_, [&](const std::string&, Tensor& x) { out.push_back(&x); });
    return out;
  };
  const auto undo = [this, &steps] {
    rng_.restore(rng_.tick(), steps.draws);
    optimizer_.clear();
  };
  CapturedStepHooks hooks{kept, undo};
  if (group_.size() > 1)
    hooks.agreed = [this](const std::string& why_not) { return first_said(group_, why_not); };
  steps.captured = std::make_unique<CapturedStep>([this, &steps] { step_(steps.batches); }, std::move(hooks));
}

std::string CapturedStepCache::key_of(StepBatches& batches) const {
  std::string key;
  for (const Batch& batch : batches.all()) {
    for (const Tensor& x : batch.tensors) key += text(x.dtype(), x.shape());
    // Weights of several batches, and the place where the random numbers of a shard begin, are constants of a
    // captured step.
    if (group_.size() > 1)
      key += text(" ", batch.rows.first, "+", batch.rows.count, ";");
    else if (batches.count() > 1)
      key += text(" ", batch.weight, ";");
  }
  if (group_.size() == 1) return key;
  std::string all;  // all processes capture the same steps, although the shards of one may have equal shapes
                    // in two of them
  for (const std::string& other : group_.all_gather(key)) all += other + '|';
  return all;
}

}  // namespace heed
