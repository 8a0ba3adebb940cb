// Charts: ticks at round numbers, lines inside the frame, gaps for non-finite values.
#include "heed/train/report/chart.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/core/io/terminal.h"
#include "heed/tests/catch.h"
#include "heed/train/report/bubble_chart.h"

using namespace heed;

namespace {

int64_t count(const std::string& text, const std::string& what) {
  int64_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

Series falling(int64_t points) {
  Series series{"loss"};
  for (int64_t i = 0; i < points; ++i) {
    series.x.push_back(static_cast<double>(i));
    series.y.push_back(8.0 / static_cast<double>(i + 1));
  }
  return series;
}

/// Where each text of a picture ends at its left and right, in a font of wide letters.
std::vector<std::pair<double, double>> text_ends(const std::string& svg) {
  std::vector<std::pair<double, double>> out;
  for (size_t at = svg.find("<text"); at != std::string::npos; at = svg.find("<text", at + 1)) {
    const std::string head = svg.substr(at, svg.find('>', at) - at);
    const auto number = [&](const std::string& key) {
      const size_t found = head.find(" " + key + "=\"");
      REQUIRE(found != std::string::npos);
      return std::stod(head.substr(found + key.size() + 3));
    };
    const size_t begin = svg.find('>', at) + 1;
    const auto letters = static_cast<double>(display_width(svg.substr(begin, svg.find('<', begin) - begin)));
    const double wide = 0.62 * number("font-size") * letters, x = number("x");
    const bool middle = head.find("\"middle\"") != std::string::npos,
               end = head.find("\"end\"") != std::string::npos;
    const double left = middle ? x - wide / 2 : end ? x - wide : x;
    out.emplace_back(left, left + wide);
  }
  return out;
}

/// The texts of the ticks left of the axis.
std::vector<std::string> ticks_up(const std::string& svg, double x) {
  std::vector<std::string> out;
  const std::string head = text("<text x=\"", x, "\"");
  for (size_t at = svg.find(head); at != std::string::npos; at = svg.find(head, at + 1)) {
    const size_t begin = svg.find('>', at) + 1;
    out.push_back(svg.substr(begin, svg.find('<', begin) - begin));
  }
  return out;
}

}  // namespace

TEST_CASE("chart: ticks are round and enclose the values") {
  CHECK(axis_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(axis_ticks(0.12, 0.31, 4) == std::vector<double>{0.1, 0.15, 0.2, 0.25, 0.3, 0.35});
  CHECK(axis_ticks(-3, 4, 4) == std::vector<double>{-4, -2, 0, 2, 4});
  CHECK(axis_ticks(0, 0.3, 3) == std::vector<double>{0, 0.1, 0.2, 0.3});
  const auto flat = axis_ticks(5, 5, 4);
  CHECK(flat.size() >= 2);
  CHECK(flat.front() <= 5);
  CHECK(flat.back() >= 5);
  CHECK_THROWS_AS(axis_ticks(0, INFINITY, 4), Error);
  CHECK_THROWS_AS(axis_ticks(2, 1, 4), Error);
}

TEST_CASE("chart: logarithmic ticks are powers of ten, with 2 and 5 in short ranges") {
  CHECK(logarithmic_ticks(0.3, 7) == std::vector<double>{0.2, 0.5, 1, 2, 5, 10});
  CHECK(logarithmic_ticks(1e-4, 50) == std::vector<double>{1e-4, 1e-3, 0.01, 0.1, 1, 10, 100});
  CHECK(logarithmic_ticks(1, 1).size() >= 2);
  CHECK_THROWS_AS(logarithmic_ticks(0, 1), Error);
}

TEST_CASE("chart: ticks read as people write them") {
  CHECK(tick_text(0) == "0");
  CHECK(tick_text(0.25) == "0.25");
  CHECK(tick_text(0.0005) == "5e-4");
  CHECK(tick_text(1500) == "1500");
  CHECK(tick_text(12000) == "12k");
  CHECK(tick_text(2.5e6) == "2.5M");
  CHECK(tick_text(-3) == "-3");
}

TEST_CASE("chart: a figure has both scales, a legend with the last value where asked, and its numbers") {
  Chart chart{.title = "Loss <nats>", .series = {falling(9), {"</b>", {0, 8}, {1, 2}}}, .last_values = true};
  const std::string figure = chart_figure(chart);
  CHECK(count(figure, "<svg") == 2);
  CHECK(figure.find("hidden=\"\"") != std::string::npos);
  CHECK(figure.find("Loss &lt;nats&gt;") != std::string::npos);
  CHECK(figure.find("&lt;/b&gt;, last 2<") != std::string::npos);
  CHECK(figure.find("</b>") == std::string::npos);
  CHECK(figure.find("\"y\":[8,4,2.66667,2,1.6,") != std::string::npos);
  chart.last_values = false;  // a value at the end of another axis than time is no result
  CHECK(chart_figure(chart).find("&lt;/b&gt;<") != std::string::npos);
  CHECK(chart_svg(chart).find("last") == std::string::npos);
}

TEST_CASE("chart: values that are not finite leave a gap and do not stretch the axis") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), huge = std::numeric_limits<double>::infinity();
  const std::string figure =
      chart_figure({.title = "a", .series = {{"s", {0, 1, 2, 3, 4}, {1, 2, nan, huge, 3}}}});
  CHECK(figure.find("null,null") != std::string::npos);
  CHECK(figure.find("nan") == std::string::npos);
  CHECK(figure.find("inf") == std::string::npos);
  CHECK(chart_figure({.title = "a", .series = {{"s", {0, 1}, {nan, nan}}}}).empty());
  CHECK(chart_figure({.title = "a"}).empty());
}

TEST_CASE("chart: without a value above zero there is no logarithmic scale") {
  const Chart chart{.title = "a", .series = {{"s", {0, 1}, {0, -1}}}};
  CHECK(count(chart_figure(chart), "<svg") == 1);
  CHECK_THROWS_WITH(chart_svg(chart, true), containing("above zero"));
  CHECK_NOTHROW(chart_svg(chart));
}

TEST_CASE("chart: a single point is drawn, a long series is thinned but keeps its extremes") {
  CHECK(chart_figure({.title = "a", .series = {{"s", {3}, {2}}}}).find("<circle") != std::string::npos);
  Series series = falling(100000);
  series.y[54321] = 9.5;
  const std::string figure = chart_figure({.title = "a", .series = {series}, .smooth = true});
  CHECK(figure.size() < 200000);
  CHECK(figure.find(",9.5,") != std::string::npos);
}

TEST_CASE("chart: a file stands alone, with its colours and the best step") {
  const std::string svg = chart_svg({.title = "Loss", .series = {falling(20)}, .mark = 12});
  CHECK(svg.starts_with("<svg xmlns"));
  CHECK(svg.find("prefers-color-scheme:dark") != std::string::npos);
  CHECK(svg.find("best 12") != std::string::npos);
  INFO("programs that know no variables of CSS draw it too");
  CHECK(svg.find("=\"var(") == std::string::npos);
  CHECK(svg.find("stroke=\"#2b6cb0\"") != std::string::npos);
  CHECK(svg.find("style=\"stroke:var(--series-0)\"/>") != std::string::npos);
  CHECK(chart_figure({.title = "Loss", .series = {falling(20)}}).find("=\"var(--series-0)") !=
        std::string::npos);
}

TEST_CASE("chart: x and y of different lengths are refused with their numbers") {
  CHECK_THROWS_WITH(chart_figure({.title = "Loss", .series = {{"train", {1, 2}, {1}}}}),
                    containing("'train' has 2 x but 1 y"));
}

TEST_CASE("chart: no text leaves the picture, wherever a label stands and however long it is") {
  const std::string name = "nystromformer:landmarks=64,iterations=6 with a name that is long";
  std::vector<std::string> pictures;
  for (const double mark : {0.0, 9.0, 10.0, 19.0}) {
    Chart chart{.title = "BLEU", .last_values = true, .mark = mark};
    for (int i = 0; i < 8; ++i)
      chart.series.push_back(falling(20)), chart.series.back().name = text("BLEU ", i);
    pictures.push_back(chart_svg(chart));
    chart.series[3].name = chart.title = name + ", " + name;
    pictures.push_back(chart_svg(chart));
  }
  pictures.push_back(chart_svg({.title = "x", .series = {{"s", {0.0001, 0.00025}, {1, 2}}}}));
  BubbleChart bubbles{.title = name + name + name, .x_label = "x", .y_label = "y", .area_label = "z"};
  bubbles.bubbles = {{"a", 1, 0.5, 1}, {name, 100, 0.9, 4}, {name + ", " + name, 90, 0.1, 4}};
  for (const std::string& svg : pictures) {
    for (const auto& [left, right] : text_ends(svg)) {
      CHECK(left >= 0);
      CHECK(right <= 480);
    }
  }
  for (const auto& [left, right] : text_ends(bubbles_svg(bubbles))) {
    CHECK(left >= 0);
    CHECK(right <= 720);
  }
}

TEST_CASE("chart: an accuracy axis ends at 1, and a score below its most is as before") {
  for (const auto& [low, high] : {std::pair{0.2, 1.0}, {0.97, 1.0}, {1.0, 1.0}, {0.1, 0.96}}) {
    CAPTURE(low, high);
    const Chart chart{.title = "a", .series = {{"s", {0, 1}, {low, high}}}, .max_y = 1};
    const std::vector<std::string> ticks = ticks_up(chart_svg(chart), 41);
    REQUIRE(ticks.size() >= 2);
    CHECK(ticks.back() == "1");
    BubbleChart bubbles{.title = "t", .x_label = "x", .y_label = "y", .area_label = "z", .max_y = 1};
    bubbles.bubbles = {{"a", 1, low, 1}, {"b", 10, high, 1}};
    const std::vector<std::string> up = ticks_up(bubbles_svg(bubbles), 57);
    REQUIRE(up.size() >= 2);
    CHECK(up.back() == "1");
    CHECK(std::stod(up.front()) >= 0);
  }
}
