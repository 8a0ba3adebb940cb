// Attentions with their inputs, random numbers and comparisons of the battery.
#include "heed/tests/attention/battery/kit.h"

#include "heed/attention/counted_cost.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heed::battery {

const char* to_string(Mode mode) {
  switch (mode) {
    case Mode::self:
      return "self";
    case Mode::causal:
      return "causal";
    case Mode::cross:
      return "cross";
  }
  return "";
}

std::vector<Setting> settings(const Variant& variant) {
  std::vector<Setting> out;
  for (const Device device : heed::devices()) {
    if (variant.traits.bidirectional)
      out.push_back({.variant = variant, .mode = Mode::self, .device = device});
    if (variant.traits.causal) out.push_back({.variant = variant, .mode = Mode::causal, .device = device});
    if (variant.traits.cross) out.push_back({.variant = variant, .mode = Mode::cross, .device = device});
  }
  return out;
}

Sizes with_keys_of_mode(Sizes sizes, const Setting& setting) {
  if (setting.mode != Mode::cross) sizes.keys = sizes.queries;
  return sizes;
}

AttentionConfig config_of(const Setting& setting, const Sizes& sizes) {
  return {.d_model = sizes.width,
          .heads = sizes.heads,
          .kv_heads = setting.kv_heads,
          .head_dim = setting.head_dim,
          .causal = setting.mode == Mode::causal,
          .cross = setting.mode == Mode::cross,
          .max_length = std::max(sizes.queries, sizes.keys),
          .dropout = sizes.dropout,
          .modifiers = setting.modifiers};
}

Tensor numbers(const Shape& shape, uint64_t seed, DType dtype, Device device) {
  return normal_tensor(shape, seed, device, dtype);
}

Tensor lengths_of(const std::vector<int32_t>& lengths, Device device) {
  return Tensor::of<int32_t>(lengths, Shape{static_cast<int64_t>(lengths.size())}, device);
}

Mask Host::mask() const {
  const Mask padding = lengths ? Mask::lengths(lengths) : Mask::none();
  return setting.mode == Mode::causal ? Mask::causal() & padding : padding;
}

Tensor Host::forward(const ForwardContext& context) const {
  AttentionInput call = input();
  call.context = context;
  return attention->forward(call);
}

void Host::make_leaves() {
  queries = leaf(queries);
  keys = crosses() ? leaf(keys) : queries;
}

std::vector<std::pair<std::string, Tensor>> Host::leaves() const {
  std::vector<std::pair<std::string, Tensor>> out;
  if (queries.node()) out.emplace_back("the queries", queries);
  if (crosses() && keys.node()) out.emplace_back("the keys", keys);
  for (const Named& named : parameters(*attention)) out.emplace_back(named.name, *named.tensor);
  return out;
}

void Host::clear_gradients() const {
  for (const auto& [name, tensor] : leaves()) tensor.node()->grad = Tensor();
}

Host host_of(const Setting& setting, const Sizes& sizes, DType dtype, uint64_t seed) {
  Rng rng(seed);
  const Spec defaults{setting.variant.traits.name, {}};
  Host host{.setting = setting,
            .attention = make_attention(setting.variant, defaults, config_of(setting, sizes), rng)};
  if (dtype != DType::f32) convert(*host.attention, dtype);
  if (setting.device != Device::cpu) move_to(*host.attention, setting.device);
  host.queries = numbers(Shape{sizes.batch, sizes.queries, sizes.width}, 100 + seed, dtype, setting.device);
  host.keys = host.crosses()
                  ? numbers(Shape{sizes.batch, sizes.keys, sizes.width}, 200 + seed, dtype, setting.device)
                  : host.queries;
  return host;
}

void check_gradients(Report& report, Host& host, GradcheckOptions options, Dropout dropout) {
  check_listed(*host.attention, sum(host.forward()));
  host.make_leaves();
  const auto leaves = host.leaves();
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : leaves) tensors.push_back(tensor);
  const auto forward = [&] {
    Rng rng(9, host.setting.device);  // each call draws the same numbers
    return host.forward({.rng = dropout == Dropout::on ? &rng : nullptr});
  };
  options.tolerance = 1e-6 * host.setting.variant.traits.tolerance;
  const GradcheckReport found = gradcheck(forward, tensors, options);
  if (found.passed) return;
  const std::string name = found.input >= 0 ? leaves[static_cast<size_t>(found.input)].first : "nothing";
  note(report, "the gradient of ", name, ": ", to_string(found));
}

double distance(const Tensor& found, const Tensor& expected) {
  if (!found || !expected || !(found.shape() == expected.shape())) return HUGE_VAL;
  const std::vector<double> a = found.to_doubles(), b = expected.to_doubles();
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    if (!(error <= worst)) worst = std::isfinite(error) ? error : HUGE_VAL;
  }
  return worst;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  return x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

bool all_finite(const Tensor& x) {
  const std::vector<double> values = x.to_doubles();
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

bool all_zero(const Tensor& x) {
  const std::vector<double> values = x.to_doubles();
  return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
}

Tensor positions(const Tensor& x, int64_t begin, int64_t end) {
  return view::slice(x.detach(), 1, begin, end);
}

Tensor with_garbage(const Tensor& x, int64_t b, int64_t begin, double size) {
  const int64_t length = x.extent(1), width = x.extent(2);
  const std::vector<double> random = numbers(x.shape(), 999).to_doubles();
  std::vector<double> values = x.to_doubles();
  const auto first = static_cast<size_t>((b * length + begin) * width),
             end = static_cast<size_t>((b + 1) * length * width);
  for (size_t i = first; i < end; ++i) values[i] = size * random[i];
  if (x.dtype() == DType::f64) return Tensor::of<double>(values, x.shape(), x.device());
  return Tensor::of<float>(std::vector<float>(values.begin(), values.end()), x.shape(), x.device());
}

Variant with_options(const std::string& text) {
  const Spec new_defaults = parse_spec(text);
  Variant variant = variant_named(new_defaults.name);
  const auto with_defaults = [new_defaults](Spec spec) {
    for (const auto& [key, value] : new_defaults.options) {
      const bool is_given = std::any_of(spec.options.begin(), spec.options.end(),
                                        [&key = key](const auto& option) { return option.first == key; });
      if (!is_given) spec.options.emplace_back(key, value);
    }
    return spec;
  };
  variant.make = [make = variant.make, with_defaults](const AttentionConfig& config, const Spec& spec,
                                                      Rng& rng) {
    return make(config, with_defaults(spec), rng);
  };
  variant.options = [options = variant.options, with_defaults](const Spec& spec) {
    return options(with_defaults(spec));
  };
  return variant;
}

}  // namespace heed::battery
