// Variant: a registered attention with its declared properties. variants.def lists all of them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heed/attention/spec.h"
#include "heed/nn/attention.h"
#include "heed/nn/set_option.h"

namespace heed {

/// Growth of a cost: proportional to n^length d^width, for sequence length n and head width d.
struct Growth {
  double length = 0;                               ///< exponent of n
  double width = 0;                                ///< exponent of d
  bool operator==(const Growth&) const = default;  ///< equal exponents
};

/// The relation of a variant's attention map to its output.
enum class MapKind {
  none,     ///< no map
  exact,    ///< rows sum to 1, and map V is the output
  signed_,  ///< map V is the output, but rows need not sum to one
  inside,   ///< an intermediate map, not times V the output; rows sum to 1, or to 0 without keys
  stages    ///< several maps applied one after the other; their rows sum to 1 or 0
};

/// Declared properties of a variant. The battery of tests/attention checks all of them.
struct Traits {
  const char* name = "";        ///< the name in a spec: "linear"
  const char* alias = "";       ///< another common name; empty: none
  const char* paper = "";       ///< the publication: authors, year, arXiv number
  const char* summary = "";     ///< the method in one line
  Growth time = {};             ///< training time, checked by counting
  Growth memory = {};           ///< training memory without inputs and outputs, checked by counting
  bool causal = false;          ///< supports a causal mask
  bool bidirectional = true;    ///< supports bidirectional attention, as in an encoder
  bool cross = false;           ///< queries and keys may come from different inputs
  bool padding = true;          ///< supports key lengths
  bool steps = false;           ///< decodes step by step with a cache
  bool last_row = true;         ///< the last row of the causal output equals that of the bidirectional output
  MapKind map = MapKind::none;  ///< what a MapRecorder receives from it
  int64_t min_cost_length = 0;  ///< length from which costs grow as declared; 0: the battery's default
  double tolerance = 1;         ///< multiplies the battery's tolerances, for ill-conditioned variants
};

/// Traits of softmax over dot products in tiles: any role, quadratic time, linear memory.
inline constexpr Traits dot_product_traits{.time = {.length = 2, .width = 1},
                                           .memory = {.length = 1, .width = 1},
                                           .causal = true,
                                           .cross = true,
                                           .steps = true,
                                           .map = MapKind::exact};
/// Traits of attentions that compute a full map of scores: any role, quadratic time and memory.
inline constexpr Traits full_map_traits{.time = {.length = 2, .width = 1},
                                        .memory = {.length = 2, .width = 0},
                                        .causal = true,
                                        .cross = true,
                                        .steps = true,
                                        .map = MapKind::exact};
/// Traits of attentions by feature maps: any role, linear time and memory.
inline constexpr Traits feature_map_traits{.time = {.length = 1, .width = 2},
                                           .memory = {.length = 1, .width = 1},
                                           .causal = true,
                                           .cross = true,
                                           .steps = true,
                                           .map = MapKind::exact};
/// Traits of attentions with a decaying state: causal only, linear time and memory.
inline constexpr Traits decay_traits{.time = {.length = 1, .width = 2},
                                     .memory = {.length = 1, .width = 1},
                                     .causal = true,
                                     .bidirectional = false,
                                     .steps = true,
                                     .map = MapKind::signed_};
/// Traits of softmax over a sparse pattern: self-attention in linear time and memory.
inline constexpr Traits sparse_pattern_traits{.time = {.length = 1, .width = 1},
                                              .memory = {.length = 1, .width = 1},
                                              .causal = true,
                                              .steps = true,
                                              .map = MapKind::exact,
                                              .min_cost_length = 1024};
/// `traits` with the costs, map and min_cost_length of `family` where they are not set, and the roles of
/// both; bidirectional only if both are.
Traits like(const Traits& family, Traits traits);

/// A registered attention: its properties, its factory and its options.
struct Variant {
  Traits traits;  ///< declared properties, which the battery checks
  /// Creates an attention from config and spec; fails on an illegal option.
  std::function<std::unique_ptr<Attention>(const AttentionConfig&, const Spec&, Rng&)> make;
  /// All options with their values after applying the spec; fails on an illegal option.
  std::function<std::vector<OptionText>(const Spec&)> options;
};

/// All variants, in the order of variants.def, then those that programs registered.
std::span<const Variant> variants();
/// Registers an attention of a program, described by describe(): its name is then known everywhere.
/// Fails where the name has other characters than small letters, digits and '_', or is taken. Earlier results
/// of variants() and variant_named() stay valid. To be called before threads use variants, first in main().
void register_attention(const Variant& variant);
/// The variant with this name (or other name). Fails on an unknown one, naming the nearest and all known.
const Variant& variant_named(const std::string& name);
/// Creates an attention of this variant. Fails on an unknown option, and on a `config` that its traits or
/// modifiers do not allow.
std::unique_ptr<Attention> make_attention(const Variant& variant, const Spec& spec,
                                          const AttentionConfig& config, Rng& rng);
/// Creates an attention from "name:key=value,..."; also fails on an unknown name.
std::unique_ptr<Attention> make_attention(const std::string& spec, const AttentionConfig& config, Rng& rng);
/// A factory of attentions from a spec, for models. Fails immediately on an illegal spec.
AttentionFactory attention_factory(const std::string& spec);
/// The spec with the values of all options.
std::string full_spec(const std::string& spec);

/// Options of the table of variants.
struct Listing {
  bool counted = false;           ///< adds columns with counted growth (about a second per variant)
  bool wide = false;              ///< in text: every column, in lines of any width
  const Variant* only = nullptr;  ///< the only variant to list, in text with all its options; null: all
};
/// The table of variants as Markdown: the source of docs/reference/attentions.md.
std::string variants_markdown(const Listing& listing = {});
/// The table of variants as a JSON array.
std::string variants_json(const Listing& listing = {});
/// The table of variants as text that fits the terminal: name, costs, abilities and paper; with `wide` all
/// columns.
std::string variants_text(const Listing& listing = {});

namespace variant {
/// A line of variants.def: declares the function that describes this variant.
#define VARIANT(name) Variant name();
#include "heed/attention/variants.def"
#undef VARIANT
}  // namespace variant

/// The options of a variant without any.
struct NoOptions {
  void fields(Fields&) {}  ///< names nothing
};

/// Makes the Variant of class A, created by A(const AttentionConfig&, const Options&, Rng&), or by A::make()
/// with these arguments when the class depends on the options.
template <class A, class Options = NoOptions>
Variant describe(const Traits& traits) {
  const auto options_from = [name = std::string(traits.name)](const Spec& spec) {
    Options options;
    for (const auto& [key, value] : spec.options)
      set_option(options, key, value, "attention '" + name + "': ");
    return options;
  };
  return {traits,
          [options_from](const AttentionConfig& config, const Spec& spec,
                         Rng& rng) -> std::unique_ptr<Attention> {
            if constexpr (requires(const Options& options) { A::make(config, options, rng); })
              return A::make(config, options_from(spec), rng);
            else
              return std::make_unique<A>(config, options_from(spec), rng);
          },
          [options_from](const Spec& spec) {
            Options options = options_from(spec);
            return options_of(options);
          }};
}

}  // namespace heed
