// Attention maps as one offline HTML file, or as a section of another page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// Titles of the page, and limits on the size of maps in it.
struct HtmlOptions {
  std::string title = "Attention maps";  ///< heading and title of the page
  std::string subtitle{};                ///< a line below the title: the sentence, the run
  int64_t longest = 512;                 ///< tokens per side up to which single weights are shown
  int64_t tiles = 256;                   ///< tiles per side for longer maps
  int64_t single_weights =
      24'000'000;  ///< stored for the zoom windows of all long maps together; 2 bytes each
};

/// A self-contained page: thumbnails of all layers and heads, matrix with values, lines between tokens,
/// statistics, SVG and PNG by a click. It loads nothing and works from a local file. Weights are stored in
/// 65,534 steps, so three decimals are exact to half a unit. Throws a data Error for an inconsistent map, a
/// usage Error when there is no map.
std::string maps_page(const std::vector<MapView>& maps, const HtmlOptions& options = {});

/// Only the section; the surrounding page needs picture::style() and, at its end, the three scripts in order.
std::string maps_section(const std::vector<MapView>& maps, const HtmlOptions& options = {});

namespace picture {

/// A complete page around a body: style, heading, and the scripts at its end. Its content security policy
/// allows only this style sheet (with `more_style` at its end) and this script, by their hashes, so anything
/// injected into the body has no effect. Style attributes are blocked too: the body uses classes, and scripts
/// set element.style.
std::string page(const std::string& title, const std::string& subtitle, const std::string& body,
                 const std::vector<std::string_view>& scripts, std::string_view more_style = {});

}  // namespace picture
}  // namespace heed
