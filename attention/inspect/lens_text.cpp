// Writes a logit lens as a table of text.
#include "heed/attention/inspect/lens_text.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/terminal.h"

namespace heed {
namespace {

constexpr std::string_view lens_faint = "\033[2m", lens_strong = "\033[38;5;68m", lens_plain = "\033[0m";

using picture::padded;

std::string lens_word(const std::string& token, int64_t columns) {
  return picture::shorten(picture::visible(token), columns);
}

/// "libro  93 =", of so many columns.
std::string lens_cell_text(const LensView& lens, size_t layer, size_t at, int64_t word,
                           const TextOptions& options) {
  const LensGuess& guess = lens.cells[layer][at].best.front();
  const bool same = guess.token == lens.cells.back()[at].best.front().token;
  const std::string percent = std::to_string(std::lround(100 * guess.probability));
  const std::string cell =
      padded(lens_word(guess.token, word), word) + " " + padded(percent, 3, picture::Align::right);
  if (!options.colour) return cell + (same ? " =" : "  ");
  return text(same ? lens_strong : lens_faint, cell, lens_plain, "  ");
}

}  // namespace

std::string lens_text(const LensView& lens, const TextOptions& options) {
  check(lens);
  const size_t layers = lens.layers.size(), positions = lens.tokens.size(),
               rows = std::min(positions, static_cast<size_t>(std::max<int64_t>(options.rows, 1)));
  const int64_t label = std::max<int64_t>(options.label, 5);
  int64_t margin = 4, word = 5;  // "read", "[SOS]"
  for (size_t at = 0; at < rows; ++at) {
    margin = std::max(margin, display_width(lens_word(lens.tokens[at], label)));
    for (const auto& row : lens.cells)
      word = std::max(word, display_width(lens_word(row[at].best.front().token, label)));
  }
  const int64_t column = std::max<int64_t>(word + 6, 12);
  const auto a_block = static_cast<size_t>(std::max<int64_t>(1, (options.width - margin - 4) / column));
  std::string out;
  for (size_t first = 0; first < layers; first += a_block) {
    const size_t end = std::min(first + a_block, layers);
    std::string head = "  " + padded("read", margin + 2);
    for (size_t layer = first; layer < end; ++layer) head += padded(lens.layers[layer], column);
    out += (first > 0 ? "\n" : "") + picture::line_without_blanks(head);
    for (size_t at = 0; at < rows; ++at) {
      std::string line = "  " + padded(lens_word(lens.tokens[at], label), margin + 2);
      for (size_t layer = first; layer < end; ++layer) {
        const std::string cell = lens_cell_text(lens, layer, at, word, options);
        line += cell + std::string(static_cast<size_t>(column - word - 6), ' ');
      }
      out += picture::line_without_blanks(line);
    }
  }
  if (rows < positions)
    out += text("  cut to the first ", rows, " of ", positions, " positions; the page has them all\n");
  return out + (options.colour
                    ? "  numbers are percent; strong where a layer already says what the last one says\n"
                    : "  numbers are percent; = where a layer already says what the last one says\n");
}

}  // namespace heed
