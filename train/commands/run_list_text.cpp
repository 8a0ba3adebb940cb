// The table of runs.
#include <algorithm>
#include <charconv>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/table_text.h"
#include "heed/core/io/terminal.h"
#include "heed/train/commands/run_list.h"
#include "heed/train/metrics/score_name.h"

namespace heed {
namespace {

constexpr int64_t table_columns = 80;
constexpr int64_t gap = 2;               // columns between two cells
constexpr size_t max_step_columns = 13;  // "100000/250000"; of longer ones only the steps that are taken
enum Cell : size_t { name_cell, task_cell, attention_cell, score_cell, step_cell, date_cell, state_cell };

std::string four_digits(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 4).ptr;
  return {buffer, end};
}

TableRow cells_of(const ListedRun& run, bool wide) {
  std::string steps = run.step > 0 ? std::to_string(run.step) : "";
  const std::string planned = text("/", run.steps);
  const bool both = wide || steps.size() + planned.size() <= max_step_columns;
  if (run.state != "done" && run.steps > 0 && both) steps = text(run.step, planned);
  const std::string score = run.score_name.empty() ? ""
                                                   : text(four_digits(run.score), run.on_test ? " " : "* ",
                                                          score_name(run.score_name));
  std::string date = wide ? run.started : run.started.substr(0, 10);
  TableRow row{run.path.string(), run.task, run.attention, score, steps, date, run.state};
  for (std::string& cell : row) cell = terminal_word(cell);
  return row;
}

/// The widest cell of at most so many columns.
int64_t width_of(const std::vector<TableRow>& rows, size_t cell, int64_t max_columns = INT64_MAX) {
  int64_t width = 0;
  for (const TableRow& row : rows) {
    const int64_t columns = picture::display_width(row[cell]);
    if (columns <= max_columns) width = std::max(width, columns);
  }
  return width;
}

/// The columns of all cells but the name.
int64_t width_beside_name(const std::vector<TableRow>& rows) {
  int64_t width = 0;
  for (size_t cell = task_cell; cell <= state_cell; ++cell) width += gap + width_of(rows, cell);
  return width;
}

/// Cuts the cells that may be cut until names of a third of the line have room; longer ones are folded.
void narrow(std::vector<TableRow>& rows) {
  constexpr std::pair<size_t, int64_t> min_columns[] = {
      {attention_cell, 9}, {task_cell, 8}, {score_cell, 16}};
  const int64_t names = std::max<int64_t>(2, width_of(rows, name_cell, table_columns / 3));
  for (const auto& [cell, width] : min_columns) {
    const int64_t over = names + width_beside_name(rows) - table_columns;
    if (over <= 0) return;
    const int64_t cut = std::max(width, width_of(rows, cell) - over);
    for (TableRow& row : rows) row[cell] = picture::shorten(row[cell], cut);
  }
}

std::string padded(const std::string& words, int64_t columns) {
  const int64_t used = picture::display_width(words);
  return words + std::string(static_cast<size_t>(std::max<int64_t>(0, columns - used)), ' ');
}

/// Rows of which a name that is too long has a line of its own.
std::string folded_table(const std::vector<TableRow>& rows) {
  std::vector<int64_t> width;
  for (size_t cell = name_cell; cell <= state_cell; ++cell) width.push_back(width_of(rows, cell));
  width[name_cell] = std::max<int64_t>(2, width_of(rows, name_cell, table_columns - width_beside_name(rows)));
  std::string out;
  for (const TableRow& row : rows) {
    const bool fits = picture::display_width(row[name_cell]) <= width[name_cell];
    if (!fits) out += row[name_cell] + "\n";
    std::string line = padded(fits ? row[name_cell] : "", width[name_cell]);
    for (size_t cell = task_cell; cell <= state_cell; ++cell)
      line += std::string(gap, ' ') + padded(row[cell], width[cell]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}  // namespace

std::string runs_text(const std::vector<ListedRun>& runs, bool wide) {
  std::vector<TableRow> rows{{"run", "task", "attention", "score", "steps", "started", "state"}};
  for (const ListedRun& run : runs) rows.push_back(cells_of(run, wide));
  if (!wide) narrow(rows);
  std::string out = wide ? aligned_table(rows) : folded_table(rows);
  const bool validation = std::any_of(
      runs.begin(), runs.end(), [](const ListedRun& run) { return !run.score_name.empty() && !run.on_test; });
  if (validation) out += "* on validation data: the run has not been scored on its test data\n";
  for (const ListedRun& run : runs) {
    if (!run.problem.empty())
      out += text("unreadable: ", terminal_word(run.path.string()), "\n  ",
                  picture::wrapped(terminal_word(run.problem), "    ", table_columns - 2));
  }
  return out;
}

}  // namespace heed
