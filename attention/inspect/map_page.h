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

/// Only the section; the surrounding page needs picture::style() and, at its end, picture::map_scripts().
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
