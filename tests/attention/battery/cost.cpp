// Battery: costs, as operations and bytes counted at two sizes. It uses no clock, so it is deterministic.
#include <cmath>

#include "heed/attention/counted_cost.h"
#include "heed/tests/attention/battery/kit.h"
#if HEED_CUDA_EMULATED
#include "heed/core/cuda/emulator/cuda_runtime.h"
#endif

namespace heed::battery {
namespace {

void compare(Report& report, const char* what, const char* doubled, double counted, double declared) {
  if (!(std::abs(std::pow(2.0, counted - declared) - 1) <= 0.1)) {
    note(report, what, " grow ", std::pow(2.0, counted), " times when the ", doubled, " doubles; ",
         std::pow(2.0, declared), " times is declared");
  }
}

/// While it lives, an emulated device computes nothing: kernels are counted where they are asked for.
class CountingOnly {
#if HEED_CUDA_EMULATED
 public:
  CountingOnly() : before_(emulated::order_streams(emulated::StreamOrder::never)) {}
  ~CountingOnly() { emulated::order_streams(before_); }
  CountingOnly(const CountingOnly&) = delete;
  CountingOnly& operator=(const CountingOnly&) = delete;

 private:
  emulated::StreamOrder before_;
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
  for (const auto& [what, found, declared] :
       {std::tuple{"operations", counted.time, setting.variant.traits.time},
        {"bytes", counted.memory, setting.variant.traits.memory}}) {
    compare(report, what, "length", found.length, declared.length);
    compare(report, what, "width", found.width, declared.width);
  }
  return report;
}

}  // namespace heed::battery
