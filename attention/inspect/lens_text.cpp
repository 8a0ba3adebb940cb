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

/// A token with visible characters only, cut to so many columns.
std::string lens_word(const std::string& token, int64_t columns) {
  return picture::shorten(picture::visible(token), columns);
}

constexpr int64_t columns_after_word = 6;  // columns of " 93 =" in a cell

/// The most probable token of a layer at a position, in word_columns, and its probability in percent: "libro
/// 93 =".
/// "=", or a strong colour, marks the token that the last layer predicts, too.
std::string lens_cell_text(const LensView& lens, size_t layer, size_t position, int64_t word_columns,
                           const TextOptions& options) {
  const LensGuess& guess = lens.cells[layer][position].best.front();
  const bool is_final = guess.token == lens.cells.back()[position].best.front().token;
  const std::string percent = std::to_string(std::lround(100 * guess.probability));
  const std::string cell = padded(lens_word(guess.token, word_columns), word_columns) + " " +
                           padded(percent, 3, picture::Align::right);
  if (!options.colour) return cell + (is_final ? " =" : "  ");
  return text(is_final ? lens_strong : lens_faint, cell, lens_plain, "  ");
}

}  // namespace

std::string lens_text(const LensView& lens, const TextOptions& options) {
  check(lens);
  const size_t layers = lens.layers.size(), positions = lens.tokens.size(),
               rows = std::min(positions, static_cast<size_t>(std::max<int64_t>(options.rows, 1)));
  const int64_t max_label = std::max<int64_t>(options.label, 5);
  int64_t token_columns = 4, word_columns = 5;  // at least as wide as "read" and "[SOS]"
  for (size_t position = 0; position < rows; ++position) {
    token_columns = std::max(token_columns, display_width(lens_word(lens.tokens[position], max_label)));
    for (const auto& row : lens.cells)
      word_columns =
          std::max(word_columns, display_width(lens_word(row[position].best.front().token, max_label)));
  }
  const int64_t cell_columns = std::max<int64_t>(word_columns + columns_after_word, 12);
  const auto layers_per_block =
      static_cast<size_t>(std::max<int64_t>(1, (options.width - token_columns - 4) / cell_columns));
  std::string out;
  for (size_t first = 0; first < layers; first += layers_per_block) {
    const size_t end = std::min(first + layers_per_block, layers);
    std::string head = "  " + padded("read", token_columns + 2);
    for (size_t layer = first; layer < end; ++layer) head += padded(lens.layers[layer], cell_columns);
    out += (first > 0 ? "\n" : "") + picture::trimmed_line(head);
    for (size_t position = 0; position < rows; ++position) {
      std::string line = "  " + padded(lens_word(lens.tokens[position], max_label), token_columns + 2);
      for (size_t layer = first; layer < end; ++layer) {
        line += lens_cell_text(lens, layer, position, word_columns, options);
        line += std::string(static_cast<size_t>(cell_columns - word_columns - columns_after_word), ' ');
      }
      out += picture::trimmed_line(line);
    }
  }
  if (rows < positions)
    out += text("  cut to the first ", rows, " of ", positions, " positions; the page has them all\n");
  return out + (options.colour
                    ? "  numbers are percent; strong where a layer already says what the last one says\n"
                    : "  numbers are percent; = where a layer already says what the last one says\n");
}

}  // namespace heed
