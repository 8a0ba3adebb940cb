// The registry of variants: lists them and creates attentions by name.
#include <algorithm>
#include <list>
#include <string_view>
#include <utility>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/layered_spec.h"
#include "heed/attention/variant.h"
#include "heed/core/settings_in_errors.h"

namespace heed {

namespace {

/// Tables of variants, of which the last is in use. A table never changes, so references to its variants stay
/// valid.
std::list<std::vector<Variant>>& tables() {
  static std::list<std::vector<Variant>> all{{
#define VARIANT(name) variant::name(),
#include "heed/attention/variants.def"
#undef VARIANT
  }};
  return all;
}

bool is_plain(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
  });
}

}  // namespace

Traits like(const Traits& family, Traits traits) {
  if (traits.time == Growth()) traits.time = family.time;
  if (traits.memory == Growth()) traits.memory = family.memory;
  if (traits.map == MapKind::none) traits.map = family.map;
  if (traits.min_cost_length == 0) traits.min_cost_length = family.min_cost_length;
  traits.causal |= family.causal;
  traits.bidirectional &= family.bidirectional;
  traits.cross |= family.cross;
  traits.steps |= family.steps;
  return traits;
}

std::span<const Variant> variants() { return tables().back(); }

void register_attention(const Variant& variant) {
  const std::string name = variant.traits.name;
  if (!is_plain(name)) {
    fail("register_attention: '", shown(name),
         "' cannot name an attention. Use small letters, digits and '_', at least one.");
  }
  if (!variant.make || !variant.options)
    fail("register_attention: '", name, "' has no factory. Make the Variant by describe().");
  for (const Variant& other : variants()) {
    for (const std::string_view taken : {other.traits.name, other.traits.alias}) {
      if (taken.empty() || (taken != name && taken != variant.traits.alias)) continue;
      fail("register_attention: the name '", taken, "' of '", name, "' is taken by the attention '",
           other.traits.name, "'. Choose another.");
    }
  }
  std::vector<Variant> more = tables().back();
  more.push_back(variant);
  tables().push_back(std::move(more));
}

const Variant& variant_named(const std::string& name) {
  std::vector<std::string> known;
  for (const Variant& variant : variants()) {
    if (name == variant.traits.name || (!name.empty() && name == variant.traits.alias)) return variant;
    known.emplace_back(variant.traits.name);
  }
  fail("attention '", name, "' is unknown.", suggestion(name, known), " heed list attention lists all.");
}

namespace {

/// Fails when a modifier would have no effect on `made`, or an undocumented one.
void check_modifiers(const std::string& name, const AttentionConfig& config, const Attention& made) {
  const Modifiers& m = config.modifiers;
  const auto* multi_head = dynamic_cast<const MultiHeadAttention*>(&made);
  const auto refuse = [&](bool asked, const char* what, const char* why) {
    if (asked) fail("attention '", name, "' takes no ", what, ": ", why);
  };
  refuse(config.cross && inside_attention(m.position), "position inside it here",
         "positions in two inputs have no distance. Choose position = none for cross-attention.");
  if (multi_head == nullptr) {
    const char* why = "it has projections of its own. Leave it out, or choose another attention.";
    refuse(config.kv_heads != 0, "kv_heads", why);
    refuse(inside_attention(m.position), "position inside it", why);
    refuse(m.qk_norm != QkNorm::none, "qk_norm", why);
  }
  if (multi_head != nullptr && multi_head->modifies_scores()) return;
  const char* why =
      multi_head == nullptr
          ? "it computes its own scores. Leave it out, or use softmax."
          : "it has no softmax over scores of pairs that it could act on. Leave it out, or use softmax.";
  refuse(by_distance(m.position), "bias by position (alibi, t5, shaw)", why);
  refuse(m.softcap != 0, "softcap", why);
  refuse(m.sink != Sink::none, "sink", why);
}

}  // namespace

std::unique_ptr<Attention> make_attention(const Variant& variant, const Spec& spec,
                                          const AttentionConfig& config, Rng& rng) {
  const char* name = variant.traits.name;
  if (config.causal && !variant.traits.causal) {
    fail("attention '", name,
         "' cannot look back only: its map includes later keys. Use it in an encoder, or choose another.");
  }
  if (config.cross && !variant.traits.cross) {
    fail("attention '", name, "' needs queries and keys from one input. Choose another cross-attention",
         advice(": --cross-attention NAME.", "."));
  }
  if (!config.causal && !config.cross && !variant.traits.bidirectional)
    fail("attention '", name, "' looks back only. Use it in a decoder, or choose another for the encoder.");
  auto made = variant.make(config, spec, rng);
  check_modifiers(name, config, *made);
  return made;
}

std::unique_ptr<Attention> make_attention(const std::string& spec, const AttentionConfig& config, Rng& rng) {
  const Spec parsed = parse_spec(spec);
  return make_attention(variant_named(parsed.name), parsed, config, rng);
}

AttentionFactory attention_factory(const std::string& spec) {
  check_attention(spec);
  return [layered = parse_layered_spec(spec)](const AttentionConfig& config, Rng& rng) {
    layered.check_layers(config.layers);
    return make_attention(layered.of(config.layer), config, rng);
  };
}

void check_attention(const std::string& text) {
  for (const std::string& one : parse_layered_spec(text).all()) full_spec(one);
}

std::string full_spec(const std::string& spec) {
  Spec parsed = parse_spec(spec);
  const std::vector<OptionText> options = variant_named(parsed.name).options(parsed);
  parsed.options.clear();
  for (const OptionText& option : options) parsed.options.emplace_back(option.name, option.value);
  return to_string(parsed);
}

}  // namespace heed
