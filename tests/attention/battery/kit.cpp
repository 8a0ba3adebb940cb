// Hosts, inputs and comparisons of the battery.
#include "heed/tests/attention/battery/kit.h"

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
  Rng rng(seed, device);
  const Tensor x(shape, dtype, device);
  fill_normal(x, 0, 1, rng);
  return x;
}

Tensor lengths_of(const std::vector<int32_t>& lengths, Device device) {
  return Tensor::of<int32_t>(lengths, Shape{static_cast<int64_t>(lengths.size())}, device);
}

Mask Host::mask() const {
  const Mask padding = lengths ? Mask::lengths(lengths) : Mask::none();
  return setting.mode == Mode::causal ? Mask::causal() & padding : padding;
}

Tensor Host::forward(const ForwardContext& context) const {
  AttentionInput now = input();
  now.context = context;
  return attention->forward(now);
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
  Host host{
      setting,
      make_attention(setting.variant, {setting.variant.traits.name, {}}, config_of(setting, sizes), rng),
      {},
      {},
      {}};
  if (dtype != DType::f32) convert(*host.attention, dtype);
  if (setting.device != Device::cpu) move_to(*host.attention, setting.device);
  host.queries = numbers(Shape{sizes.batch, sizes.queries, sizes.width}, 100 + seed, dtype, setting.device);
  host.keys = host.crosses()
                  ? numbers(Shape{sizes.batch, sizes.keys, sizes.width}, 200 + seed, dtype, setting.device)
                  : host.queries;
  return host;
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

Tensor with_garbage(const Tensor& x, int64_t b, int64_t begin, double value) {
  const int64_t batch = x.extent(0), length = x.extent(1), width = x.extent(2);
  const std::vector<double> random = numbers(x.shape(), 999).to_doubles();
  std::vector<double> all = x.to_doubles();
  for (int64_t i = 0; i < batch * length * width; ++i) {
    if (i / width / length == b && i / width % length >= begin) {
      all[static_cast<size_t>(i)] = value * random[static_cast<size_t>(i)];
    }
  }
  if (x.dtype() == DType::f64) return Tensor::of<double>(all, x.shape(), x.device());
  const std::vector<float> narrow(all.begin(), all.end());
  return Tensor::of<float>(narrow, x.shape(), x.device());
}

}  // namespace heed::battery
