// A heat map of one head for a terminal: rows are queries, columns are keys, shades are weights.
#pragma once

#include <cstdint>
#include <string>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// Size limits of a text map, and whether to use colour.
struct TextOptions {
  int64_t width = 100;  ///< columns of the terminal; wider maps are split into blocks of keys
  int64_t rows = 48;    ///< maximum of queries and of keys shown; the rest is cut with a note
  int64_t label = 14;   ///< maximum columns of a token; longer ones end in an ellipsis
  bool colour = false;  ///< add colours; the shades alone are complete
  std::string note{};   ///< what the numbers are, where they are no weights; below the heading
};

/// Options for the current standard output: its width, and colour on a terminal unless NO_COLOR is set or
/// TERM is dumb.
TextOptions terminal_options();

/// The map of one head as lines of text, followed by a legend of the shades. Throws a data Error for an
/// inconsistent map, a usage Error when there is no such head.
std::string map_text(const MapView& map, int64_t head, const TextOptions& options = {});

}  // namespace heed
