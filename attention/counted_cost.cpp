// Counts operations and bytes of training steps at two sizes to find the exponents of their growth.
#include "heed/attention/counted_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "heed/core/io/number_text.h"
#include "heed/core/memory/storage.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/nn/linear.h"

namespace heed {
namespace {

/// Limits the thread pool to one thread for its lifetime, because working memory grows with the threads.
class OneThread {
 public:
  OneThread() : previous_count_(threads()) { set_threads(1); }
  ~OneThread() { set_threads(previous_count_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int previous_count_;
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
        std::find_if(layers.begin(), layers.end(), [&](const Linear* l) { return l == node->module; });
    if (layer != layers.end()) rows[*layer] += node->shape.size() / (*layer)->weight.extent(0);
    for (const auto& input : node->inputs) pending.push_back(input.get());
  }
  return rows;
}

int64_t operations_of(const std::function<void()>& work) {
  Count::reset();
  work();
  return Count::flops().load();
}

enum class Counted { operations, bytes };  ///< what is counted
enum class Doubled { length, width };      ///< the size that is doubled

/// The smaller of the two steps that are compared. Bytes that are linear in the length are counted with a
/// batch, because kernels split a single sequence among threads.
StepExtent usual_start(const Traits& traits, Device device, Counted counted, Doubled doubled) {
  const bool of_bytes = counted == Counted::bytes, by_width = doubled == Doubled::width;
  const Growth &time = traits.time, &growth = of_bytes ? traits.memory : time;
  const bool is_per_pair = growth.length >= 1.5;  // a cost per pair of positions
  // Costs of n d^2 are those of states of d^2 numbers; on a GPU a new state begins every d positions.
  const bool on_gpu = device != Device::cpu;
  const bool has_gpu_states = on_gpu && time.length < 1.5 && time.width >= 1.5 && time.width < 2.5;
  if (of_bytes && is_per_pair && growth.width == 0)
    return {.batch = 1, .length = by_width ? 1024 : 512, .width = 8};
  if (of_bytes && is_per_pair) return {.batch = 1, .length = by_width ? 192 : 128, .width = 16};
  // A GPU keeps selected indices for the backward pass, whose size does not depend on the width.
  if (of_bytes && by_width && has_gpu_states) return {.batch = 1, .length = 4096, .width = 128};
  if (of_bytes && by_width) return {.batch = 16, .length = 256, .width = on_gpu ? 64 : 32};
  if (of_bytes) return {.batch = 16, .length = 256, .width = 64};
  // With n d^3 the length must exceed the number of monomials of the doubled width.
  if (by_width && growth.width >= 2.5) return {.batch = 1, .length = 4800, .width = 48};
  // The first and last chunks of a linear scan cost less, so it must have many.
  if (!by_width && !is_per_pair) return {.batch = 1, .length = 1024, .width = 16};
  if (by_width && growth.width >= 1.5)
    return {.batch = 1, .length = has_gpu_states ? 1024 : 256, .width = 512};
  // Narrow heads are padded to whole vectors, and the padding is counted.
  return {.batch = 1, .length = 256, .width = by_width ? 32 : 16};
}

/// usual_start(), but at least as long as traits.min_cost_length, with a smaller batch for that.
StepExtent start_of(const Traits& traits, Device device, Counted counted, Doubled doubled) {
  StepExtent start = usual_start(traits, device, counted, doubled);
  if (traits.min_cost_length > start.length) {
    start.batch = std::min(start.batch, std::max<int64_t>(4, start.batch * 1024 / traits.min_cost_length));
    start.length = traits.min_cost_length;
  }
  return start;
}

}  // namespace

Tensor normal_tensor(const Shape& shape, uint64_t seed, Device device, DType dtype) {
  Rng rng(seed, device);
  const Tensor x(shape, dtype, device);
  fill_normal(x, 0, 1, rng);
  return x;
}

StepCost count_step(Attention& attention, const Mask& mask, const Tensor& queries, const Tensor& keys) {
  const OneThread one_thread;
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
  int64_t output_bytes = 0;
  int64_t operations = operations_of([&] {
    const Tensor y = attention.forward({.queries = q, .keys = k, .mask = mask});
    rows = rows_of(y, layers);
    output_bytes = y.bytes();
    backward(y, dy);
  });
  const MemoryUse use = memory_use(device);
  cost.bytes = static_cast<double>(use.peak - use.live - output_bytes);
  for (const auto& [layer, count] :
       rows) {  // the operations of Linear layers are counted anew and subtracted
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

/// The exponents of one cost: the logarithm to base 2 of its ratio when the length, or the width, doubles.
Growth growth_of(const Traits& traits, Device device, const CountStep& step, Counted counted) {
  const auto exponent = [&](Doubled doubled) {
    const StepExtent start = start_of(traits, device, counted, doubled);
    StepExtent larger = start;
    (doubled == Doubled::width ? larger.width : larger.length) *= 2;
    const StepCost low = step(start), high = step(larger);
    return counted == Counted::bytes ? std::log2(high.bytes / low.bytes)
                                     : std::log2(high.operations / low.operations);
  };
  return {.length = exponent(Doubled::length), .width = exponent(Doubled::width)};
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
  return {.time = growth_of(traits, device, step, Counted::operations),
          .memory = growth_of(traits, device, step, Counted::bytes)};
}

CountedGrowth counted_growth(const Variant& variant) {
  return counted_growth(variant.traits, Device::cpu, steps_of(variant, {variant.traits.name, {}}));
}

Growth counted_time(const Spec& spec, const Growth& declared) {
  const Variant& variant = variant_named(spec.name);
  Traits traits = variant.traits;
  traits.time = declared;
  return growth_of(traits, Device::cpu, steps_of(variant, spec), Counted::operations);
}

std::string counted_growth_text(const Growth& growth) {
  return formatted("n^%.2f d^%.2f", growth.length, growth.width);
}

}  // namespace heed
