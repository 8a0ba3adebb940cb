// Copies of weights in bf16 and which of them are in use, one set a thread.
#include "autograd/narrow_weights.h"

#include "core/kernels/copy.h"
#include "core/launch.h"

namespace heed {
namespace {

thread_local const NarrowWeights* current = nullptr;

}  // namespace

NarrowWeights::NarrowWeights(std::span<const Tensor> weights) {
  for (const Tensor& weight : weights) {
    if (!weight || weight.dtype() != DType::f32 || weight.rank() != 2 || !weight.contiguous()) continue;
    const auto [place, fresh] = copies_.try_emplace(weight.raw());
    if (!fresh) continue;  // tied
    const Tensor from = weight.detach();
    place->second = Tensor(weight.shape(), DType::bf16, weight.device());
    launch<kernel::Copy>(weight.device(), from, place->second);
    launch<kernel::Copy>(weight.device(), place->second, from);
  }
}

const Tensor* NarrowWeights::find(const Tensor& weight) const {
  const auto found = copies_.find(weight.raw());
  if (found == copies_.end() || !(found->second.shape() == weight.shape())) return nullptr;
  return weight.contiguous() ? &found->second : nullptr;
}

NarrowWeights::Used::Used(const NarrowWeights& weights) : before_(current) { current = &weights; }

NarrowWeights::Used::~Used() { current = before_; }

const Tensor* narrow_copy(const Tensor& weight) {
  return current == nullptr ? nullptr : current->find(weight);
}

}  // namespace heed
