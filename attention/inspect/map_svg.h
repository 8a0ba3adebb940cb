// Attention maps as SVG files: one head with its tokens, or all heads of all layers on one sheet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/attention/inspect/map_view.h"
#include "heed/attention/inspect/svg.h"

namespace heed {

/// Options of a picture of one head.
struct SvgOptions {
  std::string title = {};         ///< above the map; empty gives "cross attention, layer 0, head 3"
  int64_t limit = 128;            ///< tokens per side; longer maps are drawn in tiles
  bool scale_to_largest = false;  ///< colours from 0 to the largest weight instead of 0 to 1
};

/// One head as a complete SVG file: rows are queries, columns are keys, each cell has its weight as a
/// tooltip, and a scale explains the colours. Throws a data Error for an inconsistent map, a usage Error for
/// a head out of range.
std::string map_svg(const MapView& map, int64_t head, const SvgOptions& options = {});

/// Every head of every map as a small picture on one SVG sheet: a row per map, a column per head.
std::string contact_sheet_svg(const std::vector<MapView>& maps, const std::string& title = "");

namespace picture {

/// The colour of a weight between 0 and 1 on a white background, as "#rrggbb": white to dark blue, orange
/// below zero, grey when not finite. Lightness decreases evenly; small weights stay visible.
std::string colour(double weight);

/// The place of a head on a canvas, and its number of shades.
struct HeadFrame {
  double x = 0;       ///< position of the left edge
  double y = 0;       ///< position of the upper edge
  double width = 0;   ///< width of all keys together
  double height = 0;  ///< height of all queries together
  int shades = 24;    ///< steps of weights from 0 to 1
};
/// Adds all cells of one head above the lowest shade: one path per shade, with runs of equal cells joined to
/// keep files small.
void add_head(SvgCanvas& out, const MapView& map, int64_t head, const HeadFrame& frame);

}  // namespace picture
}  // namespace heed
