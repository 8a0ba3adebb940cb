// Captures a training step as a CUDA graph, or finds out why it cannot be captured.
#include "heed/train/loop/graph_capture.h"

#include <cstdlib>

#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/device.h"
#include "heed/core/error.h"

namespace heed {

bool capture_wanted() {
  if (default_device != Device::cuda) return false;
  const char* wish = std::getenv("HEED_REPLAY");
  if (wish == nullptr || std::string(wish) == "on") return true;
  if (std::string(wish) != "off") fail("HEED_REPLAY = '", wish, "'. Known: on, off.");
  return false;
}

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
    const std::vector<Tensor*> kept = hooks_.kept ? hooks_.kept() : std::vector<Tensor*>();
    std::vector<Tensor> before;
    for (const Tensor* tensor : kept) before.push_back(*tensor);
    try {
      cuda::Capture capture;
      step_();
      graph_ = capture.finish();
      for (size_t i = 0; i < kept.size(); ++i) {
        if (kept[i]->storage() != before[i].storage() || kept[i]->offset() != before[i].offset())
          fail(Fault::device, "the step moves a parameter or a buffer to another place");
      }
    } catch (const Error& error) {
      if (error.fault() != Fault::memory && error.fault() != Fault::device) throw;
      why_not_ = error.fault() == Fault::memory
                     ? text("one that is recorded has memory of its own, and: ", error.what())
                     : std::string(error.what());
    }
    if (hooks_.agreed) why_not_ = hooks_.agreed(why_not_);
    if (why_not_.empty()) {
      if (!hooks_.agreed) graph_->evictable();
      return;
    }
    graph_.reset();
    for (size_t i = 0; i < kept.size(); ++i) *kept[i] = before[i];
    if (hooks_.undo) hooks_.undo();
  }
}

void CapturedStep::operator()() {
  if constexpr (built_with_cuda) {
    if (graph_ == nullptr && why_not_.empty() && runs_++ == 2) record();
    if (graph_ != nullptr && graph_->given_up()) {
      graph_.reset();
      why_not_ = "the memory of those that were recorded was needed beside them";
    }
    if (graph_ != nullptr) return graph_->launch();
  }
  step_();
}

}  // namespace heed
