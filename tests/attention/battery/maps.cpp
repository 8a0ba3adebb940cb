// Battery: recorded maps have the rows, masks and products that the traits declare.
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {
namespace {

/// Checks a map [B, H, Tq, Tk]: masked keys have no weight; where the traits promise it, no weight is
/// negative and rows sum to one.
void check_rows(Report& report, const Setting& setting, const Host& host, const Tensor& map) {
  const int64_t batch = map.extent(0), heads = map.extent(1), queries = map.extent(2), keys = map.extent(3);
  const std::vector<double> lengths = host.lengths ? host.lengths.to_doubles() : std::vector<double>();
  const std::vector<double> weights = map.to_doubles();
  const MapKind kind = setting.variant.traits.map;
  const bool may_lack_rows = kind == MapKind::inside || kind == MapKind::stages;
  const bool sums_to_one = may_lack_rows || kind == MapKind::exact;
  double worst_sum_error = 0, max_masked = 0, min_weight = 0;
  for (int64_t row = 0; row < batch * heads * queries; ++row) {
    const int64_t i = row % queries, b = row / queries / heads;
    int64_t num_visible = setting.mode == Mode::causal ? i + 1 : keys;
    if (!lengths.empty())
      num_visible = std::min(num_visible, static_cast<int64_t>(lengths[static_cast<size_t>(b)]));
    double row_sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      const double weight = weights[static_cast<size_t>(row * keys + j)];
      row_sum += weight;
      min_weight = std::min(min_weight, weight);
      if (j >= num_visible) max_masked = std::max(max_masked, std::abs(weight));
    }
    // A pattern may have no key that is not padding; a stage may be of some queries only.
    const bool is_legal_zero_row = row_sum == 0 && (may_lack_rows || !lengths.empty());
    if (num_visible > 0 && !is_legal_zero_row)
      worst_sum_error = std::max(worst_sum_error, std::abs(row_sum - 1));
  }
  if (max_masked != 0) note(report, "a masked key has weight ", max_masked);
  if (sums_to_one && !(worst_sum_error <= 1e-4 * setting.variant.traits.tolerance))
    note(report, "a row of the map is ", worst_sum_error, " away from a sum of one");
  if (sums_to_one && min_weight < 0) note(report, "a weight of the map is negative, ", min_weight);
}

/// Checks that there are at least two stages, the first recorded by the attention itself, that each is a map
/// of shape `expected`, and that training (`noisy`) records the same maps, without dropout.
void check_stages(Report& report, const Setting& setting, const Host& host, const Shape& expected,
                  const MapRecorder& recorder, const MapRecorder& noisy) {
  if (recorder.maps.size() < 2 || recorder.maps[0].module != host.attention.get())
    note(report, recorder.maps.size(), " maps are shown of an attention in stages");
  for (size_t n = 0; n < recorder.maps.size(); ++n) {
    const Tensor& weights = recorder.maps[n].weights;
    if (!(weights.shape() == expected)) {
      note(report, "stage ", n, " shows a map ", weights.shape(), " instead of ", expected);
      continue;
    }
    check_rows(report, setting, host, weights);
    if (noisy.maps.size() != recorder.maps.size() || !same_bits(noisy.maps[n].weights, weights))
      note(report, "the map shown has dropout in it");
  }
}

/// Checks the one map of an attention without stages: its rows, and where the traits promise it, that the map
/// of training (`noisy`) has the same bits and that map times values is `output`.
void check_map(Report& report, const Setting& setting, const Host& host, const Sizes& sizes,
               const Tensor& weights, const MapRecorder& noisy, const Tensor& output) {
  check_rows(report, setting, host, weights);
  // An intermediate map follows from states that dropout has changed.
  if (setting.variant.traits.map == MapKind::inside && noisy.maps.size() == 1)
    check_rows(report, setting, host, noisy.maps[0].weights);
  else if (noisy.maps.size() != 1 || !same_bits(noisy.maps[0].weights, weights))
    note(report, "the map shown has dropout in it");
  const auto* layer = dynamic_cast<const MultiHeadAttention*>(host.attention.get());
  if (layer == nullptr) return;
  const Shape split{sizes.batch, sizes.keys, sizes.heads, sizes.width / sizes.heads};
  const Tensor values = transpose(reshape(layer->value(host.keys), split), 1, 2);
  const Tensor joined = reshape(transpose(matmul(weights, values), 1, 2), host.queries.shape());
  const double difference = distance(layer->output(joined), output);
  if (difference > 2e-5 * setting.variant.traits.tolerance)
    note(report, "map times values differs from the output by ", difference);
}

}  // namespace

Report map(const Setting& setting) {
  const Traits& traits = setting.variant.traits;
  Report report;
  for (Sizes sizes : small_and_large) {
    sizes = with_keys_of_mode(sizes, setting);
    sizes.batch = 3;
    sizes.dropout = 0.2;
    for (const bool padded : {false, true}) {
      if (padded && !traits.padding) continue;
      const NoGrad no_grad;
      Host host = host_of(setting, sizes);
      if (padded) host.lengths = lengths_of({static_cast<int32_t>(sizes.keys), 3, 0}, setting.device);
      MapRecorder recorder, noisy;
      const Tensor output = host.forward(), recorded_output = host.forward({.recorder = &recorder});
      if (!same_bits(output, recorded_output))
        note(report, "looking changes the output by ", distance(recorded_output, output));
      Rng rng(5, setting.device), equal_rng(5, setting.device);
      if (!same_bits(host.forward({.rng = &rng}), host.forward({.rng = &equal_rng, .recorder = &noisy})))
        note(report, "looking changes the output of a training step");
      const Shape expected{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
      if (traits.map == MapKind::none) {
        if (!recorder.maps.empty()) note(report, "a map is shown, but the traits say that there is none");
      } else if (traits.map == MapKind::stages) {
        check_stages(report, setting, host, expected, recorder, noisy);
      } else if (recorder.maps.size() != 1 || !(recorder.maps[0].weights.shape() == expected) ||
                 recorder.maps[0].module != host.attention.get()) {
        note(report, recorder.maps.size(), " maps are shown instead of one of ", expected,
             " by the attention itself");
      } else {
        check_map(report, setting, host, sizes, recorder.maps[0].weights, noisy, output);
      }
    }
  }
  return report;
}

}  // namespace heed::battery
