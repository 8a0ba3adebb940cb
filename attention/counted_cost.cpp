// Counts operations and bytes of steps at two sizes.
#include "attention/growth.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/count.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "nn/linear.h"

namespace heed {
namespace {

/// The Linear layers of a module.
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

/// One thread while it lives: working memory is one part a thread.
class OneThread {
 public:
  OneThread() : before_(threads()) { set_threads(1); }
  ~OneThread() { set_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// How many rows each Linear was given on the way to y.
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

/// Bytes linear in the length are looked at in a batch: kernels cut a lone sequence into shares for threads.
StepExtent usual_start(const Traits& traits, Device device, bool bytes, bool by_width) {
  const Growth &time = traits.time, &growth = bytes ? traits.memory : time;
  const bool pairs = growth.length >= 1.5;  // something for each pair of positions
  // What n d^2 stands for, states of d^2 numbers, is begun anew on a device after d positions.
  const bool apart = device != Device::cpu;
  const bool states = apart && time.length < 1.5 && time.width >= 1.5 && time.width < 2.5;
  if (bytes && pairs && growth.width == 0) return {1, by_width ? 1024 : 512, 8};
  if (bytes && pairs) return {1, by_width ? 192 : 128, 16};
  // A device keeps what was chosen for the way back, as much for any width.
  if (bytes && by_width) return states ? StepExtent{1, 4096, 128} : StepExtent{16, 256, apart ? 64 : 32};
  if (bytes) return {16, 256, 64};
  if (by_width && growth.width >= 2.5)
    return {1, 4800, 48};                         // longer than monomials of the doubled width are many
  if (!by_width && !pairs) return {1, 1024, 16};  // the first and last of its chunks cost less
  if (by_width && growth.width >= 1.5) return {1, states ? 1024 : 256, 512};
  // Narrow heads are filled up to whole vectors, which counts.
  return {1, 256, by_width ? 32 : 16};
}

/// The same, at the length that the traits name if that is longer.
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
  const Tensor asked = leaf(queries), seen = crosses ? leaf(keys) : asked;
  const Tensor slope = numbers(queries.shape(), 5, device);

  Projections projections;
  attention.fields(projections);
  std::map<const Linear*, int64_t> rows;
  for (const Named& named : parameters(attention)) named.tensor->node()->grad = Tensor();

  Spent spent;
  reset_peak(device);
  int64_t result = 0;
  int64_t operations = operations_of([&] {
    const Tensor y = attention.forward({.queries = asked, .keys = seen, .mask = mask});
    rows = rows_of(y, projections.found);
    result = y.bytes();
    backward(y, slope);
  });
  const MemoryUse use = memory_use(device);
  spent.bytes = static_cast<double>(use.peak - use.live - result);
  for (const auto& [layer, count] : rows) {
    const Tensor x = leaf(numbers(Shape{count, layer->weight.extent(1)}, 6, device));
    operations -= operations_of([&, linear = layer] {  // clang 15 does not take a part of a pair by reference
      const Tensor y = (*linear)(x);
      backward(y, like(y));
    });
  }
  spent.operations = static_cast<double>(operations);
  return spent;
}

CountedGrowth counted_growth(const Traits& traits, Device device,
                             const std::function<Spent(const StepExtent&)>& step) {
  CountedGrowth counted;
  for (const bool bytes : {false, true}) {
    const auto exponent = [&](bool by_width) {
      const StepExtent start = start_of(traits, device, bytes, by_width);
      StepExtent doubled = start;
      (by_width ? doubled.width : doubled.length) *= 2;
      const Spent low = step(start), high = step(doubled);
      return bytes ? std::log2(high.bytes / low.bytes) : std::log2(high.operations / low.operations);
    };
    (bytes ? counted.memory : counted.time) = {.length = exponent(false), .width = exponent(true)};
  }
  return counted;
}

CountedGrowth counted_growth(const Variant& variant) {
  return counted_growth(variant.traits, Device::cpu, [&](const StepExtent& extent) {
    const bool causal = !variant.traits.full;
    Rng rng(1);
    const auto attention =
        make_attention(variant, {variant.traits.name, {}},
                       {.width = extent.width, .causal = causal, .max_length = extent.length}, rng);
    const Tensor x = numbers(Shape{extent.batch, extent.length, extent.width}, 101, Device::cpu);
    return count_step(*attention, causal ? Mask::causal() : Mask::none(), x, x);
  });
}

}  // namespace heed
