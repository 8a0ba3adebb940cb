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

PublishedRow row_of(const std::string& name, const Json& json) {
  PublishedRow out{.name = name,
                   .attention = json.at("attention").text(),
                   .values = {},
                   .note = text_or_nothing(json, "note"),
                   .from = text_or_nothing(json, "from")};
  for (const Json& value : json.at("values").list()) out.values.push_back(value.real());
  if (const Json* tolerance = json.find("tolerance"); tolerance != nullptr) out.tolerance = tolerance->real();
  if (const Json* by_column = json.find("attention_in"); by_column != nullptr) {
    for (const auto& [column, spec] : by_column->members()) out.attention_in[column] = spec.text();
  }
  if (const Json* settings = json.find("settings"); settings != nullptr) {
    for (const auto& [key, value] : settings->members()) out.settings.emplace_back(key, value.text());
  }
  return out;
}

PublishedColumn column_of(const std::string& name, const Json& json, Measure measure) {
  const bool has_bars = measure == Measure::map_distance;
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
          .exponent = measure == Measure::swapped ? json.at("exponent").real() : 0,
          .encoder_only = flag(json, "encoder_only")};
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
                     .columns = {},
                     .rows = {}};
  for (const auto& [column, metadata] : json.at("columns").members())
    out.columns.push_back(column_of(column, metadata, out.measure));
  for (const auto& [row, metadata] : json.at("rows").members()) {
    out.rows.push_back(row_of(row, metadata));
    if (const size_t count = out.rows.back().values.size(); count != out.columns.size())
      fail(Fault::internal, "published_results.json: ", name, ", ", row, " has ", count, " values for ",
           out.columns.size(), " columns.");
  }
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

const std::vector<PublishedTable>& published() {
  static const std::vector<PublishedTable> all = [] {
    std::vector<PublishedTable> tables;
    const Json file =
        parse_json(embedded_file("train/experiments/published_results.json"), "published_results.json");
    for (const auto& [name, json] : file.members()) tables.push_back(table_of(name, json));
    return tables;
  }();
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
  if (table.measure == Measure::swapped) return Verdict::unknown;  // our model is another one
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
