// The style sheet and scripts of all HTML pages that Heed writes: plain CSS and JavaScript.
#pragma once

#include <string>
#include <string_view>

namespace heed::picture {

/// The style sheet: light or dark by the reader's preference, colours as custom properties.
std::string_view style();

/// The object `heed`: elements, colours, the tooltip, and saving an svg element as SVG or PNG.
std::string_view script_tools();
/// Draws one head as a matrix and several heads as lines; needs script_tools.
std::string_view script_views();
/// Turns each section of class "maps" into the viewer; needs the two above.
std::string_view script_maps();

}  // namespace heed::picture
