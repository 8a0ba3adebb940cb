// Reads the tables out of the text that the build puts into the program.
#include "heed/train/experiments/published_results.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "heed/attention/spec.h"
#include "heed/core/error.h"
#include "heed/core/io/embedded_files.h"
#include "heed/core/io/json.h"

namespace heed {
namespace {

Measure measure_named(const std::string& word) {
  if (word == "accuracy") return Measure::accuracy;
  if (word == "loss") return Measure::loss;
  if (word == "crossover") return Measure::crossover;
  if (word == "steps_per_second") return Measure::steps_per_second;
  if (word == "sooner") return Measure::sooner;
  fail(Fault::internal, "published_results.json: measure '", word, "' is unknown.");
}

std::string text_or_nothing(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found == nullptr ? "" : found->text();
}

PublishedTable table_of(const std::string& name, const Json& json) {
  PublishedTable out{.name = name,
                     .about = json.at("about").text(),
                     .source = json.at("source").text(),
                     .measure = measure_named(json.at("measure").text()),
                     .tolerance = json.at("tolerance").real(),
                     .metric = text_or_nothing(json, "metric"),
                     .columns = {},
                     .rows = {}};
  for (const auto& [column, metadata] : json.at("columns").members())
    out.columns.push_back({column, text_or_nothing(metadata, "preset"),
                           out.measure == Measure::crossover ? metadata.at("head_dim").integer() : 0,
                           text_or_nothing(metadata, "real_data"), text_or_nothing(metadata, "note")});
  for (const auto& [row, metadata] : json.at("rows").members()) {
    PublishedRow one{row, metadata.at("attention").text(), {}, text_or_nothing(metadata, "note")};
    for (const Json& value : metadata.at("values").list()) one.values.push_back(value.real());
    if (one.values.size() != out.columns.size())
      fail(Fault::internal, "published_results.json: ", name, ", ", row, " has ", one.values.size(),
           " values for ", out.columns.size(), " columns.");
    out.rows.push_back(std::move(one));
  }
  return out;
}

}  // namespace

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

Verdict verdict_on(const PublishedTable& table, double paper, double ours, double deviation) {
  if (!std::isfinite(paper) || !std::isfinite(ours)) return Verdict::unknown;
  const bool relative = table.measure == Measure::steps_per_second || table.measure == Measure::crossover;
  const double room = std::max(relative ? table.tolerance * paper : table.tolerance, deviation);
  const bool lower = table.measure == Measure::loss || table.measure == Measure::crossover;
  const double gain = lower ? paper - ours : ours - paper;
  if (gain > room) return Verdict::better;
  return gain >= -room ? Verdict::reproduced : Verdict::below;
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced:
      return "reproduced";
    case Verdict::better:
      return "better";
    case Verdict::below:
      return "below";
    case Verdict::unknown:
      return "";
  }
  return "";
}

}  // namespace heed
