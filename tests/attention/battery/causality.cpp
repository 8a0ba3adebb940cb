// Battery: a causal output does not depend on later inputs, and does on its own.
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {

Report causality(const Setting& setting) {
  if (setting.mode != Mode::causal) return {};
  Report report;
  for (const Sizes& sizes : small_and_large) {
    const NoGrad quiet;
    Host host = host_of(setting, sizes);
    const int64_t length = sizes.queries;
    const Tensor original_inputs = host.queries, original = host.forward();
    for (const int64_t t : {length - 1, length / 2}) {  // the first position whose input changes
      host.queries = host.keys = with_garbage(with_garbage(original_inputs, 0, t, 10), 1, t, 10);
      const Tensor changed = host.forward();
      if (!same_bits(positions(changed, 0, t), positions(original, 0, t))) {
        note(report, "outputs before position ", t, " of ", length, " move by ",
             distance(positions(changed, 0, t), positions(original, 0, t)), " when later inputs change");
      }
      if (same_bits(positions(changed, t, t + 1), positions(original, t, t + 1)))
        note(report, "the output at position ", t, " of ", length, " does not depend on its own input");
    }
  }
  return report;
}

}  // namespace heed::battery
