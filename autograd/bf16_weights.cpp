// Copies weights to bf16, and holds the copies that each thread uses.
#include "heed/autograd/bf16_weights.h"

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

thread_local const Bf16Weights* current = nullptr;

}  // namespace

Bf16Weights::Bf16Weights(std::span<const Tensor> weights) {
  for (const Tensor& weight : weights) {
    if (!weight || weight.dtype() != DType::f32 || weight.rank() != 2 || !weight.contiguous()) continue;
    const auto [entry, is_new] = copies_.try_emplace(weight.raw());
    if (!is_new) continue;  // a tied weight is copied once
    const Tensor original = weight.detach();
    entry->second = Tensor(weight.shape(), DType::bf16, weight.device());
    launch<kernel::Copy>(weight.device(), original, entry->second);
    launch<kernel::Copy>(weight.device(), entry->second, original);
    ++original.storage()->version;
  }
}

const Tensor* Bf16Weights::find(const Tensor& weight) const {
  const auto found = copies_.find(weight.raw());
  if (found == copies_.end() || !(found->second.shape() == weight.shape())) return nullptr;
  return weight.contiguous() ? &found->second : nullptr;
}

Bf16Weights::Used::Used(const Bf16Weights& weights) : weights_(current, &weights) {}

const Tensor* bf16_copy(const Tensor& weight) { return current == nullptr ? nullptr : current->find(weight); }

}  // namespace heed
