// Copies weights to fewer bytes, and holds the copies that each thread uses.
#include "heed/autograd/narrow_weights.h"

#include <algorithm>
#include <cmath>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/q8_weight_gemm.h"
#include "heed/core/launch.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed {
namespace {

thread_local const NarrowWeights* current = nullptr;

constexpr int64_t block_size = kernel::Q8WeightGemm::block_size;

/// A block of numbers in q8_0: the nearest whole multiples of a scale, which is the largest magnitude / 127.
/// Rounds the numbers in place. A block with NaN or infinity becomes NaN, through the scale.
void round_block(float* x, int8_t* multiple, float& scale) {
  float largest = 0;
  for (int64_t i = 0; i < block_size; ++i)
    largest = std::isnan(x[i]) ? x[i] : std::max(largest, std::abs(x[i]));
  scale = largest / 127;
  const bool has_multiples = scale > 0 && std::isfinite(scale);
  for (int64_t i = 0; i < block_size; ++i) {
    multiple[i] =
        has_multiples ? static_cast<int8_t>(std::nearbyint(std::clamp(x[i] / scale, -127.0F, 127.0F))) : 0;
    x[i] = static_cast<float>(multiple[i]) * scale;
  }
}

/// Rounds `weight` [out, in] on the CPU in place.
NarrowWeight rounded_to_q8(const Tensor& weight) {
  const int64_t blocks = weight.size() / block_size;
  NarrowWeight narrow{Tensor(weight.shape(), DType::u8),
                      Tensor(Shape{weight.extent(0), weight.extent(1) / block_size})};
  auto* numbers = reinterpret_cast<int8_t*>(narrow.numbers.data<uint8_t>());
  auto* scales = narrow.scales.data<float>();
  parallel_rows(blocks, /*grain=*/1024, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      round_block(weight.data<float>() + b * block_size, numbers + b * block_size, scales[b]);
  });
  return narrow;
}

/// Rounds `weight` in place.
NarrowWeight rounded(const Tensor& weight, WeightFormat format) {
  const Device device = weight.device();
  if (format == WeightFormat::bf16) {
    NarrowWeight narrow{Tensor(weight.shape(), DType::bf16, device), Tensor()};
    launch<kernel::Copy>(device, weight, narrow.numbers);
    launch<kernel::Copy>(device, narrow.numbers, weight);
    return narrow;
  }
  if (device == Device::cpu) return rounded_to_q8(weight);
  const Tensor here = weight.to(Device::cpu);
  const NarrowWeight narrow = rounded_to_q8(here);
  launch<kernel::Copy>(device, here.to(device), weight);
  return {narrow.numbers.to(device), narrow.scales.to(device)};
}

/// True where a copy of `weight` is kept.
bool is_narrowed(const Tensor& weight, WeightFormat format) {
  return weight && weight.dtype() == DType::f32 && weight.rank() == 2 && weight.contiguous() &&
         (format == WeightFormat::bf16 || weight.extent(1) % block_size == 0);
}

}  // namespace

NarrowWeights::NarrowWeights(std::span<const Tensor> weights, WeightFormat format) {
  for (const Tensor& weight : weights) {
    if (!is_narrowed(weight, format)) continue;
    const auto [entry, is_new] = copies_.try_emplace(weight.raw());
    if (!is_new) continue;  // a tied weight is copied once
    const Tensor original = weight.detach();
    entry->second = rounded(original, format);
    ++original.storage()->version;
  }
}

const NarrowWeight* NarrowWeights::find(const Tensor& weight) const {
  const auto found = copies_.find(weight.raw());
  if (found == copies_.end() || !(found->second.numbers.shape() == weight.shape())) return nullptr;
  return weight.contiguous() ? &found->second : nullptr;
}

NarrowWeights::Used::Used(const NarrowWeights& weights) : weights_(current, &weights) {}

const NarrowWeight* narrow_copy(const Tensor& weight) {
  return current == nullptr ? nullptr : current->find(weight);
}

}  // namespace heed
