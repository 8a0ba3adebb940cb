// The registry of variants: lists them, finds them by name and takes those of programs.
#include <algorithm>
#include <list>
#include <string_view>

#include "heed/attention/variant.h"
#include "heed/core/io/ascii.h"

namespace heed {

namespace {

/// All tables of variants that were ever in use; the last is in use now. Registering a variant appends a
/// longer copy, so references to the variants of earlier tables stay valid.
std::list<std::vector<Variant>>& tables() {
  static std::list<std::vector<Variant>> all{{
#define VARIANT(name) variant::name(),
#include "heed/attention/variants.def"
#undef VARIANT
  }};
  return all;
}

/// True for a name of small letters, digits and '_' only, and at least one of them.
bool is_legal_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || is_ascii_digit(letter) || letter == '_';
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
  if (!is_legal_name(name)) {
    fail("register_attention: '", shown(name),
         "' cannot name an attention. Use small letters, digits and '_', at least one.");
  }
  if (!variant.make || !variant.options)
    fail("register_attention: '", name, "' has no factory. Make the Variant by describe().");
  for (const Variant& registered : variants()) {
    for (const std::string_view taken : {registered.traits.name, registered.traits.alias}) {
      if (taken.empty() || (taken != name && taken != variant.traits.alias)) continue;
      fail("register_attention: the name '", taken, "' of '", name, "' is taken by the attention '",
           registered.traits.name, "'. Choose another.");
    }
  }
  std::vector<Variant>& longer_table = tables().emplace_back(tables().back());
  longer_table.push_back(variant);
}

const Variant& variant_named(const std::string& name) {
  std::vector<std::string> known;
  for (const Variant& variant : variants()) {
    if (name == variant.traits.name || (!name.empty() && name == variant.traits.alias)) return variant;
    known.emplace_back(variant.traits.name);
  }
  fail("attention '", name, "' is unknown.", suggestion(name, known), " heed list attention lists all.");
}

}  // namespace heed
