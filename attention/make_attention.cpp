// Creates attentions by variant or spec, and checks that they support what their config asks for.
#include "heed/attention/base/grouped_query.h"
#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/layered_spec.h"
#include "heed/attention/variant.h"
#include "heed/core/settings_in_errors.h"

namespace heed {
namespace {

/// Fails when a modifier of `config` would have no effect on the attention that was made, or an undocumented
/// one.
void check_modifiers(const std::string& name, const AttentionConfig& config, const Attention& attention) {
  const Modifiers& m = config.modifiers;
  const auto* multi_head = dynamic_cast<const MultiHeadAttention*>(&attention);
  const auto refuse = [&](bool is_set, const char* modifier, const char* why) {
    if (is_set) fail("attention '", name, "' takes no ", modifier, ": ", why);
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
  query_width(config);  // fails for sizes that cannot be
  AttentionConfig made = config;
  made.name = name;
  made.follows_causal_mask = variant.traits.causal;
  auto attention = variant.make(made, spec, rng);
  check_modifiers(name, config, *attention);
  return attention;
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
  for (const std::string& spec : parse_layered_spec(text).all()) full_spec(spec);  // fails on an illegal one
}

std::string full_spec(const std::string& spec) {
  Spec parsed = parse_spec(spec);
  const std::vector<OptionText> options = variant_named(parsed.name).options(parsed);
  parsed.options.clear();
  for (const OptionText& option : options) parsed.options.emplace_back(option.name, option.value);
  return to_string(parsed);
}

}  // namespace heed
