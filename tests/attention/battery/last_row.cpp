// Battery: for its last query, which sees all keys, a causal attention equals the bidirectional one, even
// where later keys are much larger than earlier ones.
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {
namespace {

Tensor last_position(const Tensor& y) { return positions(y, y.extent(1) - 1, y.extent(1)); }

/// The last output of decoding step by step with a cache.
Tensor last_step(const Host& host) {
  const auto cache = host.attention->new_cache();
  Tensor y;
  for (int64_t t = 0; t < host.queries.extent(1); ++t) {
    const Tensor x = positions(host.queries, t, t + 1);
    y = host.attention->forward({.queries = x, .keys = x, .mask = host.mask(), .cache = cache.get()});
  }
  return y;
}

}  // namespace

Report last_row(const Setting& setting) {
  const Traits& traits = setting.variant.traits;
  if (setting.mode != Mode::causal || !traits.bidirectional || !traits.last_row) return {};
  Setting bidirectional = setting;
  bidirectional.mode = Mode::self;
  Report report;
  const NoGrad no_grad;
  const double max_error = 1e-9 * traits.tolerance;
  for (const double scale : {1, 3, 10, 30, 100}) {
    const Sizes sizes{.queries = 64, .keys = 64, .width = 32};
    Host causal = host_of(setting, sizes, DType::f64), two_sided = host_of(bidirectional, sizes, DType::f64);
    causal.queries = causal.keys = two_sided.queries = two_sided.keys = causal.queries * scale;
    const Tensor expected = last_position(two_sided.forward());
    const double error = distance(last_position(causal.forward()), expected);
    if (error > max_error)
      note(report, "at inputs of ", scale, " the last causal output differs by ", error,
           " from the two-sided one");
    const double step_error = traits.steps ? distance(last_step(causal), expected) : 0;
    if (step_error > max_error)
      note(report, "at inputs of ", scale, " the last step differs by ", step_error,
           " from the two-sided output");
  }
  return report;
}

}  // namespace heed::battery
