// Chooses the cells of a reproduction and makes their settings.
#include <algorithm>

#include "heed/core/io/ascii.h"
#include "heed/train/config/config.h"
#include "heed/train/experiments/preset_diff.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

std::string lower(std::string words) {
  for (char& c : words) c = ascii_lower(c);
  return words;
}

bool named(const std::vector<std::string>& patterns, const PublishedRow& row, const PublishedColumn& column) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return names_cell(pattern, row, column); });
}

/// Why the data of a column is missing; empty where it is there, and where it needs none.
std::string why_no_data(const PublishedTable& table, const PublishedColumn& column,
                        const ReproductionOptions& options) {
  if (options.data.contains(column.name)) return "";
  if (table.measure == Measure::map_distance && column.data.empty())
    return text("not run: give --data ", column.name, "=PATH, ", column.real_data);
  if (column.data.empty()) return "";
  try {
    find_data(column.data);
    return "";
  } catch (const Error&) {
    return text("not run: ", column.data, " is not here; give --data ", column.name,
                "=FILE, or set HEED_DATA to its folder");
  }
}

/// Fails at a pattern that no cell has.
void check_patterns(const PublishedTable& table, const std::vector<std::string>& patterns,
                    const std::vector<PlannedCell>& found) {
  for (const std::string& pattern : patterns) {
    const bool known = std::any_of(found.begin(), found.end(), [&](const PlannedCell& planned) {
      return names_cell(pattern, *planned.row, *planned.column);
    });
    if (known) continue;
    const auto name_of = [](const auto& one) { return one.name; };
    fail("--rows ", pattern, ": ", table.name,
         " has no such row or column. It has: ", picture::joined(table.rows, ", ", name_of), ", ",
         picture::joined(table.columns, ", ", name_of), "; one cell is ROW/COLUMN.");
  }
}

}  // namespace

bool names_cell(const std::string& pattern, const PublishedRow& row, const PublishedColumn& column) {
  const std::string wanted = lower(pattern);
  return wanted == lower(row.name) || wanted == lower(column.name) ||
         wanted == lower(row.name + "/" + column.name);
}

std::string data_of(const PublishedColumn& column, const ReproductionOptions& options) {
  const auto given = options.data.find(column.name);
  return given != options.data.end() ? given->second : column.data;
}

bool runs(const PlannedCell& planned) {
  const std::string& spec = planned.row->attention_on(*planned.column);
  return planned.has_data && !spec.empty() && why_unknown(spec).empty();
}

PlannedCell PlannedCell::of(const PublishedTable& table, const PublishedRow& row, size_t column_index) {
  const PublishedColumn& column = table.columns[column_index];
  return {.row = &row,
          .column = &column,
          .column_index = column_index,
          .cell = {.name = row.name + "/" + column.name, .paper = row.values[column_index]}};
}

std::vector<PlannedCell> wanted_cells(const PublishedTable& table, const ReproductionOptions& options) {
  std::vector<PlannedCell> out;
  // Rows that others need run too, however long they take: the first of a ratio, and those begun from.
  const bool ratio = table.measure == Measure::sooner || table.measure == Measure::steps_per_second;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const PublishedColumn& column = table.columns[i];
    const std::string missing = why_no_data(table, column, options);
    const bool column_asked = std::any_of(table.rows.begin(), table.rows.end(), [&](const PublishedRow& one) {
      return named(options.rows, one, column);
    });
    for (const PublishedRow& row : table.rows) {
      const bool is_first = &row == &table.rows.front() && ratio && column_asked;
      const bool is_base = std::any_of(table.rows.begin(), table.rows.end(), [&](const PublishedRow& one) {
        return one.from == row.name && named(options.rows, one, column);
      });
      const bool is_asked = named(options.rows, row, column) || is_first || is_base;
      if (!options.rows.empty() && !is_asked) continue;
      PlannedCell planned = PlannedCell::of(table, row, i);
      planned.asked = is_asked;
      planned.has_data = missing.empty();
      const std::string& spec = row.attention_on(column);
      if (spec.empty())
        planned.cell.remark = row.note;
      else if (const std::string why = why_unknown(spec); !why.empty())
        planned.cell.remark = "not run: " + why;
      else
        planned.cell.remark = missing;
      out.push_back(std::move(planned));
    }
  }
  check_patterns(table, options.rows, out);
  const auto all = std::count_if(out.begin(), out.end(), runs);
  int64_t number = 0;
  for (PlannedCell& planned : out) {
    if (runs(planned)) planned.position = text(++number, " of ", all);
  }
  return out;
}

void mark_failed(PlannedCell& planned, const Error& why) {
  planned.cell.remark = why.what();
  planned.cell.code = static_cast<int>(why.fault());
  planned.plans.clear();
}

Config config_of(const PlannedCell& planned, const ReproductionOptions& options, int64_t seed) {
  Config config = make_config(planned.column->preset);
  const std::string& spec = planned.row->attention_on(*planned.column);
  const std::string where = "published_results.json: ";
  for (const auto& [key, value] : planned.row->settings) config.set(key, value, where);
  if (config.model.kind == ModelKind::seq2seq) {
    config.set("attention.cross", spec, where);
  } else {
    config.set("attention.encoder", spec, where);
    if (!planned.column->encoder_only) config.set("attention.decoder", spec, where);
  }
  options.adjust(config);
  const std::string data = data_of(*planned.column, options);
  if (!data.empty()) config.set("data.path", data, "--data: ", SetBy::command_line);
  config.train.seed += seed;
  config.check();
  return config;
}

Config recipe_of(const PlannedCell& planned) {
  Config recipe = preset_config(planned.column->preset);
  for (const auto& [key, value] : planned.row->settings) recipe.set(key, value, "published_results.json: ");
  return recipe;
}

std::string deviations_of(const PlannedCell& planned, Config& config) {
  Config wanted = recipe_of(planned);
  std::string out;
  for (const ReportSetting& one : different_settings(config, wanted)) {
    if (one.key.starts_with("attention.") || one.key == "data.path" || one.key == "train.seed") continue;
    const auto& own = planned.row->settings;
    const bool is_of_row =
        std::any_of(own.begin(), own.end(), [&](const auto& setting) { return setting.first == one.key; });
    picture::append_part(out, to_string(one, is_of_row ? "row" : "recipe"), ", ");
  }
  return out;
}

}  // namespace heed
