// SVG as text: the canvas on which all charts and pictures are drawn.
#pragma once

#include <string>
#include <string_view>

namespace heed::picture {

/// The attribute with the font of pictures for the screen.
inline constexpr std::string_view sans_serif =
    "font-family=\"system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif\"";

/// The attribute fill="COLOUR".
std::string fill(std::string_view colour);

/// A drawing to which elements are added. Coordinates are rounded to a fixed number of decimals; words and
/// tooltips are escaped. `attributes` are written as they are: `fill="none" stroke="#000"`.
class SvgCanvas {
 public:
  explicit SvgCanvas(int decimals = 1) : decimals_(decimals) {}  ///< digits behind the point of coordinates

  /// Adds a line of text whose baseline begins at (x, y), or ends or is centred there by `text-anchor`. The
  /// mark of a word's beginning (U+2581) is drawn faintly.
  void label(double x, double y, std::string_view words, std::string_view attributes = {});
  /// Adds a label that is rotated around the beginning of its baseline.
  void rotated_label(double x, double y, double degrees, std::string_view words,
                     std::string_view attributes = {});
  /// Adds a rectangle with its upper left corner at (x, y).
  void rectangle(double x, double y, double width, double height, std::string_view attributes,
                 std::string_view tooltip = {});
  /// Adds a circle with its centre at (x, y).
  void circle(double x, double y, double radius, std::string_view attributes, std::string_view tooltip = {});
  /// Adds a horizontal line.
  void horizontal(double x, double y, double to_x, std::string_view attributes);
  /// Adds a vertical line.
  void vertical(double x, double y, double to_y, std::string_view attributes);
  /// Adds a path, whose data is written as it is.
  void path(std::string_view data, std::string_view attributes);
  /// Adds markup as it is.
  void markup(std::string_view elements) { body_ += elements; }

  /// A coordinate as text.
  std::string number(double value) const;
  /// The elements so far, without an svg element around them.
  const std::string& elements() const { return body_; }
  /// The svg element of `width` x `height` user units, with a title for screen readers and a background where
  /// they are given.
  std::string document(double width, double height, std::string_view attributes, std::string_view title = {},
                       std::string_view background = {}) const;

 private:
  void element(std::string_view start, std::string_view attributes, std::string_view tooltip);

  int decimals_;
  std::string body_;
};

/// An SVG element that names colours as on the report's page, fill="var(--text)", as a file of its own: a
/// style element gives the colours by the reader's preference of light or dark, and each place holds the
/// light one too, for programs that know no variables of CSS. An internal error for a colour that is not in
/// the table.
std::string standalone_svg(const std::string& svg);

}  // namespace heed::picture
