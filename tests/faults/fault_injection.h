// Faults planted on purpose, so that tests see what a run does about them.
#pragma once

#include <cmath>
#include <string>

#include "heed/train/loop/train_callback.h"

namespace heed {

/// One value planted at one step of training, in the last process of a group.
class FaultInjection final : public TrainCallback {
 public:
  enum class Where { parameter, input, gradient, buffer };  ///< a buffer: after its step

  /// "parameter@3", "input@7", "gradient@12", with a name or value between:
  /// "gradient:decoder.norm.gain:inf@12"; a + behind it plants at every later step too. A usage Error says
  /// what is legal.
  explicit FaultInjection(const std::string& plan);

  bool inside_steps() const override { return true; }
  void before_step(const TrainContext& context, StepBatches& batches) override;
  void after_backward(const TrainContext& context) override;
  void after_step(const TrainContext& context, const StepResult& result) override;

  Where where = Where::parameter;
  std::string name;      ///< name of the tensor; empty: the one in the middle of the list
  double value = NAN;    ///< or an infinity
  int64_t step = 0;      ///< counted from 1, as in the metrics
  bool repeats = false;  ///< at every later step too

 private:
  bool due(Where at, const TrainContext& context) const;
};

}  // namespace heed
