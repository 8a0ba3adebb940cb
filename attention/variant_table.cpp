// The table of variants as text, Markdown and JSON.
#include "heed/attention/counted_cost.h"
#include "heed/core/io/json.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"

namespace heed {
namespace {

std::string power(const char* symbol, double exponent) {
  if (exponent == 0) return "";
  return exponent == 1 ? symbol : std::string(symbol) + "^" + detail::number(exponent);
}

std::string growth(const Growth& g) {
  const std::string n = power("n", g.length), d = power("d", g.width);
  if (n.empty() && d.empty()) return "1";
  return n + (n.empty() || d.empty() ? "" : " ") + d;
}

const char* yes(bool value) { return value ? "yes" : "no"; }

const char* map_word(MapKind kind) {
  constexpr const char* words[] = {"none", "exact", "signed", "inside", "stages"};
  return words[static_cast<int>(kind)];
}

std::vector<OptionText> options_of(const Variant& variant) {
  return variant.options({variant.traits.name, {}});
}

std::string options_text(const Variant& variant) {
  std::string out;
  for (const OptionText& option : options_of(variant)) {
    out += (out.empty() ? "" : ", ") + option.name + "=" + option.value;
  }
  return out;
}

/// A tensor of a variant besides the query, key, value and output projections.
struct OwnTensor {
  std::string name;
  Shape shape;
  bool trained;  ///< false: a fixed random draw or table
};

/// The own tensors of a variant with 2 heads of width 8 and max_length 32.
std::vector<OwnTensor> own_tensors(const Variant& variant) {
  Rng rng(1);
  const auto attention = make_attention(
      variant, {variant.traits.name, {}},
      {.d_model = 16, .heads = 2, .causal = !variant.traits.bidirectional, .max_length = 32}, rng);
  std::vector<OwnTensor> out;
  for (const Named& named : tensors(*attention)) {
    const std::string& name = named.name;
    const std::string first = name.substr(0, name.find('.'));
    if (first == name || (first != "query" && first != "key" && first != "value" && first != "output"))
      out.push_back({name, named.tensor->shape(), named.tensor->node() != nullptr});
  }
  return out;
}

std::string names_of(const std::vector<OwnTensor>& tensors) {
  std::string out;
  for (const OwnTensor& one : tensors)
    out += (out.empty() ? "" : ", ") + one.name + (one.trained ? "" : " (fixed)");
  return out;
}

/// Formats a growth as n^1.98 d^1.02.
std::string counted(const Growth& g) { return formatted("n^%.2f d^%.2f", g.length, g.width); }

std::vector<const Variant*> listed_variants(const Listing& listing) {
  if (listing.only != nullptr) return {listing.only};
  std::vector<const Variant*> all;
  for (const Variant& variant : variants()) all.push_back(&variant);
  return all;
}

/// Every column of the table.
std::vector<TableRow> all_columns(const Listing& listing) {
  std::vector<TableRow> out{{"name", "time", "memory", "causal", "cross", "padding", "steps", "map",
                             "parameters", "options", "paper"}};
  if (listing.counted) out[0].insert(out[0].begin() + 3, {"time counted", "memory counted"});
  for (const Variant* each : listed_variants(listing)) {
    const Variant& variant = *each;
    const Traits& t = variant.traits;
    out.push_back({t.name, growth(t.time), growth(t.memory), t.bidirectional ? yes(t.causal) : "only",
                   yes(t.cross), yes(t.padding), yes(t.steps), map_word(t.map),
                   names_of(own_tensors(variant)), options_text(variant), t.paper});
    if (!listing.counted) continue;
    const CountedGrowth found = counted_growth(variant);
    out.back().insert(out.back().begin() + 3, {counted(found.time), counted(found.memory)});
  }
  return out;
}

/// What a variant can do, a letter each: "cxps"; abilities_legend explains them.
std::string abilities(const Traits& t) {
  std::string out = !t.bidirectional ? "C" : t.causal ? "c" : "-";
  out += t.cross ? 'x' : '-';
  out += t.padding ? 'p' : '-';
  return out += t.steps ? 's' : '-';
}

constexpr const char* abilities_legend =
    "can: c looks back only where asked (C: always), x attends to another sequence, p skips padding, "
    "s decodes step by step. n: length, d: width of a head. heed list attention NAME has options and tensors "
    "of one; --wide has every column.";

/// The table that fits a terminal, without parameters and options.
std::string main_columns(const Listing& listing) {
  const std::vector<const Variant*> variants = listed_variants(listing);
  std::vector<TableRow> out;
  for (const TableRow& all : all_columns(listing)) {
    const size_t costs = listing.counted ? 5 : 3;  // the name and the columns of time and memory
    out.emplace_back(all.begin(), all.begin() + static_cast<int64_t>(costs));
    out.back().push_back(out.size() == 1 ? "can" : abilities(variants[out.size() - 2]->traits));
    out.back().insert(out.back().end(), {all[costs + 4], all.back()});
  }
  return aligned_table(out) + "\n" + folded(abilities_legend, output_columns());
}

/// The description of one variant: idea, properties, tensors, options.
std::string details(const Variant& variant, const Listing& listing) {
  const Traits& t = variant.traits;
  const int64_t columns = listing.wide ? unlimited_columns : output_columns();
  std::string out = folded(text(t.name, ": ", t.summary), columns);
  if (*t.alias != 0) out += text("Also called ", t.alias, ".\n");
  const std::vector<TableRow> table = all_columns(listing);
  std::vector<TableRow> properties;
  for (size_t i = 1; i < table[0].size(); ++i) {
    if (table[0][i] != "options" && table[0][i] != "parameters")
      properties.push_back({table[0][i], table[1][i]});
  }
  for (const OwnTensor& one : own_tensors(variant)) {
    properties.push_back({"tensor", text(one.name, " ", one.shape, one.trained ? "" : " (fixed)",
                                         ", for 2 heads of width 8 and a length of 32")});
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
  if (listing.only != nullptr) return details(*listing.only, listing);
  if (listing.wide) return aligned_table(all_columns(listing), {.columns = unlimited_columns});
  return main_columns(listing);
}

std::string variants_markdown(const Listing& listing) {
  std::string out =
      "# Attentions\n\n"
      "Made by `heed list attention --markdown`; a test keeps it fresh. n is the length, d the width of a "
      "head; time and\n"
      "memory are those of training, memory without inputs and outputs. The battery of `tests/attention` "
      "counts both.\n"
      "Causal *only* supports no bidirectional attention. A map is *exact* when its rows sum to one, "
      "*signed* when "
      "they need not; either way map times values "
      "is the output.\nA map *inside* is an intermediate result; the output is not map times values. Maps of "
      "*stages* are applied one after the other: the second attends to the output of the first.\n\n";
  out += markdown_table(all_columns(listing));
  for (const Variant* each : listed_variants(listing)) {
    const Variant& variant = *each;
    out += "\n## " + std::string(variant.traits.name) + "\n\n" + variant.traits.summary + "\n";
    if (*variant.traits.alias != 0) out += "Also called " + std::string(variant.traits.alias) + ".\n";
    const std::vector<OwnTensor> own = own_tensors(variant);
    if (!own.empty()) out += "\nIts own tensors, for 2 heads of width 8 and a length of 32:";
    for (const OwnTensor& one : own)
      out += text(&one == &own.front() ? " " : ", ", "`", one.name, "` ", one.shape,
                  one.trained ? "" : " (fixed)");
    if (!own.empty()) out += ".\n";
    const auto options = options_of(variant);
    if (!options.empty()) out += "\n| option | default | takes | what it does |\n|---|---|---|---|\n";
    for (const OptionText& option : options) {
      std::string kind = takes(option);
      for (size_t at = 0; (at = kind.find('|', at)) != std::string::npos; at += 4)
        kind.replace(at, 1, " or ");
      out += "| " + option.name + " | " + option.value + " | " + kind + " | " + option.help + " |\n";
    }
  }
  return out;
}

std::string variants_json(const Listing& listing) {
  Json out{Json::List{}};
  for (const Variant* each : listed_variants(listing)) {
    const Variant& variant = *each;
    const Traits& t = variant.traits;
    Json options{Json::List{}};
    for (const OptionText& option : options_of(variant)) {
      options.push(Json::object(
          {{"name", option.name}, {"default", option.value}, {"takes", option.kind}, {"help", option.help}}));
    }
    Json own{Json::List{}};
    for (const OwnTensor& one : own_tensors(variant)) {
      Json shape{Json::List{}};
      for (const int64_t extent : one.shape) shape.push(extent);
      own.push(Json::object({{"name", one.name}, {"shape", shape}, {"trained", one.trained}}));
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
                             {"parameters", own},
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
