// The list of variants, and making one by name.
#include <array>

#include "attention/variant.h"

namespace heed {

std::span<const Variant> variants() {
  static const std::array all{
#define VARIANT(name) variant::name(),
#include "attention/variants.def"
#undef VARIANT
  };
  return all;
}

const Variant& variant_named(const std::string& name) {
  std::vector<std::string> known;
  for (const Variant& variant : variants()) {
    if (name == variant.traits.name || (!name.empty() && name == variant.traits.also)) return variant;
    known.emplace_back(variant.traits.name);
  }
  fail("attention '", name, "' is unknown.", suggestion(name, known));
}

std::unique_ptr<Attention> make_attention(const Variant& variant, const Spec& spec,
                                          const AttentionConfig& config, Rng& rng) {
  const char* name = variant.traits.name;
  if (config.causal && !variant.traits.causal) {
    fail("attention '", name,
         "' cannot look back only: its map mixes later keys in. Use it in an encoder, or choose another.");
  }
  if (config.cross && !variant.traits.cross) {
    fail("attention '", name, "' needs queries and keys from one input. Choose another --cross-attention.");
  }
  return variant.make(config, spec, rng);
}

std::unique_ptr<Attention> make_attention(const std::string& spec, const AttentionConfig& config, Rng& rng) {
  const Spec parsed = parse_spec(spec);
  return make_attention(variant_named(parsed.name), parsed, config, rng);
}

AttentionFactory attention_factory(const std::string& spec) {
  full_spec(spec);
  return [spec](const AttentionConfig& config, Rng& rng) { return make_attention(spec, config, rng); };
}

std::string full_spec(const std::string& spec) {
  Spec parsed = parse_spec(spec);
  const std::vector<OptionText> options = variant_named(parsed.name).options(parsed);
  parsed.options.clear();
  for (const OptionText& option : options) parsed.options.emplace_back(option.name, option.value);
  return to_string(parsed);
}

}  // namespace heed
