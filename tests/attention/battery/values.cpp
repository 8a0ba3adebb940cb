// Battery: causality, padding, maps.
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {
namespace {

const std::vector<Sizes> small_and_large{{.queries = 5, .keys = 7}, {.queries = 70, .keys = 131}};

Sizes square(Sizes sizes, const Setting& setting) {
  if (setting.mode != Mode::cross) sizes.keys = sizes.queries;
  return sizes;
}

}  // namespace

Report causality(const Setting& setting) {
  if (setting.mode != Mode::causal) return {};
  Report report;
  for (const Sizes& sizes : small_and_large) {
    const NoGrad quiet;
    Host host = host_of(setting, sizes);
    const int64_t length = sizes.queries;
    const Tensor x = host.queries;
    const Tensor before = host.forward();
    for (const int64_t changed : {length - 1, length / 2}) {
      host.queries = host.keys = with_garbage(with_garbage(x, 0, changed, 10), 1, changed, 10);
      const Tensor after = host.forward();
      if (!same_bits(positions(after, 0, changed), positions(before, 0, changed))) {
        note(report, "outputs before position ", changed, " of ", length, " move by ",
             distance(positions(after, 0, changed), positions(before, 0, changed)),
             " when later inputs change");
      }
      if (same_bits(positions(after, changed, changed + 1), positions(before, changed, changed + 1))) {
        note(report, "the output at position ", changed, " of ", length, " does not depend on its own input");
      }
    }
  }
  return report;
}

Report padding(const Setting& setting) {
  if (!setting.variant.traits.padding) return {};
  Report report;
  for (Sizes sizes : small_and_large) {
    sizes = square(sizes, setting);
    sizes.batch = 3;
    const int64_t real = sizes.keys - 3;  // keys of the second row; the third has none
    Host host = host_of(setting, sizes);
    host.lengths =
        lengths_of({static_cast<int32_t>(sizes.keys), static_cast<int32_t>(real), 0}, setting.device);
    Tensor weights = numbers(host.queries.shape(), 7, DType::f32, setting.device);
    if (!host.crosses()) {  // padded queries are nobody's business: a loss ignores them
      weights = with_garbage(with_garbage(weights, 1, real, 0), 2, 0, 0);
    }
    const auto run = [&](Host& on, Tensor& y) {
      on.make_leaves();
      on.clear_gradients();
      y = on.forward();
      backward(sum(y * weights));
    };
    Tensor clean, dirty;
    run(host, clean);
    std::vector<std::pair<std::string, Tensor>> gradients;
    for (const auto& [name, tensor] : host.leaves()) gradients.emplace_back(name, grad_of(tensor).detach());

    const auto used = [&](const Tensor& y, int64_t b) {
      const Tensor row = view::slice(y.detach(), 0, b, b + 1);
      return b == 1 && !host.crosses() ? positions(row, 0, real) : row;
    };
    if (!all_zero(used(clean, 2))) note(report, "a row without keys does not give zeros");
    const Tensor keys = host.keys.detach();
    for (const double size : {1e15, 1e30, HUGE_VAL, std::nan("")}) {
      host.keys = with_garbage(with_garbage(keys, 1, real, size), 2, 0, size);
      if (!host.crosses()) host.queries = host.keys;
      run(host, dirty);
      const std::string garbage = text("garbage of size ", size, " in padded keys");
      if (!all_finite(dirty)) note(report, garbage, " gives outputs that are not finite");
      for (const int64_t b : {0, 1}) {
        if (distance(used(dirty, b), used(clean, b)) != 0)
          note(report, garbage, " moves outputs by ", distance(used(dirty, b), used(clean, b)));
      }
      if (!all_zero(used(dirty, 2))) note(report, garbage, " gives a row without keys more than zeros");
      const Tensor dkeys = grad_of(host.keys);
      if (!all_zero(positions(view::slice(dkeys, 0, 1, 2), real, sizes.keys)) ||
          !all_zero(view::slice(dkeys, 0, 2, 3))) {
        note(report, garbage, " gets a gradient");
      }
      const auto leaves = host.leaves();
      for (size_t i = 0; i < leaves.size(); ++i) {
        const double moved = distance(grad_of(leaves[i].second), gradients[i].second);
        if (!(moved <= 1e-5 * setting.variant.traits.tolerance))
          note(report, garbage, " moves the gradient of ", leaves[i].first, " by ", moved);
      }
    }
    // The row alone, without its padding.
    const NoGrad quiet;
    Host alone = host_of(setting, sizes);
    alone.queries = view::slice(alone.queries, 0, 1, 2);
    alone.keys = positions(view::slice(alone.keys, 0, 1, 2), 0, real);
    if (!alone.crosses()) alone.queries = alone.keys;
    const double off = distance(used(clean, 1), alone.forward());
    if (off > 2e-5 * setting.variant.traits.tolerance)
      note(report, "a padded row differs by ", off, " from the row alone");
  }
  return report;
}

namespace {

void check_rows(Report& report, const Setting& setting, const Host& host, const Tensor& map) {
  const int64_t batch = map.extent(0), heads = map.extent(1), queries = map.extent(2), keys = map.extent(3);
  const std::vector<double> lengths = host.lengths ? host.lengths.to_doubles() : std::vector<double>();
  const std::vector<double> weights = map.to_doubles();
  const bool inside =
      setting.variant.traits.map == MapKind::inside || setting.variant.traits.map == MapKind::stages;
  const bool exact = inside || setting.variant.traits.map == MapKind::exact;
  double worst_sum = 0, masked = 0, lowest = 0;
  for (int64_t row = 0; row < batch * heads * queries; ++row) {
    const int64_t i = row % queries, b = row / queries / heads;
    int64_t open = setting.mode == Mode::causal ? i + 1 : keys;
    if (!lengths.empty()) open = std::min(open, static_cast<int64_t>(lengths[static_cast<size_t>(b)]));
    double total = 0;
    for (int64_t j = 0; j < keys; ++j) {
      const double weight = weights[static_cast<size_t>(row * keys + j)];
      total += weight;
      lowest = std::min(lowest, weight);
      if (j >= open) masked = std::max(masked, std::abs(weight));
    }
    // A pattern may have no key that is not padding; a stage may be of some queries only.
    const bool nothing = total == 0 && (inside || !lengths.empty());
    if (open > 0 && !nothing) worst_sum = std::max(worst_sum, std::abs(total - 1));
  }
  if (masked != 0) note(report, "a masked key has weight ", masked);
  if (exact && !(worst_sum <= 1e-4 * setting.variant.traits.tolerance))
    note(report, "a row of the map is ", worst_sum, " away from a sum of one");
  if (exact && lowest < 0) note(report, "a weight of the map is negative, ", lowest);
}

/// Each stage is a map that fits, the first by the attention itself, and no noise is in it.
void check_stages(Report& report, const Setting& setting, const Host& host, const Shape& wanted,
                  const MapRecorder& recorder, const MapRecorder& noisy) {
  if (recorder.maps.size() < 2 || recorder.maps[0].module != host.attention.get())
    note(report, recorder.maps.size(), " maps are shown of an attention in stages");
  for (size_t n = 0; n < recorder.maps.size(); ++n) {
    const Tensor& weights = recorder.maps[n].weights;
    if (!(weights.shape() == wanted)) {
      note(report, "stage ", n, " shows a map ", weights.shape(), " instead of ", wanted);
      continue;
    }
    check_rows(report, setting, host, weights);
    if (noisy.maps.size() != recorder.maps.size() || !same_bits(noisy.maps[n].weights, weights))
      note(report, "the map shown has dropout in it");
  }
}

}  // namespace

Report map(const Setting& setting) {
  const Traits& traits = setting.variant.traits;
  Report report;
  for (Sizes sizes : small_and_large) {
    sizes = square(sizes, setting);
    sizes.batch = 3;
    sizes.dropout = 0.2;
    for (const bool padded : {false, true}) {
      if (padded && !traits.padding) continue;
      const NoGrad quiet;
      Host host = host_of(setting, sizes);
      if (padded) host.lengths = lengths_of({static_cast<int32_t>(sizes.keys), 3, 0}, setting.device);
      MapRecorder recorder;
      const Tensor unseen = host.forward(), seen = host.forward({.recorder = &recorder});
      if (!same_bits(unseen, seen)) note(report, "looking changes the output by ", distance(seen, unseen));
      Rng one(5, setting.device), other(5, setting.device);
      MapRecorder noisy;
      if (!same_bits(host.forward({.rng = &one}), host.forward({.rng = &other, .recorder = &noisy}))) {
        note(report, "looking changes the output of a training step");
      }
      if (traits.map == MapKind::none) {
        if (!recorder.maps.empty()) note(report, "a map is shown, but the traits say that there is none");
        continue;
      }
      const Shape wanted{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
      if (traits.map == MapKind::stages) {
        check_stages(report, setting, host, wanted, recorder, noisy);
        continue;
      }
      if (recorder.maps.size() != 1 || !(recorder.maps[0].weights.shape() == wanted) ||
          recorder.maps[0].module != host.attention.get()) {
        note(report, recorder.maps.size(), " maps are shown instead of one of ", wanted,
             " by the attention itself");
        continue;
      }
      const Tensor weights = recorder.maps[0].weights;
      check_rows(report, setting, host, weights);
      // What is looked at inside follows states that dropout has touched before.
      if (traits.map == MapKind::inside && noisy.maps.size() == 1)
        check_rows(report, setting, host, noisy.maps[0].weights);
      else if (noisy.maps.size() != 1 || !same_bits(noisy.maps[0].weights, weights))
        note(report, "the map shown has dropout in it");
      if (const auto* layer = dynamic_cast<const MultiHeadAttention*>(host.attention.get())) {
        const Shape split{sizes.batch, sizes.keys, sizes.heads, sizes.width / sizes.heads};
        const Tensor values = transpose(reshape(layer->value(host.keys), split), 1, 2);
        const Tensor joined = reshape(transpose(matmul(weights, values), 1, 2), host.queries.shape());
        const double off = distance(layer->output(joined), unseen);
        if (off > 2e-5 * traits.tolerance) note(report, "map times values differs from the output by ", off);
      }
    }
  }
  return report;
}

}  // namespace heed::battery
