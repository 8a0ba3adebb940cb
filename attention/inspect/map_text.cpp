// Draws a map with Unicode block shades, aligned by display width.
#include "heed/attention/inspect/map_text.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/terminal.h"

namespace heed {
namespace {

using picture::padded;

constexpr std::string_view faint = "\033[2m", strong = "\033[38;5;68m", plain = "\033[0m";

/// The glyph of weights below a limit. Each step is visibly darker, and weights from 0.05 on are visible.
struct Shade {
  float limit;
  std::string_view glyph;
};
constexpr Shade shades[] = {{0.05F, "·"}, {0.2F, "░"}, {0.4F, "▒"}, {0.7F, "▓"}};

std::string_view glyph_of(float weight) {
  if (!std::isfinite(weight)) return "?";
  if (weight < 0) return "-";
  for (const Shade& shade : shades)
    if (weight < shade.limit) return shade.glyph;
  return "█";
}

std::string spaces(int64_t count) {
  return std::string(static_cast<size_t>(std::max<int64_t>(count, 0)), ' ');
}

/// The first `count` tokens as labels: visible characters, at most so many columns.
std::vector<std::string> labels(const std::vector<std::string>& tokens, int64_t count, int64_t columns) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(picture::shorten(picture::visible(tokens[static_cast<size_t>(i)]), columns));
  return out;
}

/// One cell: two centred glyphs, or one for weights close to zero.
std::string cell(float weight, int64_t columns, const TextOptions& options) {
  const std::string_view glyph = glyph_of(weight);
  const bool is_shaded = glyph != "·" && glyph != "-" && glyph != "?";
  const int64_t margin = (columns - 2) / 2;
  std::string out = spaces(margin);
  if (options.colour) out += is_shaded ? strong : faint;
  out += glyph;
  if (is_shaded) out += glyph;
  if (options.colour) out += plain;
  return out + spaces(columns - margin - (is_shaded ? 2 : 1));
}

/// The characters of a word for vertical text, combining marks with their base character.
std::vector<std::string> letters(std::string_view word) {
  std::vector<std::string> out;
  for (size_t begin = 0, end = 0; begin < word.size(); begin = end) {
    for (end = begin + 1; end < word.size() && (word[end] & 0xC0) == 0x80;) ++end;
    const std::string letter(word.substr(begin, end - begin));
    if (display_width(letter) == 0 && !out.empty())
      out.back() += letter;
    else
      out.push_back(letter);
  }
  return out;
}

/// The labels of columns as lines: side by side, or with `upright` letter below letter to fit more columns.
std::string label_lines(const std::vector<std::string>& words, const std::vector<int64_t>& widths,
                        int64_t margin, bool upright) {
  if (!upright) {
    std::string line = spaces(margin);
    for (size_t i = 0; i < words.size(); ++i) line += padded(words[i], widths[i]);
    return picture::trimmed_line(line);
  }
  std::vector<std::vector<std::string>> columns;
  size_t height = 0;
  for (const auto& word : words) {
    columns.push_back(letters(word));
    height = std::max(height, columns.back().size());
  }
  std::string out;
  for (size_t row = 0; row < height; ++row) {
    std::string line = spaces(margin);
    for (size_t i = 0; i < columns.size(); ++i) {
      const size_t first_row = height - columns[i].size();
      line += padded(row < first_row ? "" : columns[i][row - first_row], widths[i]);
    }
    out += picture::trimmed_line(line);
  }
  return out;
}

/// "  layer 0 cross, head 3 (of 8)   entropy 1.20 (uniform 2.30)", and the sharpest head of several.
std::string heading(const MapView& map, int64_t head) {
  const auto statistics = head_statistics(map);
  const HeadStatistics& of_head = statistics[static_cast<size_t>(head)];
  const auto sharpest = static_cast<size_t>(sharpest_head({map}).head);
  std::string out =
      text("  layer ", map.layer, " ", map.kind, ", head ", head, " (of ", map.heads, ")   entropy ",
           picture::fixed(of_head.entropy, 2), " (uniform ", picture::fixed(of_head.uniform_entropy, 2), ")");
  if (map.heads > 1)
    out += text("   sharpest head: ", sharpest, " (entropy ", picture::fixed(statistics[sharpest].entropy, 2),
                ")");
  return out + "\n";
}

/// The legend: what each shade means.
std::string legend() {
  std::string out = "  rows are queries, columns are keys   ";
  for (const Shade& shade : shades)
    out += text(shade.glyph, " under ", picture::trimmed(shade.limit, 2), "  ");
  return out + "█ above\n";
}

}  // namespace

TextOptions terminal_options() {
  TextOptions options;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = !terminal || std::string_view(terminal) == "dumb";
  options.colour = isatty(STDOUT_FILENO) && !is_dumb && !(no_colour && *no_colour);
  options.width = terminal_columns(STDOUT_FILENO, options.width);
  return options;
}

std::string map_text(const MapView& map, int64_t head, const TextOptions& options) {
  check_head("map_text", map, head);
  const int64_t max_shown = std::max<int64_t>(options.rows, 1), label = std::max<int64_t>(options.label, 3);
  const int64_t rows = std::min(map.queries, max_shown), columns = std::min(map.keys, max_shown);
  const auto queries = labels(map.query_tokens, rows, label);
  auto keys = labels(map.key_tokens, columns, label);
  const int64_t margin = 5 + picture::max_display_width(queries) + 2;
  std::vector<int64_t> widths;
  for (const auto& word : keys) widths.push_back(std::max<int64_t>(display_width(word), 2) + 1);
  const bool upright = margin + std::accumulate(widths.begin(), widths.end(), int64_t{0}) > options.width;
  if (upright) {
    widths.assign(widths.size(), 3);
    keys = labels(map.key_tokens, columns, std::min<int64_t>(label, 10));
  }

  std::string out = heading(map, head);
  if (!options.note.empty()) out += "  " + options.note + "\n";
  for (int64_t first = 0, end = 0; first < columns; first = end) {
    int64_t block_width = margin;
    for (end = first; end < columns; ++end) {  // at least one key a block
      const int64_t width = widths[static_cast<size_t>(end)];
      if (end > first && block_width + width > options.width) break;
      block_width += width;
    }
    if (first > 0 || end < columns) out += text("\n  keys ", first, " to ", end - 1, " of ", map.keys, "\n");
    out += label_lines({keys.begin() + first, keys.begin() + end},
                       {widths.begin() + first, widths.begin() + end}, margin, upright);
    for (int64_t query = 0; query < rows; ++query) {
      std::string line = spaces(5) + padded(queries[static_cast<size_t>(query)], margin - 5);
      for (int64_t key = first; key < end; ++key)
        line += cell(map.at(head, query, key), widths[static_cast<size_t>(key)], options);
      out += picture::trimmed_line(line);
    }
  }
  if (rows < map.queries || columns < map.keys)
    out += text("  cut to the first ", rows, " of ", map.queries, " queries and ", columns, " of ", map.keys,
                " keys; the HTML page has them all\n");
  return out + legend();
}

}  // namespace heed
