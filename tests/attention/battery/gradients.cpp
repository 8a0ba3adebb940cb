// Battery: gradients of parameters and inputs match central differences.
#include "heed/autograd/gradcheck.h"
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {

Report gradient(const Setting& setting) {
  if (setting.device != Device::cpu) return {};  // devices() compares them with the CPU's
  Report report;
  struct Case {
    Sizes sizes{};
    int64_t samples = 0;  // elements of each tensor that are checked; 0: all
    bool is_padded = false;
    bool has_dropout = false;
  };
  for (const Case& given :
       {Case{.sizes = {.queries = 5, .keys = 7}}, Case{.sizes = {.queries = 5, .keys = 7}, .is_padded = true},
        Case{.sizes = {.queries = 1, .keys = 1, .width = 3, .heads = 3}},
        Case{.sizes = {.queries = 6, .keys = 6, .width = 6, .dropout = 0.3},
        .is_padded = true,
        .has_dropout = true},
        Case{.sizes = {.queries = 70, .keys = 83, .width = 6}, .samples = 4, .is_padded = true}}) {
    if (given.is_padded && !setting.variant.traits.padding) continue;
    Host host = host_of(setting, given.sizes, DType::f64);
    if (given.is_padded) {
      const int64_t keys = host.keys.extent(1);
      host.lengths = lengths_of({static_cast<int32_t>(keys), static_cast<int32_t>(keys - 2)}, setting.device);
    }
    check_listed(*host.attention, sum(host.forward()));
    host.make_leaves();
    const auto leaves = host.leaves();
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : leaves) tensors.push_back(tensor);
    const auto forward = [&] {
      Rng rng(9, setting.device);  // each call draws the same numbers
      return host.forward({.rng = given.has_dropout ? &rng : nullptr});
    };
    const GradcheckReport check = gradcheck(
        forward, tensors, {.tolerance = 1e-6 * setting.variant.traits.tolerance, .samples = given.samples});
    if (!check.passed) {
      note(report, "the gradient of ",
           check.input >= 0 ? leaves[static_cast<size_t>(check.input)].first : "nothing", ": ",
           to_string(check));
    }
  }
  return report;
}

}  // namespace heed::battery
