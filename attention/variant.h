// Variant: one way of attending, with its promises. The list is variants.def.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/spec.h"
#include "nn/attention.h"

namespace heed {

/// How a cost grows: with length^`length` and head width^`width`.
struct Growth {
  double length = 0, width = 0;
};

/// What a probe sees of a variant.
enum class MapKind {
  none,     ///< there is no map
  exact,    ///< rows sum to one, and map V is the output
  signed_,  ///< map V is the output, but rows need not sum to one
  inside,  ///< what is looked at on the way to the output; rows sum to one, or to zero where nothing is there
  stages   ///< several maps, one after the other; their rows sum to one where they are not zero
};

/// What a variant promises. The battery holds it to every word.
struct Traits {
  const char* name = "";
  const char* also = "";  ///< another name that people know it by; empty: none
  const char* paper = "";
  const char* idea = "";  ///< one line
  Growth time, memory;    ///< of training, memory beyond inputs and outputs; checked by counting
  bool causal = false;    ///< can be masked to look back only
  bool full = true;       ///< can look both ways, as an encoder does
  bool cross = false;     ///< queries and keys may come from different inputs
  bool padding = true;    ///< honours key lengths
  bool steps = false;     ///< decodes step by step with a memory
  bool last_row = true;   ///< the last causal output is the two-sided one of the same inputs
  MapKind map = MapKind::none;
  int64_t from = 0;      ///< the length from which costs grow as declared; 0: from the battery's own
  double tolerance = 1;  ///< multiplies the battery's tolerances, for the rare one that is ill-conditioned
};

/// A registered way of attending.
struct Variant {
  Traits traits;
  std::function<std::unique_ptr<Attention>(const AttentionConfig&, const Spec&, Rng&)> make;
  std::function<std::vector<OptionText>(const Spec&)>
      options;  ///< after applying the spec; fails on a wrong one
};

/// All variants, in the order of variants.def.
std::span<const Variant> variants();
/// Fails with the nearest name and the list.
const Variant& variant_named(const std::string& name);
/// Makes an attention of this variant. Fails on an unknown option, and on what its traits deny.
std::unique_ptr<Attention> make_attention(const Variant& variant, const Spec& spec,
                                          const AttentionConfig& config, Rng& rng);
/// Makes an attention from "name:key=value,...". Fails on an unknown name or option, and on what its traits
/// deny.
std::unique_ptr<Attention> make_attention(const std::string& spec, const AttentionConfig& config, Rng& rng);
/// A factory for hosts. Fails at once on a spec that is wrong.
AttentionFactory attention_factory(const std::string& spec);
/// The spec with every option written out.
std::string full_spec(const std::string& spec);

/// What a table of variants tells besides what is declared.
struct Listing {
  bool counted =
      false;  ///< the growth of costs counted anew, beside what is declared: about a second a variant
  const Variant* only = nullptr;  ///< this one, and as text with all its options; null: all
};
/// The table of all variants as Markdown: docs/attention.md is made of it.
std::string variants_markdown(const Listing& listing = {});
/// The same as a JSON array.
std::string variants_json(const Listing& listing = {});
/// The same for a terminal.
std::string variants_text(const Listing& listing = {});

namespace variant {
#define VARIANT(name) Variant name();
#include "attention/variants.def"
#undef VARIANT
}  // namespace variant

/// Options of a variant that has none.
struct NoOptions {
  void fields(Fields&) {}
};

/// Registers class A with its options: A(const AttentionConfig&, const Options&, Rng&), or A::make() of the
/// same where a variant is several things by turns.
template <class A, class Options = NoOptions>
Variant describe(const Traits& traits) {
  const auto chosen = [name = std::string(traits.name)](const Spec& spec) {
    Options options;
    for (const auto& [key, value] : spec.options)
      set_option(options, key, value, "attention '" + name + "': ");
    return options;
  };
  return {traits,
          [chosen](const AttentionConfig& config, const Spec& spec, Rng& rng) -> std::unique_ptr<Attention> {
            if constexpr (requires(const Options& options) { A::make(config, options, rng); })
              return A::make(config, chosen(spec), rng);
            else
              return std::make_unique<A>(config, chosen(spec), rng);
          },
          [chosen](const Spec& spec) {
            Options options = chosen(spec);
            return options_of(options);
          }};
}

}  // namespace heed
