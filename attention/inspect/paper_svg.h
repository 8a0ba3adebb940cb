// One head as a figure for print: the width of a column, black on white, no heading.
#pragma once

#include <cstdint>
#include <string>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// Options of a figure for print.
struct PaperOptions {
  double width_mm = 84;  ///< width of the whole figure: a column of a two-column page
  int64_t limit = 64;    ///< tokens per side; longer maps are drawn in tiles
};

/// One head as SVG in millimetres: greys from white (0) to black (1), which any printer keeps apart, weights
/// below zero hatched, tokens in a serif face of 7 points (less where the cells are smaller, down to 4.5;
/// below that only the axes are named), a scale at the right. Throws as map_svg() does.
std::string paper_svg(const MapView& map, int64_t head, const PaperOptions& options = {});

}  // namespace heed
