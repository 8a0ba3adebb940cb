// A heat map of one head for a terminal: rows are queries, columns are keys, shades are weights.
#pragma once

#include <cstdint>
#include <string>

#include "attention/map_view.h"

namespace heed {

/// How much room there is, and whether colour may be used.
struct TextOptions {
  int64_t width = 100;  ///< columns of the terminal; wider maps are broken into blocks of keys
  int64_t rows = 48;    ///< queries shown at most, and keys; the rest is cut with a note
  int64_t label = 14;   ///< columns of a token at most; longer ones end in an ellipsis
  bool colour = false;  ///< decorate with colours (the shades say everything without them)
};

/// Options for standard output as it is: its width, and colour on a terminal unless NO_COLOR is set or TERM
/// is dumb.
TextOptions terminal_options();

/// The map of one head as lines of text, ended by a key to the shades. Throws a data Error when the map is
/// inconsistent, a usage Error when there is no such head.
std::string map_text(const MapView& map, int64_t head, const TextOptions& options = {});

}  // namespace heed
