// The battery on costs: operations and bytes are counted at two sizes. No clock, so no flakiness.
#include <algorithm>
#include <cmath>

#include "core/count.h"
#include "nn/linear.h"
#include "tests/attention/battery_kit.h"

namespace heed::battery {
namespace {

struct Cost {
  double operations = 0;  ///< without those of the projections
  double bytes = 0;       ///< at the peak, without inputs, outputs, parameters and all their gradients
};

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

int64_t operations_of(const std::function<void()>& work) {
  Count::reset();
  work();
  return Count::flops().load();
}

/// The extents of a step with one head.
struct Extent {
  int64_t batch, length, width;
};

/// One training step.
Cost cost_of(const Setting& setting, const Extent& extent) {
  const WithThreads one(1);  // working memory is one part a thread
  Host host = host_of(setting, {.batch = extent.batch,
                                .queries = extent.length,
                                .keys = extent.length,
                                .width = extent.width,
                                .heads = 1});
  host.make_leaves();
  const Tensor slope = numbers(host.queries.shape(), 5, DType::f32, setting.device);

  Projections projections;
  host.attention->fields(projections);
  int64_t elsewhere = 0;
  for (const Linear* linear : projections.found) {
    const Tensor x = leaf(numbers(Shape{extent.batch * extent.length, linear->weight.extent(1)}, 6,
                                  DType::f32, setting.device));
    elsewhere += operations_of([&] {
      const Tensor y = (*linear)(x);
      backward(y, like(y));
    });
  }
  host.clear_gradients();

  Cost cost;
  reset_peak(setting.device);
  int64_t result = 0;
  cost.operations = static_cast<double>(operations_of([&] {
                                          const Tensor y = host.forward();
                                          result = y.bytes();
                                          backward(y, slope);
                                        }) -
                                        elsewhere);
  const MemoryUse use = memory_use(setting.device);
  cost.bytes = static_cast<double>(use.peak - use.live - result);
  return cost;
}

/// Where to start doubling so that the leading term of what is declared outweighs the rest. Bytes linear in
/// the length are looked at in a batch: kernels cut a lone sequence into shares for threads.
Extent usual_start(const Growth& growth, bool bytes, bool by_width) {
  const bool pairs = growth.length >= 1.5;  // something for each pair of positions
  if (bytes && pairs && growth.width == 0) return {1, by_width ? 1024 : 512, 8};
  if (bytes) return pairs ? Extent{1, by_width ? 192 : 128, 16} : Extent{16, 256, by_width ? 32 : 64};
  if (by_width && growth.width >= 2.5)
    return {1, 4800, 48};                         // longer than monomials of the doubled width are many
  if (!by_width && !pairs) return {1, 1024, 16};  // the first and last of its chunks cost less
  return {1, 256, by_width && growth.width >= 1.5 ? 512 : 16};
}

/// The same, at the length that the traits name if that is longer.
Extent start_of(const Traits& traits, bool bytes, bool by_width) {
  Extent start = usual_start(bytes ? traits.memory : traits.time, bytes, by_width);
  if (traits.from > start.length) {
    start.batch = std::min(start.batch, std::max<int64_t>(4, start.batch * 1024 / traits.from));
    start.length = traits.from;
  }
  return start;
}

void compare(Report& report, const char* what, const char* doubled, double low, double high,
             double exponent) {
  const double found = high / low, declared = std::pow(2.0, exponent);
  if (!(low > 0) || !(std::abs(found / declared - 1) <= 0.1)) {
    note(report, what, " grow ", found, " times when the ", doubled, " doubles; ", declared,
         " times is declared");
  }
}

}  // namespace

Report cost(const Setting& setting) {
  const Traits& traits = setting.variant.traits;
  Report report;
  for (const bool bytes : {false, true}) {
    const Growth& growth = bytes ? traits.memory : traits.time;
    const auto measured = [&](const Extent& extent) {
      const Cost found = cost_of(setting, extent);
      return bytes ? found.bytes : found.operations;
    };
    const char* what = bytes ? "bytes" : "operations";
    const Extent s = start_of(traits, bytes, false), t = start_of(traits, bytes, true);
    compare(report, what, "length", measured(s), measured({s.batch, 2 * s.length, s.width}), growth.length);
    compare(report, what, "width", measured(t), measured({t.batch, t.length, 2 * t.width}), growth.width);
  }
  return report;
}

}  // namespace heed::battery
