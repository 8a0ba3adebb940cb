// The table of variants as text, Markdown and JSON.
#include "heed/attention/counted_cost.h"
#include "heed/core/io/json.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"

namespace heed {
namespace {

/// "n^1.5"; "n" for the exponent 1, nothing for 0.
std::string power(const char* symbol, double exponent) {
  if (exponent == 0) return "";
  return exponent == 1 ? symbol : std::string(symbol) + "^" + detail::number(exponent);
}

/// A declared growth: "n^2 d"; "1" for a constant.
std::string declared_growth(const Growth& g) {
  const std::string n = power("n", g.length), d = power("d", g.width);
  if (n.empty() && d.empty()) return "1";
  return n + (n.empty() || d.empty() ? "" : " ") + d;
}

const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

const char* map_word(MapKind kind) {
  constexpr const char* words[] = {"none", "exact", "signed", "inside", "stages"};
  return words[static_cast<int>(kind)];
}

std::vector<OptionText> options_of(const Variant& variant) {
  return variant.options({variant.traits.name, {}});
}

/// "block=16, scale=0": all options with their defaults.
std::string options_text(const Variant& variant) {
  std::string out;
  for (const OptionText& option : options_of(variant))
    out += (out.empty() ? "" : ", ") + option.name + "=" + option.value;
  return out;
}

/// A tensor of a variant other than the query, key, value and output projections.
struct OwnTensor {
  std::string name;
  Shape shape;
  bool trained;  ///< false: a fixed random draw or table
  const char* fixed_mark() const { return trained ? "" : " (fixed)"; }
};

/// The own tensors of a variant with 2 heads of width 8 and max_length 32, as own_tensor_sizes says.
std::vector<OwnTensor> own_tensors(const Variant& variant) {
  Rng rng(1);
  const auto attention = make_attention(
      variant, {variant.traits.name, {}},
      {.d_model = 16, .heads = 2, .causal = !variant.traits.bidirectional, .max_length = 32}, rng);
  std::vector<OwnTensor> out;
  for (const Named& named : tensors(*attention)) {
    const std::string& name = named.name;
    const std::string module = name.substr(0, name.find('.'));
    if (module == name || (module != "query" && module != "key" && module != "value" && module != "output"))
      out.push_back({name, named.tensor->shape(), named.tensor->node() != nullptr});
  }
  return out;
}
constexpr const char* own_tensor_sizes = "for 2 heads of width 8 and a length of 32";

std::string names_of(const std::vector<OwnTensor>& tensors) {
  std::string out;
  for (const OwnTensor& tensor : tensors)
    out += (out.empty() ? "" : ", ") + tensor.name + tensor.fixed_mark();
  return out;
}

std::span<const Variant> listed_variants(const Listing& listing) {
  return listing.only != nullptr ? std::span(listing.only, 1) : variants();
}

/// Every column of the table: the names of columns, then a row for each listed variant.
std::vector<TableRow> all_columns(const Listing& listing) {
  std::vector<TableRow> out{{"name", "time", "memory", "causal", "cross", "padding", "steps", "map",
                             "parameters", "options", "paper"}};
  if (listing.counted) out[0].insert(out[0].begin() + 3, {"time counted", "memory counted"});
  for (const Variant& variant : listed_variants(listing)) {
    const Traits& t = variant.traits;
    out.push_back({t.name, declared_growth(t.time), declared_growth(t.memory),
                   t.bidirectional ? yes_or_no(t.causal) : "only", yes_or_no(t.cross), yes_or_no(t.padding),
                   yes_or_no(t.steps), map_word(t.map), names_of(own_tensors(variant)), options_text(variant),
                   t.paper});
    if (!listing.counted) continue;
    const CountedGrowth found = counted_growth(variant);
    out.back().insert(out.back().begin() + 3,
                      {counted_growth_text(found.time), counted_growth_text(found.memory)});
  }
  return out;
}

std::string alias_sentence(const Traits& t) {
  return *t.alias == '\0' ? "" : text("Also called ", t.alias, ".\n");
}

/// What a variant can do, a letter each: "cxps"; abilities_legend explains them.
std::string abilities(const Traits& t) {
  std::string out = !t.bidirectional ? "C" : t.causal ? "c" : "-";
  out += t.cross ? 'x' : '-';
  out += t.padding ? 'p' : '-';
  return out += t.steps ? 's' : '-';
}

constexpr const char* abilities_legend =
    "can: c looks back only where asked (C: always), x attends to another sequence, p skips padding, s "
    "decodes step by step. n: length, d: width of a head. heed list attention NAME has options and tensors "
    "of one; --wide has every column.";

/// The table that fits a terminal, without parameters and options.
std::string main_columns(const Listing& listing) {
  const std::span<const Variant> variants = listed_variants(listing);
  const size_t num_costs = listing.counted ? 5 : 3;  // the name and the columns of time and memory
  const size_t map_column = num_costs + 4;           // after causal, cross, padding and steps
  std::vector<TableRow> out;
  for (const TableRow& row : all_columns(listing)) {
    out.emplace_back(row.begin(), row.begin() + static_cast<int64_t>(num_costs));
    out.back().push_back(out.size() == 1 ? "can" : abilities(variants[out.size() - 2].traits));
    out.back().insert(out.back().end(), {row[map_column], row.back()});
  }
  return aligned_table(out) + "\n" + folded(abilities_legend, output_columns());
}

/// The description of listing.only: summary, properties, tensors, options.
std::string details(const Listing& listing) {
  const Variant& variant = *listing.only;
  const Traits& t = variant.traits;
  const int64_t columns = listing.wide ? unlimited_columns : output_columns();
  std::string out = folded(text(t.name, ": ", t.summary), columns);
  out += alias_sentence(t);
  const std::vector<TableRow> table = all_columns(listing);
  const TableRow &names = table[0], &values = table[1];
  std::vector<TableRow> properties;
  for (size_t i = 1; i < names.size(); ++i) {
    if (names[i] != "options" && names[i] != "parameters") properties.push_back({names[i], values[i]});
  }
  for (const OwnTensor& tensor : own_tensors(variant)) {
    properties.push_back(
        {"tensor", text(tensor.name, " ", tensor.shape, tensor.fixed_mark(), ", ", own_tensor_sizes)});
  }
  out += aligned_table(properties, {.columns = columns, .indent = 2});
  std::vector<TableRow> options{{"option", "default", "takes", "what it does"}};
  for (const OptionText& option : options_of(variant))
    options.push_back({option.name, option.value, takes(option), option.help});
  return options.size() > 1 ? out + "\n" + aligned_table(options, {.columns = columns}) : out;
}

Json growth_json(const Growth& g) { return Json::object({{"length", g.length}, {"width", g.width}}); }

}  // namespace

std::string variants_text(const Listing& listing) {
  if (listing.only != nullptr) return details(listing);
  if (listing.wide) return aligned_table(all_columns(listing), {.columns = unlimited_columns});
  return main_columns(listing);
}

std::string variants_markdown(const Listing& listing) {
  std::string out =
      "# Attentions\n\nMade by `heed list attention --markdown`; a test keeps it fresh. n is the length, d "
      "the width of a head; time and\nmemory are those of training, memory without inputs and outputs. The "
      "battery of `tests/attention` counts both.\nCausal *only* supports no bidirectional attention. A map "
      "is *exact* when its rows sum to one, *signed* when they need not; either way map times values is the "
      "output.\nA map *inside* is an intermediate result; the output is not map times values. Maps of "
      "*stages* are applied one after the other: the second attends to the output of the first.\n\n";
  out += markdown_table(all_columns(listing));
  for (const Variant& variant : listed_variants(listing)) {
    const Traits& t = variant.traits;
    out += text("\n## ", t.name, "\n\n", t.summary, "\n", alias_sentence(t));
    std::string tensors;
    for (const OwnTensor& tensor : own_tensors(variant))
      tensors += text(tensors.empty() ? " `" : ", `", tensor.name, "` ", tensor.shape, tensor.fixed_mark());
    if (!tensors.empty()) out += text("\nIts own tensors, ", own_tensor_sizes, ":", tensors, ".\n");
    const auto options = options_of(variant);
    if (!options.empty()) out += "\n| option | default | takes | what it does |\n|---|---|---|---|\n";
    for (const OptionText& option : options) {
      std::string kind = takes(option);
      for (size_t bar; (bar = kind.find('|')) != std::string::npos;) kind.replace(bar, 1, " or ");
      out += "| " + option.name + " | " + option.value + " | " + kind + " | " + option.help + " |\n";
    }
  }
  return out;
}

std::string variants_json(const Listing& listing) {
  Json out{Json::List{}};
  for (const Variant& variant : listed_variants(listing)) {
    const Traits& t = variant.traits;
    Json options{Json::List{}};
    for (const OptionText& option : options_of(variant)) {
      options.push(Json::object(
          {{"name", option.name}, {"default", option.value}, {"takes", option.kind}, {"help", option.help}}));
    }
    Json parameters{Json::List{}};
    for (const OwnTensor& tensor : own_tensors(variant)) {
      Json shape{Json::List{}};
      for (const int64_t extent : tensor.shape) shape.push(extent);
      parameters.push(Json::object({{"name", tensor.name}, {"shape", shape}, {"trained", tensor.trained}}));
    }
    Json row = Json::object({{"name", t.name},
                             {"alias", t.alias},
                             {"summary", t.summary},
                             {"paper", t.paper},
                             {"time", growth_json(t.time)},
                             {"memory", growth_json(t.memory)},
                             {"causal", t.causal},
                             {"bidirectional", t.bidirectional},
                             {"cross", t.cross},
                             {"padding", t.padding},
                             {"steps", t.steps},
                             {"map", map_word(t.map)},
                             {"parameters", parameters},
                             {"options", options}});
    if (listing.counted) {
      const CountedGrowth found = counted_growth(variant);
      row.set("counted",
              Json::object({{"time", growth_json(found.time)}, {"memory", growth_json(found.memory)}}));
    }
    out.push(std::move(row));
  }
  return out.dump(1) + "\n";
}

}  // namespace heed
