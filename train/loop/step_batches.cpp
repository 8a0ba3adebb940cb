// The batches of one step: all held at once, or made one after the other.
#include "heed/train/loop/step_batches.h"

#include <utility>

#include "heed/core/device.h"
#include "heed/core/error.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/memory/storage.h"
#include "heed/train/loop/prefetch.h"

namespace heed {
namespace {

int64_t rows_of(const Batch& batch) {
  return batch.tensors.empty() || batch.tensors[0].rank() == 0 ? 0 : batch.tensors[0].extent(0);
}

}  // namespace

StepBatches::StepBatches(Prefetch& prefetch)
    : held_(prefetch.current().batches), is_held_(true), arriving_(&prefetch) {}

StepBatches::StepBatches(std::vector<double> weights, std::function<Batch(int64_t)> make)
    : weights_(std::move(weights)),
      tokens_(weights_.size()),
      examples_(weights_.size()),
      make_(std::move(make)) {}

std::vector<Batch>& StepBatches::all() {
  if (!is_held_) fail(Fault::internal, "step: its batches are made one by one, and all are asked for.");
  return held_;
}

Batch StepBatches::at(int64_t i) {
  const auto index = static_cast<size_t>(i);
  if (is_held_) return held_.at(index);
  const MemoryScope owned(MemoryKind::batches);
  Batch batch = make_(i);
  const double weight = batch.whole_weight > 0 ? batch.whole_weight : batch.weight;
  if (weight != weights_.at(index))
    fail(Fault::internal, "step: batch ", i + 1, " weighs ", weight, ", and the task told ", weights_[index],
         ".");
  tokens_[index] = batch.tokens;
  examples_[index] = rows_of(batch);
  if (i == 0 && change_first_) change_first_(batch);
  return batch;
}

double StepBatches::weight(int64_t i) const {
  if (!is_held_) return weights_.at(static_cast<size_t>(i));
  const Batch& batch = held_.at(static_cast<size_t>(i));
  return batch.whole_weight > 0 ? batch.whole_weight : batch.weight;
}

double StepBatches::weight() const {
  double sum = 0;
  for (int64_t i = 0; i < count(); ++i) sum += weight(i);
  return sum;
}

int64_t StepBatches::tokens() const {
  int64_t sum = 0;
  for (const Batch& batch : held_) sum += batch.tokens;
  for (const int64_t tokens : tokens_) sum += tokens;
  return sum;
}

int64_t StepBatches::examples() const {
  int64_t sum = 0;
  for (const Batch& batch : held_) sum += rows_of(batch);
  for (const int64_t examples : examples_) sum += examples;
  return sum;
}

void StepBatches::to_device() {
  if (Prefetch* prefetch = std::exchange(arriving_, nullptr)) held_ = prefetch->to_new_tensors();
}

void StepBatches::copy_to(StepBatches& target) {
  if (Prefetch* prefetch = std::exchange(arriving_, nullptr)) return prefetch->copy_into(target.all());
  for (size_t i = 0; i < all().size(); ++i) {
    const Batch& batch = held_[i];
    Batch& copy = target.all()[i];
    for (size_t k = 0; k < batch.tensors.size(); ++k) {
      if (copy.tensors[k].storage() != batch.tensors[k].storage())
        launch<kernel::Copy>(copy.tensors[k].device(), batch.tensors[k], copy.tensors[k]);
    }
    copy.weight = batch.weight;
    copy.tokens = batch.tokens;
  }
}

void StepBatches::change_first(std::function<void(Batch&)> change) {
  if (is_held_)
    change(held_.at(0));
  else
    change_first_ = std::move(change);
}

bool holds_batches(const TrainOptions& options) {
  // A step of more batches gains little by graph capture, which would keep all of them on the device.
  constexpr int64_t max_held_batches = 64;
  return options.grad_accumulation == 1 ||
         (default_device == Device::cuda && options.grad_accumulation <= max_held_batches);
}

}  // namespace heed
