// Lays out axes and lines, and writes them as SVG.
#include "heed/train/report/chart.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "heed/attention/inspect/svg.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/terminal.h"
#include "heed/core/io/utf8.h"

namespace heed {
namespace {

using picture::escape;
using picture::joined;
using picture::json;
using picture::SvgCanvas;
using picture::trimmed;

constexpr double width = 480, height = 236, left = 48, right = 462, bottom = 200;
constexpr size_t max_points = 1200;
constexpr double edge = 4;  // free margin at left and right

/// Upper estimate of a text's width, in the widest common font, DejaVu Sans.
double width_of(std::string_view words, double font_size) {
  return 0.66 * font_size * static_cast<double>(display_width(words));
}

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

/// True for a value that has a place on an axis: a finite one, above zero on a logarithmic axis.
bool drawn(double value, bool logarithmic) { return std::isfinite(value) && (!logarithmic || value > 0); }

/// Maps numbers to positions in the picture.
struct Frame {
  Extent x, y;
  bool logarithmic = false, logarithmic_x = false;
  double top = 12;
  std::vector<double> x_ticks, y_ticks;

  /// Position of a value along an axis, from 0 to 1.
  static double share(double value, const Extent& axis, bool logarithmic) {
    const auto place = [&](double v) { return logarithmic ? std::log10(v) : v; };
    return (place(value) - place(axis.low)) / (place(axis.high) - place(axis.low));
  }
  double at_x(double value) const { return left + share(value, x, logarithmic_x) * (right - left); }
  double at_y(double value) const { return bottom - share(value, y, logarithmic) * (bottom - top); }
};

/// The frame around all values of a chart, with its ticks; without extents where no value can be drawn.
Frame frame_of(const Chart& chart, bool logarithmic, double top) {
  Frame frame;
  frame.logarithmic = logarithmic;
  frame.logarithmic_x = chart.logarithmic_x;
  frame.top = top;
  for (const Series& series : chart.series) {
    if (series.x.size() != series.y.size())
      fail(Fault::data, "chart '", chart.title, "': series '", series.name, "' has ", series.x.size(),
           " x but ", series.y.size(), " y. Give one y for each x.");
    for (const std::vector<double>* edge_of_band : {&series.low, &series.high})
      if (!edge_of_band->empty() && edge_of_band->size() != series.x.size())
        fail(Fault::data, "chart '", chart.title, "': the band of series '", series.name, "' has ",
             edge_of_band->size(), " points but ", series.x.size(), " x. Give one for each x, or none.");
    for (size_t i = 0; i < series.x.size(); ++i)
      if (drawn(series.x[i], chart.logarithmic_x) && drawn(series.y[i], logarithmic)) {
        frame.x.add(series.x[i]);
        frame.y.add(series.y[i]);
        if (!series.low.empty() && drawn(series.low[i], logarithmic)) frame.y.add(series.low[i]);
        if (!series.high.empty() && drawn(series.high[i], logarithmic)) frame.y.add(series.high[i]);
      }
  }
  if (frame.y.empty()) return frame;
  if (frame.x.low == frame.x.high) {
    frame.x.low = chart.logarithmic_x ? frame.x.low / 2 : frame.x.low - 0.5;
    frame.x.high = chart.logarithmic_x ? frame.x.high * 2 : frame.x.high + 0.5;
  }
  if (!logarithmic && frame.y.low == frame.y.high && frame.y.high >= chart.max_y)
    frame.y.low -= 0.1 * std::fabs(frame.y.high);  // ticks of a flat line extend downwards
  if (!logarithmic && frame.y.low > 0 && frame.y.low < 0.35 * frame.y.high) frame.y.low = 0;
  frame.y_ticks =
      logarithmic ? logarithmic_ticks(frame.y.low, frame.y.high) : axis_ticks(frame.y.low, frame.y.high, 5);
  frame.y.low = std::min(frame.y.low, frame.y_ticks.front());
  frame.y.high = std::max(frame.y.high, frame.y_ticks.back());
  for (const double tick : chart.logarithmic_x ? logarithmic_ticks(frame.x.low, frame.x.high)
                                               : axis_ticks(frame.x.low, frame.x.high, 6))
    if (tick >= frame.x.low && tick <= frame.x.high) frame.x_ticks.push_back(tick);
  return frame;
}

/// A long series reduced to minimum and maximum of each of many short ranges.
Series thinned(const Series& series) {
  if (series.x.size() <= max_points) return series;
  Series out{series.name};
  const size_t stretches = max_points / 2;
  for (size_t part = 0; part < stretches; ++part) {
    const size_t begin = part * series.x.size() / stretches, end = (part + 1) * series.x.size() / stretches;
    const auto less = [&](size_t a, size_t b) { return series.y[a] < series.y[b]; };
    size_t low = begin, high = begin;
    for (size_t i = begin; i < end; ++i) {
      if (less(i, low)) low = i;
      if (less(high, i)) high = i;
    }
    for (const size_t i : {std::min(low, high), std::max(low, high)}) {
      if (i == low && i == high && !out.x.empty() && out.x.back() == series.x[i]) continue;
      out.x.push_back(series.x[i]);
      out.y.push_back(series.y[i]);
    }
  }
  return out;
}

/// A centred running mean over a thirtieth of the series, or what is available: it does not lag.
Series smoothed(const Series& series) {
  Series out{series.name, series.x};
  const size_t count = series.y.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t reach = std::min({i, count - 1 - i, count / 60});
    double sum = 0, values = 0;
    for (size_t j = i - reach; j <= i + reach; ++j)
      if (std::isfinite(series.y[j])) {
        sum += series.y[j];
        values += 1;
      }
    out.y.push_back(std::isfinite(series.y[i]) ? sum / values : series.y[i]);
  }
  return out;
}

/// The colour of series number `index`, as the value of an attribute.
std::string series_colour(size_t index) { return text("\"var(--series-", index % 8, ")\""); }

/// Adds the band of a series, where it has one, at no more than max_points of its points.
void add_band(SvgCanvas& out, const Series& series, const Frame& frame, size_t index) {
  if (series.low.empty() || series.high.empty()) return;
  std::string there, back;  // along the highest values, and along the lowest ones to the begin
  const size_t stride = series.x.size() / max_points + 1;
  for (size_t i = 0; i < series.x.size(); i += stride) {
    if (!drawn(series.x[i], frame.logarithmic_x) || !drawn(series.low[i], frame.logarithmic) ||
        !drawn(series.high[i], frame.logarithmic))
      continue;
    const double x = frame.at_x(series.x[i]);
    there += text(there.empty() ? "M" : "L", out.number(x), " ", out.number(frame.at_y(series.high[i])));
    back = text("L", out.number(x), " ", out.number(frame.at_y(series.low[i])), back);
  }
  if (!there.empty())
    out.path(there + back + "Z",
             text("stroke=\"none\" fill=", series_colour(index), " fill-opacity=\"0.15\""));
}

/// Adds the line of a series, or a dot where it has a single point. Values that cannot be drawn leave a gap.
void add_line(SvgCanvas& out, const Series& series, const Frame& frame, size_t index, bool is_faint) {
  std::string path;
  bool pen_down = false;
  size_t points = 0;
  double x = 0, y = 0;
  for (size_t i = 0; i < series.x.size(); ++i) {
    const bool is_drawn = drawn(series.x[i], frame.logarithmic_x) && drawn(series.y[i], frame.logarithmic);
    if (is_drawn) {
      x = frame.at_x(series.x[i]);
      y = frame.at_y(series.y[i]);
      path += text(pen_down ? "L" : "M", out.number(x), " ", out.number(y));
      ++points;
    }
    pen_down = is_drawn;
  }
  if (points == 1) return out.circle(x, y, 3, "fill=" + series_colour(index));
  out.path(path,
           text("fill=\"none\" stroke=", series_colour(index), " stroke-width=\"", is_faint ? "1" : "1.8",
                "\" stroke-linejoin=\"round\"", is_faint ? " stroke-opacity=\"0.3\"" : ""));
}

constexpr std::string_view muted = "font-size=\"11\" fill=\"var(--muted)\"",
                           muted_end = "font-size=\"11\" fill=\"var(--muted)\" text-anchor=\"end\"",
                           muted_middle = "font-size=\"11\" fill=\"var(--muted)\" text-anchor=\"middle\"";

bool is_smoothed(const Chart& chart, const Series& series) { return chart.smooth && series.y.size() > 60; }

/// Adds axes, ticks, the mark of the best step and the lines.
void add_body(SvgCanvas& out, const Chart& chart, const Frame& frame) {
  for (const double tick : frame.y_ticks) {
    const double y = frame.at_y(tick);
    out.horizontal(left, y, right, "stroke=\"var(--line)\"");
    out.label(left - 7, y + 4, tick_text(tick), muted_end);
  }
  for (const double tick : frame.x_ticks)
    out.label(std::min(frame.at_x(tick), width - edge - width_of(tick_text(tick), 11) / 2), bottom + 16,
              tick_text(tick), muted_middle);
  out.horizontal(left, bottom, right, "stroke=\"var(--strong)\"");
  out.label(right, bottom + 31, chart.x_label, muted_end);
  if (std::isfinite(chart.mark) && chart.mark >= frame.x.low && chart.mark <= frame.x.high) {
    const double x = frame.at_x(chart.mark);
    out.vertical(x, frame.top, bottom, "stroke=\"var(--muted)\" stroke-dasharray=\"3 3\"");
    const bool is_right_half = x > (left + right) / 2;
    out.label(is_right_half ? x - 5 : x + 5, frame.top + 9, text("best ", tick_text(chart.mark)),
              is_right_half ? muted_end : muted);
  }
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    const bool is_smooth = is_smoothed(chart, series);
    add_band(out, series, frame, i);
    add_line(out, thinned(series), frame, i, is_smooth);
    if (is_smooth) add_line(out, thinned(smoothed(series)), frame, i, false);
  }
}

/// The chart as an svg element; the hover script reads the frame from its attribute data-frame.
std::string drawn_chart(const SvgCanvas& canvas, const Chart& chart, const Frame& frame,
                        std::string_view attributes, std::string_view background = {}) {
  const std::string names = joined(chart.series, ", ", [](const Series& one) { return one.name; });
  const std::string data =
      text("{\"left\":", left, ",\"right\":", right, ",\"top\":", frame.top, ",\"bottom\":", bottom,
           ",\"x\":[", json(frame.x.low), ",", json(frame.x.high), "],\"y\":[", json(frame.y.low), ",",
           json(frame.y.high), "],\"logarithmic\":", frame.logarithmic, "}");
  return canvas.document(width, height,
                         text("role=\"img\" aria-label=\"", escape(chart.title), ": ", escape(names), "\" ",
                              attributes, " data-frame=\"", escape(data), "\""),
                         {}, background);
}

/// The end of the entry of a series in the legend: ", last 1.23"; empty where the chart shows no values.
std::string last_value_text(const Chart& chart, const Series& series) {
  for (size_t i = chart.last_values ? series.y.size() : 0; i-- > 0;)
    if (std::isfinite(series.y[i])) return ", last " + tick_text(series.y[i]);
  return "";
}

std::string numbers(const std::vector<double>& values) {
  return "[" + joined(values, ",", [](double value) { return json(value); }) + "]";
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, int count) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high || count < 1)
    fail("axis_ticks: no ticks from ", low, " to ", high, " in ", count,
         " steps. Give finite ends in rising order.");
  const double span = high > low ? high - low : std::max(std::fabs(low), 1.0) * 0.1;
  const double rough = span / count, power = std::pow(10, std::floor(std::log10(rough)));
  double factor = 10;
  for (const double candidate : {5.0, 2.0, 1.0})
    if (candidate * power >= rough * 0.999) factor = candidate;
  // Divide by a power of ten below one as an integer, so that 3 * 0.1 reads 0.3.
  const bool small = power < 1;
  const double scale = small ? std::round(1 / power) : power;
  const auto tick = [&](double i) { return small ? i * factor / scale : i * factor * scale; };
  const double step = factor * power, first = std::floor(low / step + 1e-9),
               end = std::ceil(high / step - 1e-9);
  std::vector<double> out;
  for (double i = first; i <= std::max(end, first + 1); ++i) out.push_back(tick(i) + 0.0);
  return out;
}

std::vector<double> logarithmic_ticks(double low, double high) {
  if (!(low > 0) || !std::isfinite(high) || low > high)
    fail("logarithmic_ticks: no ticks from ", low, " to ", high, ". Both ends must be above zero.");
  const int first = static_cast<int>(std::floor(std::log10(low))),
            last = static_cast<int>(std::ceil(std::log10(high)));
  const bool few = std::log10(high / low) < 2.5;
  std::vector<double> all;
  for (int power = first; power <= std::max(last, first + 1); ++power)
    for (const double factor : {1.0, 2.0, 5.0})
      if (few || factor == 1.0)
        all.push_back(power < 0 ? factor / std::pow(10, -power) : factor * std::pow(10, power));
  const auto begin = std::upper_bound(all.begin(), all.end(), low * (1 + 1e-9)) - 1;
  const auto end = std::lower_bound(all.begin(), all.end(), high * (1 - 1e-9));
  const auto from = std::max(begin, all.begin());
  const auto to = end == all.end() ? end : end + 1;
  if (to - from == 1) return {*from, *from * 2};
  return {from, to};
}

std::string fitting(const std::string& name, double room, double font_size) {
  if (width_of(name, font_size) <= room) return name;
  std::string out;
  for (size_t at = 0; at < name.size();) {
    const std::string next = out + name.substr(at, std::max<size_t>(utf8_at(name, at).bytes, 1));
    if (width_of(next + "\u2026", font_size) > room) break;
    at = next.size();
    out = next;
  }
  return out + "\u2026";
}

std::string tick_text(double value) {
  const double size = std::fabs(value);
  if (size == 0 || !std::isfinite(value)) return picture::fixed(value, 0);
  if (size >= 1e6) return trimmed(value / 1e6, 2) + "M";
  if (size >= 1e4) return trimmed(value / 1e3, 1) + "k";
  if (size >= 0.001)
    return trimmed(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4);
  const double power = std::floor(std::log10(size) + 1e-9);
  return trimmed(value / std::pow(10, power), 2) + text("e", static_cast<int>(power));
}

std::string chart_svg(const Chart& chart, bool logarithmic) {
  SvgCanvas canvas;
  canvas.label(14, 20, fitting(chart.title, width - edge - 14, 14),
               "font-size=\"13\" font-weight=\"600\" fill=\"var(--text)\"");
  double x = 14, y = 35;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const std::string value = last_value_text(chart, chart.series[i]);
    const std::string label =
        fitting(chart.series[i].name, width - edge - 34 - width_of(value, 11), 11) + value;
    const double used = 20 + width_of(label, 11);
    if (x > 14 && x + used > width - edge) {
      x = 14;
      y += 15;
    }
    canvas.horizontal(x, y, x + 14, text("stroke=", series_colour(i), " stroke-width=\"3\""));
    canvas.label(x + 20, y + 4, label, muted);
    x += used + 14;
  }
  const Frame frame = frame_of(chart, logarithmic, y + 19);
  if (frame.y.empty())
    fail("chart_svg: '", chart.title, "' has no ", logarithmic ? "value above zero" : "finite value",
         " to draw.");
  add_body(canvas, chart, frame);
  return picture::standalone_svg(
      drawn_chart(canvas, chart, frame, text("width=\"720\" ", picture::sans_serif), "var(--paper)"));
}

std::string chart_figure(const Chart& chart) {
  const Frame linear = frame_of(chart, false, 12), logarithmic = frame_of(chart, true, 12);
  if (linear.y.empty()) return "";
  std::string legend, data;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series few = thinned(chart.series[i]);
    legend += text("<span><i class=\"series-", i % 8, "\"></i>", escape(few.name),
                   last_value_text(chart, chart.series[i]), "</span>");
    data += text(i ? "," : "", "{\"name\":", json(few.name), ",\"x\":", numbers(few.x),
                 ",\"y\":", numbers(few.y), "}");
  }
  std::string out = text("<figure class=\"chart\">\n<figcaption><span>", escape(chart.title),
                         "</span></figcaption>\n<div class=\"legend\">", legend, "</div>\n");
  for (const Frame* frame : {&linear, &logarithmic}) {
    if (frame->y.empty()) continue;
    SvgCanvas canvas;
    add_body(canvas, chart, *frame);
    out += drawn_chart(canvas, chart, *frame,
                       frame == &linear ? "tabindex=\"0\"" : "tabindex=\"0\" hidden=\"\"");
  }
  return out + text("<script type=\"application/json\">{\"title\":", json(chart.title),
                    ",\"label\":", json(chart.x_label), ",\"series\":[", data, "]}</script>\n</figure>\n");
}

}  // namespace heed
