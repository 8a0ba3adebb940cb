// Reads the plan of a fault, and plants it.
#include "heed/tests/faults/fault_injection.h"

#include <algorithm>
#include <charconv>

#include "heed/autograd/tape.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/train/loop/find_non_finite.h"

namespace heed {
namespace {

[[noreturn]] void refuse(const std::string& plan) {
  fail(
      "fault = '", plan,
      "' is not legal. It takes parameter@STEP, input@STEP, gradient@STEP or buffer@STEP, and between them a "
      "tensor's name, nan, inf or -inf: gradient:decoder.norm.gain:inf@12.");
}

/// Writes the value into the middle of x.
void put(const Tensor& x, double value) {
  const Tensor flat = view::reshape(x.detach(), Shape{x.size()});  // a view: what is planted into is dense
  const int64_t at = flat.size() / 2;
  launch<kernel::Fill>(x.device(), view::slice(flat, 0, at, at + 1), value);
}

const Named& chosen(const FaultInjection& fault, const std::vector<Named>& all) {
  if (all.empty()) fail("fault: the model has none of these tensors.");
  if (fault.name.empty()) return all[all.size() / 2];
  std::vector<std::string> names;
  for (const Named& one : all) {
    if (one.name == fault.name) return one;
    names.push_back(one.name);
  }
  const std::string near = nearest(fault.name, names);
  fail("fault: the model has no such tensor '", fault.name, "'.",
       near.empty() ? text(" It has such as ", names[0], ".") : text(" Did you mean '", near, "'?"));
}

/// Into the first tensor of floats of a batch.
void put_into_input(Batch& batch, double value) {
  for (Tensor& x : batch.tensors) {
    if (!is_float(x.dtype())) continue;
    put(x, value);
    return;
  }
  fail("fault = input: the batches of this task hold whole numbers only, which are always finite. ",
       "Plant into a parameter or a gradient, or take the task mnist.");
}

}  // namespace

FaultInjection::FaultInjection(const std::string& plan) {
  const size_t at = plan.rfind('@');
  if (at == std::string::npos) refuse(plan);
  repeats = plan.back() == '+';
  const char* end = plan.data() + plan.size() - (repeats ? 1 : 0);
  const auto [last, fault] = std::from_chars(plan.data() + at + 1, end, step);
  if (fault != std::errc() || last != end || step < 1) refuse(plan);
  std::vector<std::string> parts{""};
  for (const char c : plan.substr(0, at)) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  const std::vector<std::string> places{"parameter", "input", "gradient", "buffer"};
  const auto place = std::find(places.begin(), places.end(), parts[0]);
  if (place == places.end()) refuse(plan);
  where = static_cast<Where>(place - places.begin());
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] == "nan")
      value = NAN;
    else if (parts[i] == "inf")
      value = HUGE_VAL;
    else if (parts[i] == "-inf")
      value = -HUGE_VAL;
    else if (parts[i].empty() || !name.empty() || where == Where::input)
      refuse(plan);
    else
      name = parts[i];
  }
}

bool FaultInjection::due(Where at, const TrainContext& context) const {
  return where == at && (context.step == step || (repeats && context.step > step)) &&
         context.group.rank() + 1 == context.group.size();
}

void FaultInjection::before_step(const TrainContext& context, StepBatches& batches) {
  if (due(Where::parameter, context)) {
    const Tensor& x = *chosen(*this, parameters(context.model)).tensor;
    put(x, value);
    ++x.storage()->version;
  }
  if (due(Where::input, context))
    batches.change_first([this](Batch& batch) { put_into_input(batch, value); });
}

void FaultInjection::after_backward(const TrainContext& context) {
  if (!due(Where::gradient, context)) return;
  const Tensor gradient = grad_of(*chosen(*this, parameters(context.model)).tensor);
  if (gradient) put(gradient, value);
}

void FaultInjection::after_step(const TrainContext& context, const StepResult&) {
  if (due(Where::buffer, context)) put(*chosen(*this, buffers(context.model)).tensor, value);
}

}  // namespace heed
