// Chooses the cells of a reproduction and derives the settings of their runs.
#include <algorithm>

#include "heed/core/io/ascii.h"
#include "heed/train/config/config.h"
#include "heed/train/experiments/preset_diff.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

constexpr const char* settings_source = "published_results.json: ";  // in errors of settings

std::string in_lower_case(std::string words) {
  std::ranges::transform(words, words.begin(), ascii_lower);
  return words;
}

/// True if one of the patterns of --rows matches a cell.
bool is_named(const std::vector<std::string>& patterns, const PublishedRow& row,
              const PublishedColumn& column) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return names_cell(pattern, row, column); });
}

/// Why a column has no data; empty for a column with data and for one that needs none.
std::string why_no_data(const PublishedTable& table, const PublishedColumn& column,
                        const ReproductionOptions& options) {
  if (options.data.contains(column.name)) return "";
  const bool reads_files = !trains(table.measure) && table.measure != Measure::steps_per_second;
  if (reads_files && column.data.empty() && !column.real_data.empty())
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

/// Applies the changes of a cell's column and row to the settings of its preset.
void set_published(Config& config, const PlannedCell& planned) {
  for (const auto* settings : {&planned.column->settings, &planned.row->settings}) {
    for (const auto& [key, value] : *settings) config.set(key, value, settings_source);
  }
}

/// Fails at a pattern that matches none of these cells.
void check_patterns(const PublishedTable& table, const std::vector<std::string>& patterns,
                    const std::vector<PlannedCell>& cells) {
  for (const std::string& pattern : patterns) {
    const bool is_known = std::ranges::any_of(cells, [&](const PlannedCell& planned) {
      return names_cell(pattern, *planned.row, *planned.column);
    });
    if (is_known) continue;
    const auto name_of = [](const auto& row_or_column) { return row_or_column.name; };
    fail("--rows ", pattern, ": ", table.name,
         " has no such row or column. It has: ", picture::joined(table.rows, ", ", name_of), ", ",
         picture::joined(table.columns, ", ", name_of), "; one cell is ROW/COLUMN.");
  }
}

}  // namespace

bool names_cell(const std::string& pattern, const PublishedRow& row, const PublishedColumn& column) {
  const std::string wanted = in_lower_case(pattern);
  return wanted == in_lower_case(row.name) || wanted == in_lower_case(column.name) ||
         wanted == in_lower_case(row.name + "/" + column.name);
}

std::string data_of(const PublishedColumn& column, const ReproductionOptions& options) {
  const auto given = options.data.find(column.name);
  return given != options.data.end() ? given->second : column.data;
}

bool can_run(const PlannedCell& planned) {
  const std::string& spec = planned.row->attention_on(*planned.column);
  return planned.has_data && !spec.empty() && why_unknown(spec).empty();
}

PlannedCell PlannedCell::of(const PublishedTable& table, const PublishedRow& row, size_t column_index) {
  const PublishedColumn& column = table.columns[column_index];
  return {.row = &row,
          .column = &column,
          .column_index = column_index,
          .result = {.name = row.name + "/" + column.name, .paper = row.values[column_index]}};
}

std::vector<PlannedCell> wanted_cells(const PublishedTable& table, const ReproductionOptions& options) {
  std::vector<PlannedCell> cells;
  const bool is_ratio = table.measure == Measure::sooner || table.measure == Measure::steps_per_second;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const PublishedColumn& column = table.columns[i];
    const std::string why_missing = why_no_data(table, column, options);
    for (const PublishedRow& row : table.rows) {
      // A named row runs however long it takes, and so do the rows that it needs: the first row of a ratio,
      // and the row whose trained weights it begins from.
      const bool is_requested = std::ranges::any_of(table.rows, [&](const PublishedRow& other) {
        const bool needs_row =
            &other == &row || other.from == row.name || (is_ratio && &row == &table.rows.front());
        return needs_row && is_named(options.rows, other, column);
      });
      if (!options.rows.empty() && !is_requested) continue;
      PlannedCell planned = PlannedCell::of(table, row, i);
      planned.is_requested = is_requested;
      planned.has_data = why_missing.empty();
      const std::string& spec = row.attention_on(column);
      const std::string why = spec.empty() ? "" : why_unknown(spec);
      planned.result.remark = spec.empty() ? row.note : why.empty() ? why_missing : "not run: " + why;
      cells.push_back(std::move(planned));
    }
  }
  check_patterns(table, options.rows, cells);
  const auto num_runnable = std::ranges::count_if(cells, can_run);
  int64_t number = 0;
  for (PlannedCell& planned : cells) {
    if (can_run(planned)) planned.position = text(++number, " of ", num_runnable);
  }
  return cells;
}

void mark_failed(PlannedCell& planned, const Error& why) {
  planned.result.remark = why.what();
  planned.result.code = static_cast<int>(why.fault());
  planned.plans.clear();
  planned.trials.clear();
}

Config config_of(const PlannedCell& planned, const ReproductionOptions& options, int64_t seed,
                 const GridPoint& point) {
  Config config = make_config(planned.column->preset);
  const std::string& spec = planned.row->attention_on(*planned.column);
  set_published(config, planned);
  if (config.model.kind == ModelKind::seq2seq) {
    config.set("attention.cross", spec, settings_source);
  } else {
    config.set("attention.encoder", spec, settings_source);
    if (!planned.column->encoder_only) config.set("attention.decoder", spec, settings_source);
  }
  options.adjust(config, point);
  const std::string data = data_of(*planned.column, options);
  if (!data.empty()) config.set("data.path", data, "--data: ", SetBy::command_line);
  config.train.seed += seed;
  config.check();
  return config;
}

Config recipe_of(const PlannedCell& planned) {
  Config recipe = preset_config(planned.column->preset);
  set_published(recipe, planned);
  return recipe;
}

std::string deviations_of(const PlannedCell& planned, Config& config) {
  Config recipe = recipe_of(planned);
  std::string deviations;
  for (const ReportSetting& setting : different_settings(config, recipe)) {
    const std::string& key = setting.key;
    if (key.starts_with("attention.") || key == "data.path" || key == "train.seed") continue;
    const bool is_of_row =
        std::ranges::any_of(planned.row->settings, [&](const auto& of_row) { return of_row.first == key; });
    picture::append_part(deviations, to_string(setting, is_of_row ? "row" : "recipe"), ", ");
  }
  return deviations;
}

}  // namespace heed
