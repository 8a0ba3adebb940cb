// Pictures that stand alone as files: colours of light and dark pages, and plain ones for other programs.
#pragma once

#include <string>

namespace heed::picture {

/// An SVG element that names colours as on the report's page, fill="var(--text)", as a file of its own: a
/// style element gives the colours by the reader's preference of light or dark, and each place holds the
/// light one too, for programs that know no variables of CSS. An internal error for a colour that is not in
/// the table.
std::string standalone_svg(const std::string& svg);

}  // namespace heed::picture
