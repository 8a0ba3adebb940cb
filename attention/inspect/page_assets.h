// The style and the scripts of every page that Heed writes: plain CSS and JavaScript, kept readable.
#pragma once

#include <string>
#include <string_view>

namespace heed::picture {

/// The style sheet: light and dark by the reader's preference, colours as custom properties.
std::string_view style();

/// Elements, colours, the tooltip, and saving an svg element as SVG or PNG: the object `heed`.
std::string_view script_tools();
/// Drawing one head as a matrix and several heads as lines; needs script_tools.
std::string_view script_views();
/// Turns each section of class "maps" into the viewer; needs the two above.
std::string_view script_maps();

}  // namespace heed::picture
