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

/// Collects the Linear layers of a module.
class Projections final : public Fields {
 public:
  std::vector<Linear*> found;

 private:
  void on(const char*, Module& child) override {
    if (auto* linear = dynamic_cast<Linear*>(&child)) {
      found.push_back(linear);
    } else {
      child.fields(*this);
    }
  }
};

/// Limits the thread pool to one thread while it lives, because working memory grows with the threads.
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
  std::set<const Node*> seen;
  std::vector<const Node*> open{y.node().get()};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    const auto layer =
        std::find_if(layers.begin(), layers.end(), [&](const Linear* one) { return one == node->module; });
    if (layer != layers.end()) rows[*layer] += node->shape.size() / (*layer)->weight.extent(0);
    for (const auto& input : node->inputs) open.push_back(input.get());
  }
  return rows;
}

Tensor numbers(const Shape& shape, uint64_t seed, Device device) {
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
  const bool apart = device != Device::cpu;
  const bool states = apart && time.length < 1.5 && time.width >= 1.5 && time.width < 2.5;
  if (bytes && pairs && growth.width == 0) return {1, by_width ? 1024 : 512, 8};
  if (bytes && pairs) return {1, by_width ? 192 : 128, 16};
  // A GPU keeps selected indices for the backward pass, whose size does not depend on the width.
  if (bytes && by_width) return states ? StepExtent{1, 4096, 128} : StepExtent{16, 256, apart ? 64 : 32};
  if (bytes) return {16, 256, 64};
  if (by_width && growth.width >= 2.5)
    return {1, 4800, 48};                         // longer than the number of monomials of the doubled width
  if (!by_width && !pairs) return {1, 1024, 16};  // its first and last chunks cost less
  if (by_width && growth.width >= 1.5) return {1, states ? 1024 : 256, 512};
  // Narrow heads are padded to whole vectors, and the padding is counted.
  return {1, 256, by_width ? 32 : 16};
}

/// The same, but at least as long as traits.from.
StepExtent start_of(const Traits& traits, Device device, bool bytes, bool by_width) {
  StepExtent start = usual_start(traits, device, bytes, by_width);
  if (traits.from > start.length) {
    start.batch = std::min(start.batch, std::max<int64_t>(4, start.batch * 1024 / traits.from));
    start.length = traits.from;
  }
  return start;
}

}  // namespace

Spent count_step(Attention& attention, const Mask& mask, const Tensor& queries, const Tensor& keys) {
  const OneThread one;
  const Device device = queries.device();
  const bool crosses = keys.raw() != queries.raw();
  const Tensor q = leaf(queries), k = crosses ? leaf(keys) : q;
  const Tensor dy = numbers(queries.shape(), 5, device);

  Projections projections;
  attention.fields(projections);
  std::map<const Linear*, int64_t> rows;
  for (const Named& named : parameters(attention)) named.tensor->node()->grad = Tensor();

  Spent spent;
  reset_peak(device);
  int64_t result = 0;
  int64_t operations = operations_of([&] {
    const Tensor y = attention.forward({.queries = q, .keys = k, .mask = mask});
    rows = rows_of(y, projections.found);
    result = y.bytes();
    backward(y, dy);
  });
  const MemoryUse use = memory_use(device);
  spent.bytes = static_cast<double>(use.peak - use.live - result);
  for (const auto& [layer, count] : rows) {
    const Tensor x = leaf(numbers(Shape{count, layer->weight.extent(1)}, 6, device));
    operations -= operations_of([&, linear = layer] {  // clang 15 does not take a part of a pair by reference
      const Tensor y = (*linear)(x);
      backward(y, empty_like(y));
    });
  }
  spent.operations = static_cast<double>(operations);
  return spent;
}

namespace {

using CountStep = std::function<Spent(const StepExtent&)>;

Growth growth_of(const Traits& traits, Device device, const CountStep& step, bool bytes) {
  const auto exponent = [&](bool by_width) {
    const StepExtent start = start_of(traits, device, bytes, by_width);
    StepExtent doubled = start;
    (by_width ? doubled.width : doubled.length) *= 2;
    const Spent low = step(start), high = step(doubled);
    return bytes ? std::log2(high.bytes / low.bytes) : std::log2(high.operations / low.operations);
  };
  return {.length = exponent(false), .width = exponent(true)};
}

/// Steps of a variant with these options, bidirectional if it can be, on the CPU.
CountStep steps_of(const Variant& variant, const Spec& spec) {
  return [&variant, spec](const StepExtent& extent) {
    const bool causal = !variant.traits.full;
    Rng rng(1);
    const auto attention = make_attention(
        variant, spec, {.d_model = extent.width, .causal = causal, .max_length = extent.length}, rng);
    const Tensor x = numbers(Shape{extent.batch, extent.length, extent.width}, 101, Device::cpu);
    return count_step(*attention, causal ? Mask::causal() : Mask::none(), x, x);
  };
}

}  // namespace

CountedGrowth counted_growth(const Traits& traits, Device device,
                             const std::function<Spent(const StepExtent&)>& step) {
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
