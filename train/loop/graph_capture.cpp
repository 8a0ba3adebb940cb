// Captures training steps as CUDA graphs, or records why they cannot be captured.
#include "heed/train/loop/graph_capture.h"

#include <cstdlib>
#include <utility>

#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/device.h"
#include "heed/core/error.h"

namespace heed {

bool is_switched_on(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || std::string(value) == "on") return true;
  if (std::string(value) != "off") fail(variable, " = '", value, "'. Known: on, off.");
  return false;
}

bool capture_wanted() { return default_device == Device::cuda && is_switched_on("HEED_REPLAY"); }

CapturedStep::CapturedStep(std::function<void()> step, CapturedStepHooks hooks)
    : step_(std::move(step)), hooks_(std::move(hooks)) {
  if (!capture_wanted())
    why_not_ = default_device == Device::cuda ? "HEED_REPLAY is off" : "the CPU replays nothing";
}

CapturedStep::~CapturedStep() = default;

int64_t CapturedStep::kernels() const {
  if constexpr (built_with_cuda) {
    if (graph_ != nullptr) return graph_->kernels();
  }
  return 0;
}

void CapturedStep::record() {
  if constexpr (built_with_cuda) {
    std::vector<Tensor*> fixed;
    if (hooks_.fixed_tensors) fixed = hooks_.fixed_tensors();
    std::vector<Tensor> before;  // `fixed` before the step
    for (const Tensor* tensor : fixed) before.push_back(*tensor);
    try {
      cuda::Capture capture;
      step_();
      graph_ = capture.finish();
      for (size_t i = 0; i < fixed.size(); ++i) {
        if (fixed[i]->storage() != before[i].storage() || fixed[i]->offset() != before[i].offset())
          fail(Fault::device, "the step moves a parameter or a buffer to another place");
      }
    } catch (const Error& error) {
      if (error.fault() != Fault::memory && error.fault() != Fault::device) throw;
      why_not_ = error.fault() == Fault::memory
                     ? text("one that is recorded has memory of its own, and: ", error.what())
                     : std::string(error.what());
    }
    if (hooks_.agree) why_not_ = hooks_.agree(why_not_);
    if (why_not_.empty()) {
      if (!hooks_.agree) graph_->evictable();
      return;
    }
    graph_.reset();
    for (size_t i = 0; i < fixed.size(); ++i) *fixed[i] = before[i];
    if (hooks_.undo) hooks_.undo();
  }
}

void CapturedStep::operator()() {
  if constexpr (built_with_cuda) {
    constexpr int runs_before_capture = 2;
    if (graph_ == nullptr && why_not_.empty() && runs_++ == runs_before_capture) record();
    if (graph_ != nullptr && graph_->given_up()) {
      graph_.reset();
      why_not_ = "the memory of those that were recorded was needed beside them";
    }
    if (graph_ != nullptr) return graph_->launch();
  }
  step_();
}

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
  const auto tensors_of_model = [this] {
    std::vector<Tensor*> out;
    visit_tensors(model_, [&](const std::string&, Tensor& x) { out.push_back(&x); });
    return out;
  };
  const auto undo = [this, &steps] {
    rng_.restore(rng_.tick(), steps.draws);
    optimizer_.clear();
  };
  CapturedStepHooks hooks{.fixed_tensors = tensors_of_model, .undo = undo};
  if (group_.size() > 1)
    hooks.agree = [this](const std::string& why_not) { return first_message(group_, why_not); };
  steps.captured = std::make_unique<CapturedStep>([this, &steps] { step_(steps.batches); }, std::move(hooks));
}

std::string CapturedStepCache::key_of(StepBatches& batches) const {
  std::string key;
  for (const Batch& batch : batches.all()) {
    for (const Tensor& x : batch.tensors) key += text(x.dtype(), x.shape());
    // The weights of several batches, and the rows of a shard, which select its random numbers, are constants
    // of a captured step.
    if (group_.size() > 1)
      key += text(" ", batch.rows.first, "+", batch.rows.count, ";");
    else if (batches.count() > 1)
      key += text(" ", batch.weight, ";");
  }
  if (group_.size() == 1) return key;
  // The keys of all processes: two steps may have equal shards in one process and different ones in another,
  // and all processes must capture the same steps.
  std::string keys;
  for (const std::string& key_of_process : group_.all_gather(key)) keys += key_of_process + '|';
  return keys;
}

}  // namespace heed
