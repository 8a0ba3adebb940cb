// Wraps text at words and lays out tables.
#include "heed/core/io/table_text.h"

#include <algorithm>
#include <numeric>

namespace heed {
namespace {

constexpr int64_t gap = 2;  // blanks between two columns of a table

/// Bytes of the longest part of `word` that ends in a comma or bar and has at most `columns` columns; the
/// shortest such part where all are wider, the whole word where it fits or has none.
size_t breakable_part(std::string_view word, int64_t columns) {
  if (display_width(word) <= columns) return word.size();
  size_t part = 0;
  for (size_t end = 1; end < word.size(); ++end) {
    if (word[end - 1] != ',' && word[end - 1] != '|') continue;
    if (part > 0 && display_width(word.substr(0, end)) > columns) break;
    part = end;
  }
  return part > 0 ? part : word.size();
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// The text wrapped at words: the first line of at most `columns` columns, the others of `hanging` fewer.
std::vector<std::string> wrap(std::string_view text, int64_t columns, int64_t hanging = 0) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::vector<std::string> lines(1);
  int64_t used = 0;
  const auto end_line = [&] {
    lines.back() = without_trailing_blanks(lines.back());
    lines.emplace_back();
    used = 0;
  };
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    std::string_view word = text.substr(at, end - at);
    for (bool is_continued = false; !is_continued || !word.empty(); is_continued = true) {
      const std::string_view part = word.substr(0, breakable_part(word, columns - hanging));
      word.remove_prefix(part.size());
      const int64_t width = display_width(part);
      int64_t blank = lines.back().empty() || is_continued ? 0 : 1;
      const int64_t room = columns - (lines.size() > 1 ? hanging : 0);
      if (!lines.back().empty() && width > room - used - blank) {
        end_line();
        blank = 0;
      }
      lines.back() += std::string(static_cast<size_t>(blank), ' ') + std::string(part);
      used += blank + width;
    }
    if (end < text.size() && text[end] == '\n') end_line();
    at = end + 1;
  }
  lines.back() = without_trailing_blanks(lines.back());
  return lines;
}

int64_t widest(const std::vector<std::string>& lines) {
  int64_t width = 0;
  for (const std::string& line : lines) width = std::max(width, display_width(line));
  return width;
}

std::string blanks(int64_t count) {
  return std::string(static_cast<size_t>(std::max<int64_t>(0, count)), ' ');
}

/// One line of folded_lines(), without its end. Its label or indent is not wrapped and stays before the text.
std::string folded_line(std::string_view line, int64_t columns) {
  if (display_width(line) <= columns) return std::string(line);
  const size_t first = std::min(line.find_first_not_of(' '), line.size());
  const size_t second = line.find_first_not_of(' ', line.find("  ", first));
  const bool is_labelled = second != std::string_view::npos && 2 * static_cast<int64_t>(second) <= columns;
  const std::string_view label = line.substr(0, is_labelled ? second : first);
  const int64_t column = display_width(label), hanging = column > 0 ? 0 : 2;
  std::string out(label);
  for (const std::string& part : wrap(line.substr(label.size()), columns - column, hanging))
    out += (out.size() > label.size() ? "\n" + blanks(column + hanging) : "") + part;
  return out;
}

/// A row of a table; `extends` where its last cell takes the columns that it has no cells for, too.
struct LaidRow {
  TableRow cells;
  bool extends;
};

/// The widths of the columns of a table: `natural` without wrapping, `least` wrapped at each word.
struct ColumnWidths {
  std::vector<int64_t> natural, least;

  ColumnWidths(const std::vector<LaidRow>& rows, const std::string& alignment)
      : natural(alignment.size()), least(alignment.size()) {
    for (const LaidRow& row : rows) {
      for (size_t i = 0; i + (row.extends ? 1 : 0) < row.cells.size(); ++i) {
        const bool wraps = alignment[i] == 'l' || &row == &rows.front();
        natural[i] = std::max(natural[i], widest(wrap(row.cells[i], unlimited_columns)));
        least[i] = std::max(least[i], widest(wrap(row.cells[i], wraps ? 1 : unlimited_columns)));
      }
    }
  }

  /// At most `columns` in all, or the least widths: the widest columns become narrower.
  std::vector<int64_t> within(int64_t columns) const {
    std::vector<int64_t> out = natural;
    int64_t total = std::accumulate(out.begin(), out.end(), gap * (static_cast<int64_t>(out.size()) - 1));
    for (; total > columns; --total) {
      size_t largest = out.size();
      for (size_t i = 0; i < out.size(); ++i) {
        if (out[i] > least[i] && (largest == out.size() || out[i] > out[largest])) largest = i;
      }
      if (largest == out.size()) break;
      --out[largest];
    }
    return out;
  }

  /// How many columns fit beside each other at their least widths; at least two.
  size_t fitting(int64_t columns) const {
    size_t count = 1;
    for (int64_t used = least[0]; count < least.size() && used + gap + least[count] <= columns; ++count)
      used += gap + least[count];
    return std::max<size_t>(count, 2);
  }
};

/// The lines of one row in columns of these widths, with an indent before each.
std::string row_text(const LaidRow& row, const std::vector<int64_t>& width, const std::string& alignment,
                     int64_t columns, size_t indent) {
  std::vector<std::vector<std::string>> cells;
  size_t height = 1;
  int64_t begin = 0;
  for (size_t i = 0; i < row.cells.size(); ++i) {
    const bool extends = row.extends && i + 1 == row.cells.size();
    cells.push_back(wrap(row.cells[i], extends ? columns - begin : width[i]));
    height = std::max(height, cells.back().size());
    begin += width[i] + gap;
  }
  std::string out;
  for (size_t number = 0; number < height; ++number) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string words = number < cells[i].size() ? cells[i][number] : "";
      const std::string padding = blanks(width[i] - display_width(words));
      const bool right = alignment[i] == 'r' && !(row.extends && i + 1 == cells.size());
      line += (right ? padding + words : words + padding) + blanks(gap);
    }
    out += without_trailing_blanks(std::move(line)) + "\n";
  }
  return out;
}

/// aligned_table() of rows with an alignment for each column, in lines of at most `columns` beside the
/// indent.
std::string table_text(std::vector<LaidRow> rows, const std::string& alignment, int64_t columns,
                       size_t indent) {
  const ColumnWidths widths(rows, alignment);
  const size_t fitting = widths.fitting(columns);
  if (fitting >= alignment.size()) {
    std::string out;
    const std::vector<int64_t> width = widths.within(columns);
    for (const LaidRow& row : rows) out += row_text(row, width, alignment, columns, indent);
    return out;
  }
  std::vector<LaidRow> rest;
  for (LaidRow& row : rows) {
    if (row.cells.size() <= fitting) continue;
    const auto first = row.cells.begin() + static_cast<int64_t>(fitting);
    rest.push_back({{row.cells[0]}, row.extends});
    rest.back().cells.insert(rest.back().cells.end(), first, row.cells.end());
    row.cells.erase(first, row.cells.end());
    row.extends = false;
  }
  return table_text(std::move(rows), alignment.substr(0, fitting), columns, indent) + "\n" +
         table_text(std::move(rest), alignment[0] + alignment.substr(fitting), columns, indent);
}

}  // namespace

std::string folded(std::string_view text, int64_t columns, std::string_view indent) {
  std::string out;
  for (const std::string& line : wrap(text, columns, display_width(indent)))
    out += (out.empty() || line.empty() ? "" : std::string(indent)) + line + "\n";
  return out;
}

std::string folded_lines(std::string_view text, int64_t columns) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += folded_line(text.substr(at, end - at), columns) + (end < text.size() ? "\n" : "");
    at = end + 1;
  }
  return out;
}

std::string aligned_table(const std::vector<TableRow>& rows, const TableLayout& layout) {
  size_t count = 0;
  for (const TableRow& row : rows) count = std::max(count, row.size());
  if (count == 0) return "";
  std::string alignment = layout.alignment;
  alignment.resize(count, 'l');
  std::vector<LaidRow> laid;
  for (const TableRow& row : rows) laid.push_back({row, !row.empty() && row.size() < count});
  return table_text(std::move(laid), alignment, layout.columns - static_cast<int64_t>(layout.indent),
                    layout.indent);
}

std::string markdown_table(const std::vector<TableRow>& rows) {
  std::string out;
  for (const TableRow& row : rows) {
    out += "|";
    for (const std::string& cell : row) out += " " + cell + " |";
    out += "\n";
    if (&row != &rows.front()) continue;
    out += "|";
    for (size_t i = 0; i < row.size(); ++i) out += "---|";
    out += "\n";
  }
  return out;
}

}  // namespace heed
