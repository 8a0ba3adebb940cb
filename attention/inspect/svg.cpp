// Elements of SVG, and the colours of pictures that are files of their own.
#include "heed/attention/inspect/svg.h"

#include <algorithm>
#include <array>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"

namespace heed::picture {
namespace {

/// A colour of the style sheet (attention/inspect/page.css has the same values).
struct PageColour {
  std::string_view name, light, dark;
};
constexpr std::array page_colours{
    PageColour{"paper", "#fff", "#14161a"},       PageColour{"text", "#1c2024", "#e7e9ec"},
    PageColour{"muted", "#5c6670", "#9ba5b0"},    PageColour{"line", "#e1e5ea", "#2a2f36"},
    PageColour{"strong", "#c3cad2", "#464d57"},   PageColour{"series-0", "#2b6cb0", "#6aa9e9"},
    PageColour{"series-1", "#c2560c", "#f0975a"}, PageColour{"series-2", "#2a8253", "#62c08d"},
    PageColour{"series-3", "#b02a77", "#ec7fbb"}, PageColour{"series-4", "#6a45bf", "#a88bef"},
    PageColour{"series-5", "#8a6a06", "#d9b44a"}, PageColour{"series-6", "#0d7780", "#4fc3cd"},
    PageColour{"series-7", "#9b2c2c", "#ee7f7f"}};

/// The style element that declares all colours, light or dark by the reader's preference.
std::string style_element() {
  std::string light, dark;
  for (const PageColour& colour : page_colours) {
    light += text(light.empty() ? "" : ";", "--", colour.name, ":", colour.light);
    dark += text(dark.empty() ? "" : ";", "--", colour.name, ":", colour.dark);
  }
  return text("<style>svg{", light, "}@media(prefers-color-scheme:dark){svg{", dark, "}}</style>\n");
}

/// The style of an element whose attributes name colours, such as fill="var(--text)": "fill:var(--text)". The
/// attributes get the light colours instead.
std::string move_to_style(std::string& element) {
  static constexpr std::string_view begin = "=\"var(--", end = ")\"";
  std::string style;
  for (size_t equals; (equals = element.find(begin)) != std::string::npos;) {
    const size_t name_start = equals + begin.size(), name_end = element.find(end, name_start);
    const std::string name = element.substr(name_start, name_end - name_start);
    const size_t space = element.rfind(' ', equals);
    const std::string attribute = element.substr(space + 1, equals - space - 1);
    style += text(style.empty() ? "" : ";", attribute, ":var(--", name, ")");
    const auto* const colour = std::find_if(page_colours.begin(), page_colours.end(),
                                            [&](const PageColour& c) { return c.name == name; });
    if (colour == page_colours.end()) fail(Fault::internal, "standalone_svg: no colour is called ", name);
    const size_t value_start = equals + 2;  // behind =" ; the value ends with the parenthesis
    element.replace(value_start, name_end + 1 - value_start, colour->light);
  }
  return style;
}

}  // namespace

std::string fill(std::string_view colour) { return text("fill=\"", colour, "\""); }

std::string SvgCanvas::number(double value) const { return trimmed(value, decimals_); }

void SvgCanvas::element(std::string_view start, std::string_view attributes, std::string_view tooltip) {
  body_ += text("<", start, attributes.empty() ? "" : " ", attributes);
  if (tooltip.empty())
    body_ += "/>\n";
  else
    body_ += text("><title>", escape(tooltip), "</title></", start.substr(0, start.find(' ')), ">\n");
}

void SvgCanvas::label(double x, double y, std::string_view words, std::string_view attributes) {
  constexpr std::string_view mark = "▁";
  const bool is_marked = words.size() > mark.size() && words.starts_with(mark);
  if (is_marked) words.remove_prefix(mark.size());
  body_ +=
      text("<text x=\"", number(x), "\" y=\"", number(y), "\"", attributes.empty() ? "" : " ", attributes,
           ">", is_marked ? "<tspan opacity=\"0.3\">▁</tspan>" : "", escape(words), "</text>\n");
}

void SvgCanvas::rotated_label(double x, double y, double degrees, std::string_view words,
                              std::string_view attributes) {
  label(x, y, words,
        text(attributes, attributes.empty() ? "" : " ", "transform=\"rotate(", degrees, " ", number(x), " ",
             number(y), ")\""));
}

void SvgCanvas::rectangle(double x, double y, double width, double height, std::string_view attributes,
                          std::string_view tooltip) {
  element(text("rect x=\"", number(x), "\" y=\"", number(y), "\" width=\"", number(width), "\" height=\"",
               number(height), "\""),
          attributes, tooltip);
}

void SvgCanvas::circle(double x, double y, double radius, std::string_view attributes,
                       std::string_view tooltip) {
  element(text("circle cx=\"", number(x), "\" cy=\"", number(y), "\" r=\"", number(radius), "\""), attributes,
          tooltip);
}

void SvgCanvas::horizontal(double x, double y, double to_x, std::string_view attributes) {
  path(text("M", number(x), " ", number(y), "H", number(to_x)), attributes);
}

void SvgCanvas::vertical(double x, double y, double to_y, std::string_view attributes) {
  path(text("M", number(x), " ", number(y), "V", number(to_y)), attributes);
}

void SvgCanvas::path(std::string_view data, std::string_view attributes) {
  element(text("path ", attributes), text("d=\"", data, "\""), {});
}

std::string SvgCanvas::document(double width, double height, std::string_view attributes,
                                std::string_view title, std::string_view background) const {
  std::string out = text("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", trimmed(width, 2), " ",
                         trimmed(height, 2), "\" ", attributes, ">\n");
  if (!title.empty()) out += text("<title>", escape(title), "</title>\n");
  if (!background.empty()) out += text("<rect width=\"100%\" height=\"100%\" ", fill(background), "/>\n");
  return text(out, body_, "</svg>\n");
}

std::string standalone_svg(const std::string& svg) {
  std::string out;
  for (size_t begin = 0; begin < svg.size();) {
    const size_t end = std::min(svg.find('>', begin), svg.size() - 1) + 1;
    std::string element = svg.substr(begin, end - begin);
    const std::string style = move_to_style(element);
    if (!style.empty())
      element.insert(element.size() - (element.ends_with("/>") ? 2 : 1), " style=\"" + style + "\"");
    out += element;
    if (begin == 0) out += "\n" + style_element();
    begin = end;
  }
  return out;
}

}  // namespace heed::picture
