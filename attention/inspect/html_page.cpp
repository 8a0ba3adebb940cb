// Puts pages together: style, scripts, and a content security policy by their hashes.
#include "heed/attention/inspect/html_page.h"

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/embedded_files.h"
#include "heed/core/io/hash.h"

namespace heed::picture {
namespace {

/// The hash of an element's text, as written in a content security policy.
std::string policy_hash(std::string_view element_text) {
  Sha256 hash;
  hash.update(element_text);
  return text("'sha256-", base64(hash.digest()), "'");
}

}  // namespace

std::string_view style() { return embedded_file("attention/inspect/page.css"); }

std::vector<std::string_view> map_scripts() {
  return {tools_script,
          "attention/inspect/page_data.js",
          "attention/inspect/page_views.js",
          "attention/inspect/page_tokens.js",
          "attention/inspect/page_overview.js",
          "attention/inspect/page_long.js",
          "attention/inspect/page_maps.js",
          "attention/inspect/page_drawing.js"};
}

std::string page(const std::string& title, const std::string& subtitle, const std::string& body,
                 const std::vector<std::string_view>& scripts, std::string_view more_style) {
  const std::string sheet = text("\n", style(), more_style);
  std::string script;
  for (const std::string_view name : scripts) script += embedded_file(name);
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

std::string script_section(std::string_view css_class, std::string_view label, std::string_view drawn,
                           std::string_view json) {
  return text("<section class=\"", css_class, "\" aria-label=\"", label, "\">\n<noscript>", drawn,
              " by a script inside this page; please allow it to run.</noscript>\n<script "
              "type=\"application/json\">",
              json, "</script>\n</section>\n");
}

std::string column_heads(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += text("<th scope=\"col\">", escape(name), "</th>");
  return out;
}

std::string row_head(std::string_view name) { return text("<th scope=\"row\">", escape(name), "</th>"); }

std::string html_table(std::string_view label, std::string_view css_class, const std::string& head,
                       const std::string& rows) {
  return text("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", escape(label),
              "\">\n<table class=\"", css_class, "\">\n<thead><tr>", head, "</tr></thead>\n<tbody>\n", rows,
              "</tbody>\n</table>\n</div>\n");
}

}  // namespace heed::picture
