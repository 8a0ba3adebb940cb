// Attention maps as one offline HTML file, or as a section of another page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// Titles of the page, and limits on the size of maps in it.
struct HtmlOptions {
  std::string title = "Attention maps";  ///< heading and title of the page
  std::string subtitle{};                ///< a line below the title: the sentence, the run
  int64_t longest = 512;                 ///< tokens per side up to which every single weight is shown
  int64_t tiles = 256;                   ///< tiles per side for longer maps
  int64_t long_bytes = 9'000'000;        ///< for single weights of all longer maps together, before base64
};

/// A self-contained page: thumbnails of all layers and heads, one head as matrix, as lines between tokens, in
/// the text and over a picture, the queries and keys behind its weights, rollout and attribution where the
/// maps have them, statistics, SVG and PNG by a click. It loads nothing and works from a local file. Small
/// maps are stored exactly, others in 65,534 steps between the smallest and the largest weight. Of a map
/// longer than `longest` the page has tiles, and as many of the largest weights of each row as `long_bytes`
/// permits, with the bound on those left out. Throws a data Error for an inconsistent map, a usage Error when
/// there is no map.
std::string maps_page(const std::vector<MapView>& maps, const HtmlOptions& options = {});

/// The maps as a section of a page, to which picture::page() must be given picture::map_scripts().
std::string maps_section(const std::vector<MapView>& maps, const HtmlOptions& options = {});

}  // namespace heed
