// The style and the scripts of the pages, which are files beside this one and inside the program.
#include "heed/attention/inspect/page_assets.h"

#include "heed/core/io/embedded_files.h"

namespace heed::picture {

std::string_view style() { return embedded_file("attention/inspect/page.css"); }

std::string_view script_tools() { return embedded_file("attention/inspect/page_tools.js"); }

std::string_view script_views() { return embedded_file("attention/inspect/page_views.js"); }

std::string_view script_data() { return embedded_file("attention/inspect/page_data.js"); }

std::string_view script_tokens() { return embedded_file("attention/inspect/page_tokens.js"); }

std::string_view script_overview() { return embedded_file("attention/inspect/page_overview.js"); }

std::string_view script_long() { return embedded_file("attention/inspect/page_long.js"); }

std::string_view script_drawing() { return embedded_file("attention/inspect/page_drawing.js"); }

std::string_view script_maps() { return embedded_file("attention/inspect/page_maps.js"); }

std::vector<std::string_view> map_scripts() {
  return {script_tools(),    script_data(), script_views(), script_tokens(),
          script_overview(), script_long(), script_maps(),  script_drawing()};
}

}  // namespace heed::picture
