// Battery: costs, as operations and bytes counted at two sizes. It uses no clock, so it is deterministic.
#include <cmath>

#include "heed/attention/counted_cost.h"
#include "heed/tests/attention/battery/kit.h"
#if HEED_CUDA_EMULATED
#include "heed/core/cuda/emulator/cuda_runtime.h"
#endif

namespace heed::battery {
namespace {

/// Reports a counted exponent that makes a doubled size cost more than 10 % more or less than declared.
void compare(Report& report, const char* cost, const char* size, double counted, double declared) {
  if (!(std::abs(std::pow(2.0, counted - declared) - 1) <= 0.1)) {
    note(report, cost, " grow ", std::pow(2.0, counted), " times when the ", size, " doubles; ",
         std::pow(2.0, declared), " times is declared");
  }
}

/// Keeps an emulated device from running kernels while it lives: operations are counted at the launch.
class CountingOnly {
#if HEED_CUDA_EMULATED
 public:
  CountingOnly() : previous_order_(emulated::order_streams(emulated::StreamOrder::never)) {}
  ~CountingOnly() { emulated::order_streams(previous_order_); }
  CountingOnly(const CountingOnly&) = delete;
  CountingOnly& operator=(const CountingOnly&) = delete;

 private:
  emulated::StreamOrder previous_order_;
#endif
};

}  // namespace

Report cost(const Setting& setting) {
  [[maybe_unused]] const CountingOnly counting;
  const CountedGrowth counted =
      counted_growth(setting.variant.traits, setting.device, [&](const StepExtent& extent) {
        const Host host = host_of(setting, {.batch = extent.batch,
                                            .queries = extent.length,
                                            .keys = extent.length,
                                            .width = extent.width,
                                            .heads = 1});
        return count_step(*host.attention, host.mask(), host.queries, host.keys);
      });
  Report report;
  for (const auto& [cost, growth, declared] :
       {std::tuple{"operations", counted.time, setting.variant.traits.time},
        {"bytes", counted.memory, setting.variant.traits.memory}}) {
    compare(report, cost, "length", growth.length, declared.length);
    compare(report, cost, "width", growth.width, declared.width);
  }
  return report;
}

}  // namespace heed::battery
