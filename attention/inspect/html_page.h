// HTML pages that work offline: the frame of a page, and what several pages have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed::picture {

/// The style sheet: light or dark by the reader's preference, colours as custom properties.
std::string_view style();

/// The object `heed`: elements, colours, the tooltip, and saving an svg element as SVG or PNG.
inline constexpr std::string_view tools_script = "attention/inspect/page_tools.js";
/// Draws small grids of heads and reads numbers in base64; needs tools_script.
inline constexpr std::string_view grid_script = "attention/inspect/page_grid.js";
/// The scripts that turn each section of class "maps" into a viewer, in the order in which a page needs them.
std::vector<std::string_view> map_scripts();

/// A complete page around a body: style, heading, and at its end the scripts, which are named as
/// embedded_file() knows them. Its content security policy allows only this style sheet (with `more_style` at
/// its end) and these scripts, by their hashes, so anything injected into the body has no effect. Style
/// attributes are blocked too: the body uses classes, and scripts set element.style.
std::string page(const std::string& title, const std::string& subtitle, const std::string& body,
                 const std::vector<std::string_view>& scripts, std::string_view more_style = {});

/// A section that a script of the page fills from `json`, which must be safe inside a script element. `drawn`
/// is the beginning of the note to readers without scripts: "The maps are drawn".
std::string script_section(std::string_view css_class, std::string_view label, std::string_view drawn,
                           std::string_view json);

/// The head of a table: each column's name, escaped, in a cell.
std::string column_heads(const std::vector<std::string>& names);
/// The head of a table's row: its name, escaped, in a cell.
std::string row_head(std::string_view name);
/// A table within a region that scrolls by itself; `head` and `rows` are HTML.
std::string html_table(std::string_view label, std::string_view css_class, const std::string& head,
                       const std::string& rows);

}  // namespace heed::picture
