// Attention maps as a section of a page, and as a page of their own.
#include "heed/attention/inspect/map_page.h"

#include "heed/attention/inspect/html_page.h"
#include "heed/attention/inspect/page_data.h"
#include "heed/core/error.h"

namespace heed {

std::string maps_section(const std::vector<MapView>& maps, const HtmlOptions& options) {
  if (maps.empty()) fail("maps_section: there is no map. Give at least one.");
  return picture::script_section("maps", "Attention maps", "The maps are drawn",
                                 picture::maps_json(maps, options));
}

std::string maps_page(const std::vector<MapView>& maps, const HtmlOptions& options) {
  return picture::page(options.title, options.subtitle, maps_section(maps, options), picture::map_scripts());
}

}  // namespace heed
