// Battery: gradients, bit identity, options and files, and errors.
#include <algorithm>
#include <cmath>

#include "heed/autograd/gradcheck.h"
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {

Report gradient(const Setting& setting) {
  if (setting.device != Device::cpu) return {};  // devices() compares them with the CPU's
  Report report;
  struct Try {
    Sizes sizes;
    int64_t samples;
    bool padded;
    bool noisy = false;
  };
  for (const Try& attempt :
       {Try{{.queries = 5, .keys = 7}, 0, false}, Try{{.queries = 5, .keys = 7}, 0, true},
        Try{{.queries = 1, .keys = 1, .width = 3, .heads = 3}, 0, false},
        Try{{.queries = 6, .keys = 6, .width = 6, .dropout = 0.3}, 0, true, true},
        Try{{.queries = 70, .keys = 83, .width = 6}, 4, true}}) {
    if (attempt.padded && !setting.variant.traits.padding) continue;
    Host host = host_of(setting, attempt.sizes, DType::f64);
    if (attempt.padded) {
      const int64_t keys = host.keys.extent(1);
      host.lengths = lengths_of({static_cast<int32_t>(keys), static_cast<int32_t>(keys - 2)}, setting.device);
    }
    check_listed(*host.attention, sum(host.forward()));
    host.make_leaves();
    const auto leaves = host.leaves();
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : leaves) tensors.push_back(tensor);
    const auto forward = [&] {
      Rng noise(9, setting.device);  // each call draws the same numbers
      return host.forward({.rng = attempt.noisy ? &noise : nullptr});
    };
    const GradcheckReport check = gradcheck(
        forward, tensors, {.tolerance = 1e-6 * setting.variant.traits.tolerance, .samples = attempt.samples});
    if (!check.passed) {
      note(report, "the gradient of ",
           check.input >= 0 ? leaves[static_cast<size_t>(check.input)].first : "nothing", ": ",
           to_string(check));
    }
  }
  return report;
}

namespace {

/// The output and all gradients of one training step with dropout.
std::vector<Tensor> trained(const Setting& setting, const Sizes& sizes, bool noisy,
                            DType dtype = DType::f32) {
  Host host = host_of(setting, sizes, dtype);
  if (setting.variant.traits.padding) {
    host.lengths = lengths_of({static_cast<int32_t>(host.keys.extent(1)), 5}, setting.device);
  }
  host.make_leaves();
  Rng noise(11, setting.device);
  const Tensor y = host.forward({.rng = noisy ? &noise : nullptr});
  backward(y, numbers(y.shape(), 12, y.dtype(), y.device()));
  std::vector<Tensor> out{y.detach()};
  for (const auto& [name, tensor] : host.leaves()) out.push_back(grad_of(tensor));
  return out;
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!battery::same_bits(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

}  // namespace

Report devices(const Setting& setting) {
  // Wide enough that the projections are cut into pieces as well.
  const Sizes sizes{.queries = 200, .keys = 170, .width = 132, .heads = 3, .dropout = 0.1};
  Report report;
  const std::vector<Tensor> first = trained(setting, sizes, true);
  if (!same_bits(first, trained(setting, sizes, true)))
    note(report, "the same seed gives other bits the second time");
  for (const int count : {1, 2, 3, 4, 8}) {
    const WithThreads some(count);
    if (!same_bits(first, trained(setting, sizes, true))) note(report, count, " threads give other bits");
  }
  if (setting.device != Device::cpu) {
    Setting cpu = setting;
    cpu.device = Device::cpu;
    const auto of = [](size_t i) { return i == 0 ? std::string("the output") : text("gradient ", i); };
    const std::vector<Tensor> truth = trained(cpu, sizes, false, DType::f64),
                              exact = trained(setting, sizes, false, DType::f64),
                              here = trained(setting, sizes, false), there = trained(cpu, sizes, false);
    for (size_t i = 0; i < here.size(); ++i) {
      const double off = distance(exact[i], truth[i]);
      if (off > 1e-8 * setting.variant.traits.tolerance)
        note(report, of(i), " differs by ", off, " from the CPU's, both in f64");
      // In f32 as far from the truth as the CPU is, where a formula makes much of little.
      const double max_error = std::max(2e-4, 8 * distance(there[i], truth[i])),
                   rounded = distance(here[i], truth[i]);
      if (rounded > max_error)
        note(report, of(i), " in f32 differs by ", rounded, " from what it is in f64; at most ", max_error,
             " is due");
    }
  }
  return report;
}

Report round_trip(const Setting& setting) {
  Report report;
  const Variant& variant = setting.variant;
  const auto spelled = [&](const Spec& spec) {
    Spec full{spec.name, {}};
    for (const OptionText& option : variant.options(spec))
      full.options.emplace_back(option.name, option.value);
    return to_string(full);
  };
  const std::string once = spelled({variant.traits.name, {}});
  const std::string twice = spelled(parse_spec(once));
  if (once != twice) note(report, "options read back as ", twice, " instead of ", once);

  const NoGrad quiet;
  const Host host = host_of(setting, {}), other = host_of(setting, {}, DType::f32, 2);
  Host same = host_of(setting, {});
  same.attention = host_of(setting, {}, DType::f32, 2).attention;
  if (same_bits(std::vector{same.forward()}, std::vector{host.forward()}))
    note(report, "another seed gives the same attention");
  load_bytes(*same.attention, save_bytes(*host.attention));
  if (!same_bits(std::vector{same.forward()}, std::vector{host.forward()})) {
    note(report, "a saved attention loaded into another gives another output, off by ",
         distance(same.forward(), host.forward()));
  }
  if (save_bytes(*same.attention) != save_bytes(*host.attention))
    note(report, "saved again, the bytes differ");
  return report;
}

namespace {

struct ForeignMemory final : AttentionCache {
  void fields(Fields&) override {}
};

/// The text of the Error that a call throws; empty when it throws none.
template <class Call>
std::string error_of(const Call& input) {
  try {
    input();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// A bias is an Error, or it does what it says: -1e9 for the last key hides it.
void check_bias(Report& report, const Setting& setting) {
  Host host = host_of(setting, {.queries = 6, .keys = 6});
  const int64_t keys = host.keys.extent(1);
  std::vector<float> values(static_cast<size_t>(keys), 0.0f);
  values.back() = -1e9f;
  const Tensor bias = Tensor::of<float>(values, Shape{1, 1, 1, keys}, setting.device);
  AttentionInput input = host.input();
  input.mask = input.mask.with(expand(bias, Shape{1, 1, 6, keys}));
  Tensor y;
  if (!error_of([&] { y = host.attention->forward(input); }).empty()) return;
  if (same_bits(std::vector{y}, std::vector{host.forward()}))
    note(report, "a bias is neither refused nor obeyed");
  if (!setting.variant.traits.padding) return;
  host.lengths = lengths_of({static_cast<int32_t>(keys - 1), static_cast<int32_t>(keys - 1)}, setting.device);
  const double off = distance(y, host.forward());
  if (off > 2e-5 * setting.variant.traits.tolerance)
    note(report, "a bias that hides a key differs by ", off, " from a length that does");
}

}  // namespace

Report refusal(const Setting& setting) {
  Report report;
  const NoGrad quiet;
  const Traits& traits = setting.variant.traits;
  const Spec plain{traits.name, {}};
  const Host host = host_of(setting, {});
  const auto refused = [&](const char* what, const std::string& wanted, const auto& input) {
    const std::string error = error_of(input);
    if (error.empty()) {
      note(report, what, " is not refused");
    } else if (error.find(wanted) == std::string::npos || error.size() < 30) {
      note(report, what, " is refused without saying why: ", error);
    }
  };
  const auto make = [&](AttentionConfig config, const Spec& spec) {
    Rng rng(1);
    make_attention(setting.variant, spec, config, rng);
  };
  AttentionConfig config = config_of(setting, {});
  if (!traits.causal)
    refused("a causal host", traits.name, [&] { make({.d_model = 8, .heads = 2, .causal = true}, plain); });
  if (!traits.bidirectional)
    refused("a host that looks both ways", traits.name, [&] { make({.d_model = 8, .heads = 2}, plain); });
  if (!traits.cross)
    refused("a crossing host", traits.name, [&] { make({.d_model = 8, .heads = 2, .cross = true}, plain); });
  if (!traits.padding) {
    Host padded = host_of(setting, {});
    padded.lengths = lengths_of({3, 2}, setting.device);
    refused("padding", "length", [&] { padded.forward(); });
  }
  if ((host.attention->new_cache() != nullptr) != traits.steps) {
    note(report, "new_cache() gives ", traits.steps ? "no cache" : "a cache",
         ", but the traits say steps = ", traits.steps);
  }
  refused("an option that does not exist", "no_such_option", [&] {
    make(config, {traits.name, {{"no_such_option", "1"}}});
  });
  config.heads = 3;
  refused("3 heads for a width of 8", "3", [&] { make(config, plain); });
  AttentionInput input{.queries = host.queries, .mask = host.mask()};
  refused("a call without keys or memory", "key", [&] { host.attention->forward(input); });
  if (const auto cache = host.attention->new_cache()) {
    input.cache = cache.get();
    refused("an empty memory without keys", "key", [&] { host.attention->forward(input); });
  }
  ForeignMemory foreign;
  input = host.input();
  input.cache = &foreign;
  refused("a cache of another attention", "cache", [&] { host.attention->forward(input); });
  check_bias(report, setting);
  return report;
}

std::span<const Property> properties() {
  static constexpr Property all[] = {{"gradient", gradient}, {"causality", causality},
                                     {"padding", padding},   {"steps", steps},
                                     {"cache", cache},       {"map", map},
                                     {"cost", cost},         {"leaks", leaks},
                                     {"devices", devices},   {"round trip", round_trip},
                                     {"refusal", refusal},   {"modifiers", modifiers},
                                     {"last row", last_row}};
  return all;
}

Report over_all_settings(const Variant& variant, Report (*property)(const Setting&)) {
  Report report;
  for (const Setting& setting : settings(variant)) {
    Report found;
    try {
      found = property(setting);
    } catch (const Error& error) {
      found = text("an Error: ", error.what());
    }
    if (!found.empty()) {
      note(report, variant.traits.name, ", ", to_string(setting.mode), ", ", heed::to_string(setting.device),
           ": ", found);
    }
  }
  return report;
}

Variant with_options(const std::string& text) {
  const Spec preset = parse_spec(text);
  Variant variant = variant_named(preset.name);
  const auto joined = [preset](const Spec& spec) {
    Spec all = spec;
    for (const auto& option : preset.options) {
      const bool given = std::any_of(spec.options.begin(), spec.options.end(),
                                     [&](const auto& own) { return own.first == option.first; });
      if (!given) all.options.push_back(option);
    }
    return all;
  };
  const auto make = variant.make;
  const auto options = variant.options;
  variant.make = [make, joined](const AttentionConfig& config, const Spec& spec, Rng& rng) {
    return make(config, joined(spec), rng);
  };
  variant.options = [options, joined](const Spec& spec) { return options(joined(spec)); };
  return variant;
}

}  // namespace heed::battery
