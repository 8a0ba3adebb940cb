// The style sheet and scripts of all HTML pages that Heed writes: plain CSS and JavaScript.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed::picture {

/// The style sheet: light or dark by the reader's preference, colours as custom properties.
std::string_view style();

/// The object `heed`: elements, colours, the tooltip, and saving an svg element as SVG or PNG.
std::string_view script_tools();
/// Reads the numbers of a page: blocks of weights, and maps with weights, attribution and rollout.
std::string_view script_data();
/// Draws one head as a matrix and several heads as lines; needs script_tools.
std::string_view script_views();
/// Draws a head in the text and over a picture, and the queries and keys behind it; needs script_tools.
std::string_view script_tokens();
/// Draws all layers and heads as thumbnails, and the tables of numbers; needs script_tools and script_data.
std::string_view script_overview();
/// The window of single weights of a long map; needs script_views.
std::string_view script_long();
/// The viewer of a section of maps: what is chosen, and the controls.
std::string_view script_maps();
/// What the viewer draws, and the keyboard; turns each section of class "maps" into a viewer.
std::string_view script_drawing();
/// All of the above, in the order in which a page needs them.
std::vector<std::string_view> map_scripts();

}  // namespace heed::picture
