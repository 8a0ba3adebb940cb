// Lays out bubbles and writes them as SVG.
#include "heed/train/report/bubble_chart.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "heed/attention/inspect/svg.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/terminal.h"
#include "heed/train/report/chart.h"

namespace heed {
namespace {

constexpr double chart_width = 720, chart_height = 440, plot_left = 64, plot_right = 690, plot_top = 52,
                 plot_bottom = 384;
constexpr double largest = chart_height / 12;
constexpr double name_height = 14, letter_width = 7;  // approximate size of a name's letters

/// An axis with room for the bubbles at its ends.
struct Axis {
  double low, high;
  std::vector<double> ticks;
};

/// The axis may extend beyond the largest possible value, but its ticks do not.
Axis linear_axis(double low, double high, double max_value) {
  const double room = high > low ? 0.12 * (high - low) : std::max(0.05 * std::fabs(high), 0.05);
  std::vector<double> ticks = axis_ticks(low - room, high + room, 6);
  Axis axis{ticks.front(), ticks.back(), {}};
  if (high <= max_value && axis.high > max_value) axis.high = std::max(high + room, max_value);
  if (low >= 0 && axis.low < 0) axis.low = low - room;
  for (const double tick : ticks) {
    if ((tick >= 0 || low < 0) && (tick <= max_value || high > max_value)) axis.ticks.push_back(tick);
  }
  return axis;
}

Axis logarithmic_axis(double low, double high) {
  const double room = std::max(std::pow(high / low, 0.12), 1.2);
  Axis axis{low / room, high * room, {}};
  const auto take = [&](const std::vector<double>& ticks) {
    axis.ticks.clear();
    for (const double tick : ticks) {
      if (tick >= axis.low && tick <= axis.high) axis.ticks.push_back(tick);
    }
  };
  take(logarithmic_ticks(axis.low, axis.high));
  if (axis.ticks.size() < 2) take(axis_ticks(axis.low, axis.high, 5));  // range below a step of 1, 2, 5
  return axis;
}

/// The position of a name: its centre and half its width.
struct Place {
  double x, y, half;
};

bool overlap(const Place& a, const Place& b) {
  return std::fabs(a.x - b.x) < a.half + b.half + 4 && std::fabs(a.y - b.y) < name_height;
}

/// The nearest free position above or below `wanted`; `wanted` itself when none is free.
Place free_place(Place wanted, const std::vector<Place>& taken) {
  wanted.x = std::max(plot_left + wanted.half, std::min(plot_right - wanted.half, wanted.x));
  const auto fits = [&](const Place& one) {
    return one.y > plot_top && one.y < plot_bottom &&
           std::none_of(taken.begin(), taken.end(), [&](const Place& other) { return overlap(one, other); });
  };
  for (double off = 0; off < plot_bottom - plot_top; off += name_height) {
    for (const double y : {wanted.y - off, wanted.y + off}) {
      if (const Place one{wanted.x, y, wanted.half}; fits(one)) return one;
    }
  }
  return wanted;
}

void check(const BubbleChart& chart) {
  if (chart.bubbles.empty()) fail("bubbles_svg: '", chart.title, "' has no bubble to draw.");
  for (const Bubble& one : chart.bubbles) {
    if (!std::isfinite(one.x) || !(one.x > 0) || !std::isfinite(one.y) || !std::isfinite(one.area) ||
        !(one.area > 0))
      fail(Fault::data, "bubbles_svg: '", one.name, "' is at (", one.x, ", ", one.y, ") with area ", one.area,
           ". Places must be finite, x and areas above zero.");
  }
}

std::string drawing(const BubbleChart& chart) {
  check(chart);
  const auto [min_x, max_x] = std::minmax_element(chart.bubbles.begin(), chart.bubbles.end(),
                                                  [](auto& a, auto& b) { return a.x < b.x; });
  const auto [min_y, max_y] = std::minmax_element(chart.bubbles.begin(), chart.bubbles.end(),
                                                  [](auto& a, auto& b) { return a.y < b.y; });
  const double max_area = std::max_element(chart.bubbles.begin(), chart.bubbles.end(), [](auto& a, auto& b) {
                            return a.area < b.area;
                          })->area;
  const Axis across = logarithmic_axis(min_x->x, max_x->x), up = linear_axis(min_y->y, max_y->y, chart.max_y);
  const auto at_x = [&](double x) {
    return plot_left +
           std::log(x / across.low) / std::log(across.high / across.low) * (plot_right - plot_left);
  };
  const auto at_y = [&](double y) {
    return plot_bottom - (y - up.low) / (up.high - up.low) * (plot_bottom - plot_top);
  };
  constexpr auto small = "font-size=\"11\" fill=\"var(--muted)\"",
                 small_end = "font-size=\"11\" fill=\"var(--muted)\" text-anchor=\"end\"";
  picture::SvgCanvas out;
  out.label(14, 22, fitting(chart.title, chart_width - 18, 14),
            "font-size=\"13\" font-weight=\"600\" fill=\"var(--text)\"");
  out.label(14, 40, chart.y_label + "; areas: " + chart.area_label, small);
  for (const double tick : up.ticks) {
    out.horizontal(plot_left, at_y(tick), plot_right, "stroke=\"var(--line)\"");
    out.label(plot_left - 7, at_y(tick) + 4, tick_text(tick), small_end);
  }
  for (const double tick : across.ticks)
    out.label(at_x(tick), plot_bottom + 16, tick_text(tick), text(small, " text-anchor=\"middle\""));
  out.horizontal(plot_left, plot_bottom, plot_right, "stroke=\"var(--strong)\"");
  out.label(plot_right, plot_bottom + 34, chart.x_label, small_end);
  // Large bubbles first, so that small ones are on top.
  std::vector<size_t> order(chart.bubbles.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return chart.bubbles[a].area > chart.bubbles[b].area; });
  for (const size_t i : order) {
    const Bubble& one = chart.bubbles[i];
    const std::string colour = text("\"var(--series-", i % 8, ")\"");
    out.circle(at_x(one.x), at_y(one.y), std::max(2.5, largest * std::sqrt(one.area / max_area)),
               text("fill=", colour, " fill-opacity=\"0.35\" stroke=", colour),
               text(one.name, ": ", tick_text(one.x), ", ", tick_text(one.y), ", ", tick_text(one.area)));
  }
  std::vector<Place> taken;
  for (const size_t i : order) {
    const Bubble& one = chart.bubbles[i];
    const std::string name = fitting(one.name, plot_right - plot_left, 11);
    const double x = at_x(one.x), y = at_y(one.y),
                 half = letter_width / 2 * static_cast<double>(display_width(name));
    const Place place = free_place({x, y, half}, taken);
    taken.push_back(place);
    if (std::fabs(place.y - y) >= name_height)  // a line from the name to its bubble
      out.path(text("M", out.number(x), " ", out.number(y), "L", out.number(place.x), " ",
                    out.number(place.y + (place.y < y ? 5 : -6))),
               "stroke=\"var(--muted)\"");
    out.label(place.x, place.y + 4, name, "font-size=\"11\" fill=\"var(--text)\" text-anchor=\"middle\"");
  }
  return out.document(chart_width, chart_height,
                      text("width=\"", chart_width, "\" role=\"img\" aria-label=\"",
                           picture::escape(chart.title), "\" ", picture::sans_serif),
                      {}, "var(--paper)");
}

}  // namespace

std::string bubbles_svg(const BubbleChart& chart) { return picture::standalone_svg(drawing(chart)); }

std::string bubbles_figure(const BubbleChart& chart) { return drawing(chart); }

}  // namespace heed
