// Battery: illegal calls, and what the traits deny, fail with a message that says why.
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {
namespace {

/// A cache that belongs to no attention.
struct ForeignCache final : AttentionCache {
  void fields(Fields&) override {}
};

/// The text of the Error that a call throws; empty when it throws none.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Checks that an additive bias either fails or acts: -1e9 for the last key hides it, as a length does.
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
  if (same_bits(y, host.forward())) note(report, "a bias is neither refused nor obeyed");
  if (!setting.variant.traits.padding) return;
  host.lengths = lengths_of({static_cast<int32_t>(keys - 1), static_cast<int32_t>(keys - 1)}, setting.device);
  const double difference = distance(y, host.forward());
  if (difference > 2e-5 * setting.variant.traits.tolerance)
    note(report, "a bias that hides a key differs by ", difference, " from a length that does");
}

}  // namespace

Report refusal(const Setting& setting) {
  Report report;
  const NoGrad no_grad;
  const Traits& traits = setting.variant.traits;
  const Spec defaults{traits.name, {}};
  const Host host = host_of(setting, {});
  // `call` must fail, with a message that contains `expected` and is no mere word.
  const auto refused = [&](const char* what, const std::string& expected, const auto& call) {
    const std::string error = error_of(call);
    if (error.empty()) {
      note(report, what, " is not refused");
    } else if (error.find(expected) == std::string::npos || error.size() < 30) {
      note(report, what, " is refused without saying why: ", error);
    }
  };
  const auto make = [&](AttentionConfig config, const Spec& spec) {
    Rng rng(1);
    make_attention(setting.variant, spec, config, rng);
  };
  AttentionConfig config = config_of(setting, {});
  if (!traits.causal)
    refused("a causal host", traits.name,
            [&] { make({.d_model = 8, .heads = 2, .causal = true}, defaults); });
  if (!traits.bidirectional)
    refused("a host that looks both ways", traits.name, [&] { make({.d_model = 8, .heads = 2}, defaults); });
  if (!traits.cross)
    refused("a crossing host", traits.name,
            [&] { make({.d_model = 8, .heads = 2, .cross = true}, defaults); });
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
  refused("3 heads for a width of 8", "3", [&] { make(config, defaults); });
  AttentionInput input{.queries = host.queries, .mask = host.mask()};
  refused("a call without keys or cache", "key", [&] { host.attention->forward(input); });
  if (const auto cache = host.attention->new_cache()) {
    input.cache = cache.get();
    refused("an empty cache without keys", "key", [&] { host.attention->forward(input); });
  }
  ForeignCache foreign;
  input = host.input();
  input.cache = &foreign;
  refused("a cache of another attention", "cache", [&] { host.attention->forward(input); });
  check_bias(report, setting);
  return report;
}

}  // namespace heed::battery
