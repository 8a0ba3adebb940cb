// Counts operations and bytes of training steps at two sizes to find the exponents of their growth.
#include "heed/attention/counted_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "heed/core/memory/storage.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/nn/linear.h"

namespace heed {
namespace {

/// Limits the thread pool to one thread for its lifetime, because working memory grows with the threads.
class OneThread {
 public:
  OneThread() : before_(threads()) { set_threads(1); }
  ~OneThread() { set_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// The number of input rows that each Linear processed in the graph of y.
std::map<const Linear*, int64_t> rows_of(const Tensor& y, const std::vector<Linear*>& layers) {
  std::map<const Linear*, int64_t> rows;
  std::set<const Node*> visited;
  std::vector<const Node*> pending{y.node().get()};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (node == nullptr || !visited.insert(node).second) continue;
    const auto layer =
        std::find_if(layers.begin(), layers.end(), [&](const Linear* one) { return one == node->module; });
    if (layer != layers.end()) rows[*layer] += node->shape.size() / (*layer)->weight.extent(0);
    for (const auto& input : node->inputs) pending.push_back(input.get());
  }
  return rows;
}

Tensor normal_tensor(const Shape& shape, uint64_t seed, Device device) {
  Rng rng(seed, device);
  const Tensor x(shape, DType::f32, device);
  fill_normal(x, 0, 1, rng);
  return x;
}

int64_t operations_of(const std::function<void()>& work) {
  Count::reset();
  work();
  return Count::flops().load();
}

/// The smaller of the two sizes of a count. Bytes that are linear in the length are counted with a batch,
/// because kernels split a single sequence among threads.
StepExtent usual_start(const Traits& traits, Device device, bool bytes, bool by_width) {
  const Growth &time = traits.time, &growth = bytes ? traits.memory : time;
  const bool pairs = growth.length >= 1.5;  // a cost per pair of positions
  // Costs of n d^2 are those of states of d^2 numbers; on a GPU a new state begins every d positions.
  const bool on_gpu = device != Device::cpu;
  const bool states = on_gpu && time.length < 1.5 && time.width >= 1.5 && time.width < 2.5;
  if (bytes && pairs && growth.width == 0) return {1, by_width ? 1024 : 512, 8};
  if (bytes && pairs) return {1, by_width ? 192 : 128, 16};
  // A GPU keeps selected indices for the backward pass, whose size does not depend on the width.
  if (bytes && by_width) return states ? StepExtent{1, 4096, 128} : StepExtent{16, 256, on_gpu ? 64 : 32};
  if (bytes) return {16, 256, 64};
  if (by_width && growth.width >= 2.5)
    return {1, 4800, 48};                         // longer than the number of monomials of the doubled width
  if (!by_width && !pairs) return {1, 1024, 16};  // its first and last chunks cost less
  if (by_width && growth.width >= 1.5) return {1, states ? 1024 : 256, 512};
  // Narrow heads are padded to whole vectors, and the padding is counted.
  return {1, 256, by_width ? 32 : 16};
}

/// The smaller of the two sizes of a count, at least as long as traits.min_cost_length.
StepExtent start_of(const Traits& traits, Device device, bool bytes, bool by_width) {
  StepExtent start = usual_start(traits, device, bytes, by_width);
  if (traits.min_cost_length > start.length) {
    start.batch = std::min(start.batch, std::max<int64_t>(4, start.batch * 1024 / traits.min_cost_length));
    start.length = traits.min_cost_length;
  }
  return start;
}

}  // namespace

StepCost count_step(Attention& attention, const Mask& mask, const Tensor& queries, const Tensor& keys) {
  const OneThread one;
  const Device device = queries.device();
  const bool crosses = keys.raw() != queries.raw();
  const Tensor q = leaf(queries), k = crosses ? leaf(keys) : q;
  const Tensor dy = normal_tensor(queries.shape(), 5, device);

  std::vector<Linear*> layers;
  visit_modules(attention, [&](const std::string&, Module& child) {
    if (auto* linear = dynamic_cast<Linear*>(&child)) layers.push_back(linear);
  });
  std::map<const Linear*, int64_t> rows;
  for (const Named& named : parameters(attention)) named.tensor->node()->grad = Tensor();

  StepCost cost;
  reset_peak(device);
  int64_t result = 0;
  int64_t operations = operations_of([&] {
    const Tensor y = attention.forward({.queries = q, .keys = k, .mask = mask});
    rows = rows_of(y, layers);
    result = y.bytes();
    backward(y, dy);
  });
  const MemoryUse use = memory_use(device);
  cost.bytes = static_cast<double>(use.peak - use.live - result);
  for (const auto& [layer, count] : rows) {
    const Tensor x = leaf(normal_tensor(Shape{count, layer->weight.extent(1)}, 6, device));
    operations -= operations_of([&, linear = layer] {  // clang 15 does not take a part of a pair by reference
      const Tensor y = (*linear)(x);
      backward(y, empty_like(y));
    });
  }
  cost.operations = static_cast<double>(operations);
  return cost;
}

namespace {

using CountStep = std::function<StepCost(const StepExtent&)>;

Growth growth_of(const Traits& traits, Device device, const CountStep& step, bool bytes) {
  const auto exponent = [&](bool by_width) {
    const StepExtent start = start_of(traits, device, bytes, by_width);
    StepExtent doubled = start;
    (by_width ? doubled.width : doubled.length) *= 2;
    const StepCost low = step(start), high = step(doubled);
    return bytes ? std::log2(high.bytes / low.bytes) : std::log2(high.operations / low.operations);
  };
  return {.length = exponent(false), .width = exponent(true)};
}

/// Counts steps of a variant with these options on the CPU, bidirectional if supported.
CountStep steps_of(const Variant& variant, const Spec& spec) {
  return [&variant, spec](const StepExtent& extent) {
    const bool causal = !variant.traits.bidirectional;
    Rng rng(1);
    const auto attention = make_attention(
        variant, spec, {.d_model = extent.width, .causal = causal, .max_length = extent.length}, rng);
    const Tensor x = normal_tensor(Shape{extent.batch, extent.length, extent.width}, 101, Device::cpu);
    return count_step(*attention, causal ? Mask::causal() : Mask::none(), x, x);
  };
}

}  // namespace

CountedGrowth counted_growth(const Traits& traits, Device device,
                             const std::function<StepCost(const StepExtent&)>& step) {
  return {.time = growth_of(traits, device, step, false), .memory = growth_of(traits, device, step, true)};
}

CountedGrowth counted_growth(const Variant& variant) {
  return counted_growth(variant.traits, Device::cpu, steps_of(variant, {variant.traits.name, {}}));
}

Growth counted_time(const Spec& spec, const Growth& declared) {
  const Variant& variant = variant_named(spec.name);
  Traits traits = variant.traits;
  traits.time = declared;
  return growth_of(traits, Device::cpu, steps_of(variant, spec), false);
}

}  // namespace heed
