// Battery: gradients of parameters and inputs match central differences.
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {

Report gradient(const Setting& setting) {
  if (setting.device != Device::cpu) return {};  // devices() compares them with the CPU's
  struct Case {
    Sizes sizes{};
    bool is_padded = false;
    GradcheckOptions options{};
    Dropout dropout = Dropout::off;
  };
  const Sizes few{.queries = 5, .keys = 7}, one{.queries = 1, .keys = 1, .width = 3, .heads = 3},
      dropped{.queries = 6, .keys = 6, .width = 6, .dropout = 0.3},
      several_tiles{.queries = 70, .keys = 83, .width = 6};
  Report report;
  for (const Case& given : {Case{.sizes = few}, Case{.sizes = few, .is_padded = true}, Case{.sizes = one},
                            Case{.sizes = dropped, .is_padded = true, .dropout = Dropout::on},
                            Case{.sizes = several_tiles, .is_padded = true, .options = {.samples = 4}}}) {
    if (given.is_padded && !setting.variant.traits.padding) continue;
    Host host = host_of(setting, given.sizes, DType::f64);
    const auto keys = static_cast<int32_t>(host.keys.extent(1));
    if (given.is_padded) host.lengths = lengths_of({keys, keys - 2}, setting.device);
    check_gradients(report, host, given.options, given.dropout);
  }
  return report;
}

}  // namespace heed::battery
