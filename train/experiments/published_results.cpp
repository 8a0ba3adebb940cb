// Reads the published tables from the JSON file that the build embeds in the program.
#include "heed/train/experiments/published_results.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "heed/attention/variant.h"
#include "heed/core/error.h"
#include "heed/core/io/embedded_files.h"
#include "heed/core/io/json.h"
#include "heed/nn/set_option.h"

namespace heed {
namespace {

/// In the order of Measure.
constexpr MeasureTraits measure_traits[] = {
    {.name = "accuracy",
     .trains = true,
     .tolerance_unit = " points",
     .tolerance_of_one = " point",
     .unit = "accuracies of the test split in percent"},
    {.name = "loss",
     .trains = true,
     .lower_is_better = true,
     .tolerance_unit = " nats",
     .tolerance_of_one = " nats",
     .unit = "losses of the test split in nats"},
    {.name = "bleu",
     .trains = true,
     .tolerance_unit = " points",
     .tolerance_of_one = " point",
     .unit = "BLEU of the test split"},
    {.name = "crossover", .lower_is_better = true, .is_relative = true, .unit = "sequence lengths in tokens"},
    {.name = "map_distance",
     .lower_is_better = true,
     .is_relative = true,
     .unit = "sums of absolute differences of maps"},
    {.name = "steps_per_second", .is_relative = true, .unit = "steps a second, relative to FIRST"},
    {.name = "sooner",
     .trains = true,
     .unit = "speedups: the seconds that FIRST takes to its last training loss, over those that the row "
             "takes to the same loss"},
    {.name = "score_gradient",
     .lower_is_better = true,
     .unit = "largest derivatives of outputs by scores, as multiples of the bound that the paper prints"},
    {.name = "swapped", .lower_is_better = true, .unit = "perplexities, as the paper computes them"}};

Measure measure_named(const std::string& word) {
  for (size_t i = 0; i < std::size(measure_traits); ++i) {
    if (word == measure_traits[i].name) return static_cast<Measure>(i);
  }
  fail(Fault::internal, "published_results.json: measure '", word, "' is unknown.");
}

std::string text_or_nothing(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found == nullptr ? "" : found->text();
}

bool flag(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found != nullptr && found->boolean();
}

/// The settings of a row or a column, which may have none.
std::vector<std::pair<std::string, std::string>> settings_in(const Json& json) {
  std::vector<std::pair<std::string, std::string>> out;
  const Json* settings = json.find("settings");
  if (settings == nullptr) return out;
  for (const auto& [key, value] : settings->members()) out.emplace_back(key, value.text());
  return out;
}

/// A row; without "values" it has no published ones.
PublishedRow row_of(const std::string& name, const Json& json, size_t num_columns) {
  PublishedRow out{.name = name,
                   .attention = json.at("attention").text(),
                   .values = {},
                   .note = text_or_nothing(json, "note"),
                   .settings = settings_in(json),
                   .from = text_or_nothing(json, "from")};
  if (const Json* values = json.find("values"); values != nullptr) {
    for (const Json& value : values->list()) out.values.push_back(value.real());
  } else {
    out.values.assign(num_columns, NAN);
  }
  if (const Json* tolerance = json.find("tolerance"); tolerance != nullptr) out.tolerance = tolerance->real();
  if (const Json* by_column = json.find("attention_in"); by_column != nullptr) {
    for (const auto& [column, spec] : by_column->members()) out.attention_in[column] = spec.text();
  }
  return out;
}

PublishedColumn column_of(const std::string& name, const Json& json, Measure measure) {
  const bool has_bars = measure == Measure::map_distance;
  const Json* tokens = json.find("tokens");
  return {.name = name,
          .preset = text_or_nothing(json, "preset"),
          .head_dim = measure == Measure::crossover ? json.at("head_dim").integer() : 0,
          .causal = flag(json, "causal"),
          .real_data = text_or_nothing(json, "real_data"),
          .note = text_or_nothing(json, "note"),
          .sentence = text_or_nothing(json, "sentence"),
          .data = text_or_nothing(json, "data"),
          .width = has_bars ? json.at("width").integer() : 0,
          .num_pos = has_bars ? json.at("num_pos").integer() : 0,
          .tokens = tokens != nullptr ? tokens->integer() : 0,
          .exponent = measure == Measure::swapped ? json.at("exponent").real() : 0,
          .encoder_only = flag(json, "encoder_only"),
          .settings = settings_in(json)};
}

/// Parses the grid of a table, if it has one.
void take_grid(PublishedTable& table) {
  if (table.grid.empty()) return;
  const std::string place = text("published_results.json: ", table.name, ": ");
  try {
    table.points = parse_grid(table.grid, "grid");
  } catch (const Error& error) {
    fail(Fault::internal, place, error.what());
  }
  if (!trains(table.measure)) fail(Fault::internal, place, "a grid needs a measure that trains.");
  for (const PublishedRow& row : table.rows) {
    if (!row.from.empty())
      fail(Fault::internal, place, row.name, " begins from another row, which does not go with a grid.");
  }
}

PublishedTable table_of(const std::string& name, const Json& json) {
  PublishedTable out{.name = name,
                     .about = json.at("about").text(),
                     .source = json.at("source").text(),
                     .measure = measure_named(json.at("measure").text()),
                     .tolerance = json.at("tolerance").real(),
                     .metric = text_or_nothing(json, "metric"),
                     .runs_of = text_or_nothing(json, "runs_of"),
                     .bubbles = flag(json, "bubbles"),
                     .maps = flag(json, "maps"),
                     .widths = flag(json, "widths"),
                     .lengths = flag(json, "lengths"),
                     .states = flag(json, "states"),
                     .grid = text_or_nothing(json, "grid"),
                     .no_verdict = text_or_nothing(json, "no_verdict"),
                     .columns = {},
                     .rows = {}};
  for (const auto& [column, metadata] : json.at("columns").members())
    out.columns.push_back(column_of(column, metadata, out.measure));
  for (const auto& [row, metadata] : json.at("rows").members()) {
    out.rows.push_back(row_of(row, metadata, out.columns.size()));
    if (const size_t count = out.rows.back().values.size(); count != out.columns.size())
      fail(Fault::internal, "published_results.json: ", name, ", ", row, " has ", count, " values for ",
           out.columns.size(), " columns.");
  }
  take_grid(out);
  return out;
}

}  // namespace

const MeasureTraits& traits_of(Measure measure) { return measure_traits[static_cast<size_t>(measure)]; }

std::string unit_text(const PublishedTable& table) {
  if (table.measure == Measure::loss && !table.metric.empty())
    return "losses of the validation split in nats";
  constexpr std::string_view first_row_word = "FIRST";
  std::string unit = traits_of(table.measure).unit;
  if (const size_t place = unit.find(first_row_word); place != unit.npos)
    unit.replace(place, first_row_word.size(), table.rows.front().name);
  return unit;
}

std::vector<PublishedTable> parse_published(std::string_view json) {
  std::vector<PublishedTable> tables;
  const Json file = parse_json(json, "published_results.json");
  for (const auto& [name, table] : file.members()) tables.push_back(table_of(name, table));
  return tables;
}

const std::vector<PublishedTable>& published() {
  static const std::vector<PublishedTable> all =
      parse_published(embedded_file("train/experiments/published_results.json"));
  return all;
}

const PublishedTable& published_table(const std::string& name) {
  std::vector<std::string> known;
  for (const PublishedTable& table : published()) {
    if (table.name == name) return table;
    known.push_back(table.name);
  }
  fail("reproduce: '", name, "' is unknown.", suggestion(name, known));
}

const std::string& PublishedRow::attention_on(const PublishedColumn& column) const {
  const auto found = attention_in.find(column.name);
  return found == attention_in.end() ? attention : found->second;
}

std::string why_unknown(const std::string& spec) {
  if (spec == "none") return "";
  try {
    full_spec(spec);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

double two_standard_errors(double percent, int64_t examples) {
  if (examples < 1 || !std::isfinite(percent)) return 0;
  const double share = std::clamp(percent / 100, 0.0, 1.0);
  return 200 * std::sqrt(share * (1 - share) / static_cast<double>(examples));
}

Verdict verdict_on(const PublishedTable& table, double paper, double ours, double error, double tolerance) {
  if (!std::isfinite(paper) || !std::isfinite(ours)) return Verdict::unknown;
  if (table.measure == Measure::swapped || !table.no_verdict.empty()) return Verdict::unknown;
  const MeasureTraits& traits = traits_of(table.measure);
  if (!(tolerance > 0)) tolerance = table.tolerance;
  const double max_difference = std::max(traits.is_relative ? tolerance * paper : tolerance, error);
  const double gain = traits.lower_is_better ? paper - ours : ours - paper;
  if (gain > max_difference) return Verdict::better;
  return gain >= -max_difference ? Verdict::reproduced : Verdict::below;
}

const char* to_string(Verdict verdict) {
  static constexpr const char* words[] = {"reproduced", "better", "below", ""};  // in the order of Verdict
  return words[static_cast<size_t>(verdict)];
}

}  // namespace heed
