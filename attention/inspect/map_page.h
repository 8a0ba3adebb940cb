// Attention maps as one offline HTML file, or as a section of another page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attention/map_view.h"

namespace heed {

/// What the page says, and how long maps are carried.
struct HtmlOptions {
  std::string title = "Attention maps";
  std::string subtitle{};  ///< a line below the title: the sentence, the run
  int64_t longest = 512;   ///< tokens a side that are shown one by one
  int64_t tiles = 256;     ///< tiles a side for longer maps
  int64_t single_weights =
      24'000'000;  ///< carried of all long maps together, for the zoom window; 2 bytes each
};

/// A complete page with everything inside: thumbnails of all layers and heads, matrix with values, lines
/// between tokens, statistics, SVG and PNG by a click. It loads nothing and runs from a local file. Weights
/// are carried in 65,534 steps, so three decimals are exact to half a unit. Throws a data Error for an
/// inconsistent map, a usage Error when there is none.
std::string maps_page(const std::vector<MapView>& maps, const HtmlOptions& options = {});

/// Only the section; the page around it has picture::style() and, at its end, the three scripts in order.
std::string maps_section(const std::vector<MapView>& maps, const HtmlOptions& options = {});

namespace picture {

/// A complete page around a body: style, heading, and the scripts at its end. Its content policy names this
/// one style sheet (with `more_style` at its end) and this one script by their hashes and loads nothing, so
/// whatever else might get into the body is not obeyed. That goes for style attributes too: the body uses
/// classes, and scripts set element.style.
std::string page(const std::string& title, const std::string& subtitle, const std::string& body,
                 const std::vector<std::string_view>& scripts, std::string_view more_style = {});

}  // namespace picture
}  // namespace heed
