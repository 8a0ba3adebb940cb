// The page around a section of maps: style, scripts, and a content security policy by their hashes.
#include "heed/attention/inspect/map_page.h"

#include <string_view>

#include "heed/attention/inspect/page_assets.h"
#include "heed/attention/inspect/page_data.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/hash.h"

namespace heed {
namespace {

/// The hash of an element's text, as written in a content security policy.
std::string policy_hash(std::string_view inside) {
  Sha256 sum;
  sum.update(inside);
  return text("'sha256-", picture::base64(sum.digest()), "'");
}

}  // namespace

std::string maps_section(const std::vector<MapView>& maps, const HtmlOptions& options) {
  if (maps.empty()) fail("maps_section: there is no map. Give at least one.");
  return text(
      "<section class=\"maps\" aria-label=\"Attention maps\">\n<noscript>The maps are drawn by a script "
      "inside this page; please allow it to run.</noscript>\n<script type=\"application/json\">",
      picture::maps_json(maps, options), "</script>\n</section>\n");
}

std::string maps_page(const std::vector<MapView>& maps, const HtmlOptions& options) {
  return picture::page(options.title, options.subtitle, maps_section(maps, options), picture::map_scripts());
}

std::string picture::page(const std::string& title, const std::string& subtitle, const std::string& body,
                          const std::vector<std::string_view>& scripts, std::string_view more_style) {
  const std::string sheet = text("\n", style(), more_style);
  std::string script;
  for (const std::string_view part : scripts) script += part;
  std::string out = text(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src ",
      policy_hash(sheet), "; script-src ", policy_hash(script), "; img-src data: blob:\">\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>", escape(title),
      "</title>\n<style>", sheet, "</style>\n</head>\n<body>\n<div class=\"top\">\n<h1>", escape(title),
      "</h1>\n");
  if (!subtitle.empty()) out += text("<p class=\"subtitle\">", escape(subtitle), "</p>\n");
  return out + text("</div>\n<main>\n", body,
                    "</main>\n<footer>Written by Heed. This page loads nothing and works "
                    "offline.</footer>\n<script>",
                    script, "</script>\n</body>\n</html>\n");
}

}  // namespace heed
