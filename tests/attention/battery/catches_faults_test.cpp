// The battery finds faults: each attention broken on purpose fails the expected properties and no other.
#include <algorithm>

#include "heed/attention/base/scored_attention.h"
#include "heed/tests/attention/battery/battery.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

enum class Flaw {
  none,
  sees_future,
  sees_padding,
  records_wrong_map,
  wrong_gradient,
  forgets_a_key,       // the cache drops its first key when it has more than 4
  loses_history,       // cached keys and values have no gradient
  unlisted_parameter,  // fields() does not name it
  keeps_tensors,       // maps outlive their step
  unseeded,            // outputs change from call to call
  draws_when_recorded,
  ignores_bias,
  ignores_modifiers,
};

/// 2 x, with a gradient that is too large by a thousandth.
Tensor wrongly_doubled(const Tensor& x) {
  const Tensor y = affine(x.detach(), 2, 0);
  return record("wrongly_doubled", y, {&x},
                [](const Tensor& dy) -> Gradients { return {affine(dy, 2.002, 0)}; });
}

/// softmax(exp(temperature) q . k) v with one flaw.
template <Flaw flaw>
class Flawed final : public ScoredAttention {
 public:
  Flawed(const AttentionConfig& config, const NoOptions&, Rng& rng)
      : ScoredAttention(config, rng), temperature_(uniform_parameter(Shape{1}, 1, rng)) {}
  void fields(Fields& f) override {
    ScoredAttention::fields(f);
    if (flaw != Flaw::unlisted_parameter) f("temperature", temperature_);
  }

 private:
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput&) const override {
    const Tensor scores = matmul(q, transpose(k, 2, 3)) * exp(temperature_);
    return flaw == Flaw::wrong_gradient ? wrongly_doubled(scores) : scores;
  }

  Tensor attend(Heads heads, const AttentionInput& input) override {
    AttentionInput obeyed = input;  // with the masks that this attention obeys
    obeyed.mask = Mask::none();
    if (input.mask.is_causal() && flaw != Flaw::sees_future) obeyed.mask = Mask::causal();
    if (input.mask.key_lengths() && flaw != Flaw::sees_padding)
      obeyed.mask = obeyed.mask & Mask::lengths(input.mask.key_lengths());
    if (input.mask.bias() && flaw != Flaw::ignores_bias) obeyed.mask = obeyed.mask.with(input.mask.bias());
    const bool had_keys = static_cast<bool>(heads.k);
    int64_t first = read_cache(heads, input);
    if (flaw == Flaw::forgets_a_key && input.cache != nullptr && heads.k.extent(2) > 4) {
      heads.k = slice(heads.k, 2, 1, heads.k.extent(2));
      heads.v = slice(heads.v, 2, 1, heads.v.extent(2));
      --first;
    }
    if (flaw == Flaw::loses_history && input.cache != nullptr && had_keys) {
      auto& cache = dynamic_cast<KeyValueCache&>(*input.cache);
      cache.keys = cache.keys.detach();
      cache.values = cache.values.detach();
    }
    Tensor map =
        flaw == Flaw::ignores_modifiers ? unmodified(heads, obeyed, first) : weights(heads, obeyed, first);
    if (flaw == Flaw::unseeded) {
      static int calls = 0;
      map = map * (1 + 1e-3 * ++calls);
    }
    if (flaw == Flaw::keeps_tensors) kept_maps().push_back(map.detach());
    if (input.context.recorder != nullptr) {
      if (flaw == Flaw::draws_when_recorded && input.context.training()) input.context.rng->next();
      input.context.recorder->record(*this, flaw == Flaw::records_wrong_map ? softmax(map) : map);
    }
    if (flaw != Flaw::ignores_modifiers) return apply_map(map, heads, input, first);
    return matmul(dropout(map, config().dropout, input.context.rng), heads.v);
  }

  /// The map without the modifiers.
  Tensor unmodified(const Heads& heads, const AttentionInput& input, int64_t first) const {
    const Tensor scores = score(heads.q, heads.k, input);
    const Tensor mask = input.mask.dense(scores, first);
    return softmax(mask ? scores + mask : scores);
  }

  static std::vector<Tensor>& kept_maps() {
    static std::vector<Tensor> all;
    return all;
  }
  Tensor temperature_;
};

constexpr Traits honest{.name = "flawed",
                        .time = {2, 1},
                        .memory = {2, 0},
                        .causal = true,
                        .cross = true,
                        .steps = true,
                        .map = MapKind::exact};

/// Names of the properties that find something. Leaves out `modifiers`, which repeats others, and `cost`,
/// which takes long, unless with_cost is set.
std::vector<std::string> findings(const Variant& variant, bool with_cost = false) {
  std::vector<std::string> out;
  for (const battery::Property& property : battery::properties()) {
    if (!with_cost && (property.name == std::string("cost") || property.name == std::string("modifiers")))
      continue;
    if (!battery::over_all_settings(variant, property.holds).empty()) out.emplace_back(property.name);
  }
  return out;
}

template <Flaw flaw>
std::vector<std::string> findings() {
  return findings(describe<Flawed<flaw>>(honest));
}

/// The mean of the values, after those of padding were multiplied by 0. That fails to hide them: 0 times
/// infinity is NaN.
class MultipliesPaddingByZero final : public Attention {
 public:
  MultipliesPaddingByZero(const AttentionConfig& config, const NoOptions&, Rng& rng)
      : value_(config.d_model, config.d_model, rng) {}
  void fields(Fields& f) override { f("value", value_); }
  Tensor forward(const AttentionInput& input) override {
    Tensor v = value_(input.keys);
    const Shape each{v.extent(0), 1, v.extent(1), v.extent(2)};
    if (const Tensor kept = input.mask.padding_mask(reshape(v, each), 0))
      v = v * reshape(kept, Shape{v.extent(0), v.extent(1), 1});
    return expand(mean(v, 1), input.queries.shape());
  }

 private:
  Linear value_;
};

using Names = std::vector<std::string>;

/// What the property `name` finds.
battery::Report finding(const Variant& variant, const std::string& name) {
  for (const battery::Property& property : battery::properties()) {
    if (property.name == name) return battery::over_all_settings(variant, property.holds);
  }
  return "no such property";
}

}  // namespace

TEST_CASE("bites: nothing is found where nothing is wrong", "[battery]") {
  CHECK(findings(describe<Flawed<Flaw::none>>(honest), true) == Names{});
}

TEST_CASE("bites: a decoder that sees the future", "[battery]") {
  CHECK(findings<Flaw::sees_future>() == Names{"causality", "steps", "cache", "map"});
  CHECK_THAT(finding(describe<Flawed<Flaw::sees_future>>(honest), "causality"),
             containing("when later inputs change"));
}

TEST_CASE("bites: padding that is looked at", "[battery]") {
  CHECK(findings<Flaw::sees_padding>() == Names{"padding", "packed", "map", "refusal"});
  CHECK_THAT(finding(describe<Flawed<Flaw::sees_padding>>(honest), "padding"),
             containing("in padded keys moves outputs"));
}

TEST_CASE("bites: padding that a factor of zero is to cancel", "[battery]") {
  const Variant variant = describe<MultipliesPaddingByZero>({.name = "cancels",
                                                             .paper = "nobody 2024",
                                                             .time = {.length = 1, .width = 2},
                                                             .memory = {.length = 1, .width = 0},
                                                             .map = MapKind::none});
  const battery::Report found = finding(variant, "padding");
  CHECK_THAT(found, containing("garbage of size inf") && containing("garbage of size nan"));
  CHECK_THAT(found, !containing("garbage of size 1e+15"));
}

TEST_CASE("bites: a map that is not the output's", "[battery]") {
  CHECK(findings<Flaw::records_wrong_map>() == Names{"map"});
  CHECK_THAT(finding(describe<Flawed<Flaw::records_wrong_map>>(honest), "map"),
             containing("map times values differs"));
}

TEST_CASE("bites: a gradient that is off by a thousandth", "[battery]") {
  CHECK(findings<Flaw::wrong_gradient>() == Names{"gradient"});
}

TEST_CASE("bites: a memory that forgets a key", "[battery]") {
  CHECK(findings<Flaw::forgets_a_key>() == Names{"steps", "cache", "last row"});
}

TEST_CASE("bites: a memory that loses its history", "[battery]") {
  CHECK(findings<Flaw::loses_history>() == Names{"cache"});
  CHECK_THAT(finding(describe<Flawed<Flaw::loses_history>>(honest), "cache"),
             containing("through a cache the gradient of"));
}

TEST_CASE("bites: a parameter that fields() does not list", "[battery]") {
  Names expected{"gradient", "packed", "steps", "cache", "round trip", "last row"};
  if (devices().size() >
      1)  // it stays on the CPU when the others move to a device, so every call there fails
    expected = {"gradient", "causality", "padding", "steps",      "cache",
                "map",      "leaks",     "devices", "round trip", "last row"};
  CHECK(findings<Flaw::unlisted_parameter>() == expected);
  CHECK_THAT(finding(describe<Flawed<Flaw::unlisted_parameter>>(honest), "round trip"),
             containing("loaded into another"));
}

TEST_CASE("bites: tensors that outlive their step", "[battery]") {
  CHECK(findings<Flaw::keeps_tensors>() == Names{"leaks"});
}

TEST_CASE("bites: numbers that no seed decides", "[battery]") {
  const Names found = findings<Flaw::unseeded>();
  CHECK(std::count(found.begin(), found.end(), "devices") == 1);
}

TEST_CASE("bites: a probe that changes the random numbers", "[battery]") {
  CHECK(findings<Flaw::draws_when_recorded>() == Names{"map"});
}

TEST_CASE("bites: modifiers that are taken and ignored", "[battery]") {
  CHECK(findings<Flaw::ignores_modifiers>() == Names{});
  for (const char* ignored : {"alibi", "t5", "shaw", "softcap", "sink zero", "sink learned"}) {
    CHECK_THAT(finding(describe<Flawed<Flaw::ignores_modifiers>>(honest), "modifiers"),
               containing(text(ignored, ": ")));
  }
  CHECK_THAT(finding(describe<Flawed<Flaw::forgets_a_key>>(honest), "modifiers"), containing("kv_heads: "));
}

TEST_CASE("bites: a bias that is ignored", "[battery]") {
  CHECK(findings<Flaw::ignores_bias>() == Names{"refusal"});
}

TEST_CASE("bites: costs that were declared too low", "[battery]") {
  const auto declared = [](Growth time, Growth memory) {
    Traits traits = honest;
    traits.time = time;
    traits.memory = memory;
    return finding(describe<Flawed<Flaw::none>>(traits), "cost");
  };
  CHECK(declared({2, 1}, {2, 0}).empty());
  CHECK_THAT(declared({1, 1}, {2, 0}),
             containing("operations grow") && containing("when the length doubles; 2 times is declared"));
  CHECK_THAT(declared({2, 1}, {1, 1}),
             containing("bytes grow") && containing("when the length doubles; 2 times is declared"));
  CHECK_THAT(declared({2, 2}, {2, 0}),
             containing("operations grow") && containing("when the width doubles; 4 times is declared"));
}

TEST_CASE("bites: traits that deny what is there, and promise what is not", "[battery]") {
  Traits traits = honest;
  traits.steps = false;
  CHECK_THAT(finding(describe<Flawed<Flaw::none>>(traits), "refusal"),
             containing("new_cache() gives a cache"));
  traits = honest;
  traits.padding = false;
  CHECK_THAT(finding(describe<Flawed<Flaw::none>>(traits), "refusal"), containing("padding is not refused"));
  traits = honest;
  traits.map = MapKind::none;
  CHECK_THAT(finding(describe<Flawed<Flaw::none>>(traits), "map"), containing("a map is shown"));
}

}  // namespace heed
