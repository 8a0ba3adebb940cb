// The style and the scripts of the pages, which are files beside this one and inside the program.
#include "heed/attention/inspect/page_assets.h"

#include "heed/core/io/embedded_files.h"

namespace heed::picture {

std::string_view style() { return embedded_file("attention/inspect/page.css"); }

std::string_view script_tools() { return embedded_file("attention/inspect/page_tools.js"); }

std::string_view script_views() { return embedded_file("attention/inspect/page_views.js"); }

std::string_view script_maps() { return embedded_file("attention/inspect/page_maps.js"); }

}  // namespace heed::picture
