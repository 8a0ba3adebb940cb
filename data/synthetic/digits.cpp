// Draws synthetic digits: strokes in several handwritings, distorted, then rasterised with soft edges.
#include "heed/data/synthetic/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "heed/data/synthetic/random_stream.h"

namespace heed {
namespace {

constexpr int64_t digit_side = 28;
constexpr int64_t classes = 10;

struct Point {
  double x = 0, y = 0;
};

/// A pen stroke: a smooth curve through these points, in a box of 1 x 1 with y pointing down.
using Stroke = std::vector<Point>;
/// One way of writing a digit.
using Figure = std::vector<Stroke>;

/// Several figures for each digit. At a corner one stroke ends and the next begins.
const std::array<std::vector<Figure>, classes>& hands() {
  static const std::array<std::vector<Figure>, classes> table = {{
      {{{{.5, 0}, {.24, .12}, {.14, .5}, {.26, .88}, {.5, 1}, {.74, .88}, {.86, .5}, {.76, .12}, {.5, 0}}},
       {{{.6, .03}, {.34, .1}, {.2, .5}, {.32, .93}, {.6, .97}, {.8, .6}, {.76, .2}, {.5, .02}, {.36, .12}}},
       {{{.5, 0}, {.1, .2}, {.04, .6}, {.3, .95}, {.7, .95}, {.96, .6}, {.9, .2}, {.5, 0}}}},
      {{{{.5, 0}, {.5, .5}, {.5, 1}}},
       {{{.3, .24}, {.54, 0}}, {{.54, 0}, {.53, .5}, {.52, 1}}},
       {{{.28, .2}, {.5, 0}}, {{.5, 0}, {.5, 1}}, {{.24, 1}, {.76, 1}}},
       {{{.56, 0}, {.52, .4}, {.46, 1}}}},
      {{{{.16, .26}, {.3, .04}, {.62, .02}, {.8, .24}, {.66, .54}, {.14, 1}},
        {{.14, 1}, {.5, .97}, {.88, 1}}},
       {{{.18, .2},
         {.44, 0},
         {.76, .16},
         {.7, .5},
         {.4, .82},
         {.2, .96},
         {.14, .86},
         {.28, .8},
         {.54, .92},
         {.9, .94}}},
       {{{.14, .1}, {.5, 0}, {.82, .2}, {.6, .56}, {.2, .96}}, {{.2, .96}, {.86, .96}}}},
      {{{{.18, .14}, {.46, 0}, {.78, .16}, {.68, .42}, {.42, .48}},
        {{.42, .48}, {.76, .56}, {.84, .8}, {.54, 1}, {.14, .88}}},
       {{{.16, .02}, {.8, .02}},
        {{.8, .02}, {.44, .4}},
        {{.44, .4}, {.78, .52}, {.82, .8}, {.5, 1}, {.14, .9}}},
       {{{.2, .08}, {.6, .02}, {.74, .22}, {.5, .44}, {.74, .58}, {.74, .86}, {.42, 1}, {.16, .94}}}},
      {{{{.24, .02}, {.16, .34}, {.14, .58}}, {{.14, .58}, {.88, .56}}, {{.7, .04}, {.68, .5}, {.66, 1}}},
       {{{.66, 0}, {.1, .66}}, {{.1, .66}, {.92, .66}}, {{.66, 0}, {.66, 1}}},
       {{{.22, .04}, {.14, .4}, {.34, .54}, {.74, .42}}, {{.78, .02}, {.74, .5}, {.68, 1}}}},
      {{{{.8, .02}, {.26, .02}},
        {{.26, .02}, {.2, .44}},
        {{.2, .44}, {.56, .36}, {.86, .62}, {.66, .96}, {.14, .94}}},
       {{{.24, .04}, {.24, .42}},
        {{.24, .42}, {.62, .4}, {.8, .7}, {.54, 1}, {.16, .9}},
        {{.24, .04}, {.8, 0}}},
       {{{.82, .06}, {.4, .04}, {.26, .3}, {.4, .44}, {.74, .56}, {.76, .86}, {.46, 1}, {.16, .94}}}},
      {{{{.7, .02},
         {.36, .26},
         {.16, .66},
         {.34, .98},
         {.68, .96},
         {.82, .7},
         {.6, .5},
         {.3, .56},
         {.18, .76}}},
       {{{.42, 0}, {.24, .4}, {.18, .78}, {.42, 1}, {.74, .9}, {.72, .64}, {.44, .58}, {.22, .76}}},
       {{{.8, .1}, {.5, .04}, {.2, .4}, {.2, .84}, {.54, 1}, {.84, .78}, {.62, .54}, {.22, .66}}}},
      {{{{.12, .04}, {.86, .04}}, {{.86, .04}, {.58, .5}, {.42, 1}}},
       {{{.14, .06}, {.84, .02}}, {{.84, .02}, {.6, .44}, {.38, 1}}, {{.34, .5}, {.78, .48}}},
       {{{.12, .2}, {.16, .04}, {.5, .08}, {.86, .02}}, {{.86, .02}, {.64, .3}, {.52, .62}, {.5, 1}}}},
      {{{{.5, .46},
         {.22, .3},
         {.28, .06},
         {.5, 0},
         {.74, .08},
         {.76, .3},
         {.5, .46},
         {.2, .64},
         {.2, .9},
         {.5, 1},
         {.8, .9},
         {.8, .64},
         {.5, .46}}},
       {{{.78, .1},
         {.44, 0},
         {.22, .2},
         {.5, .46},
         {.8, .74},
         {.58, 1},
         {.22, .9},
         {.3, .62},
         {.6, .4},
         {.82, .16}}},
       {{{.5, .04}, {.26, .2}, {.48, .42}, {.74, .22}, {.5, .04}},
        {{.48, .44}, {.18, .7}, {.48, 1}, {.82, .72}, {.48, .44}}}},
      {{{{.78, .2}, {.52, 0}, {.22, .16}, {.24, .44}, {.56, .5}, {.78, .2}},
        {{.78, .2}, {.76, .6}, {.68, 1}}},
       {{{.74, .12},
         {.4, .02},
         {.18, .3},
         {.38, .52},
         {.7, .36},
         {.78, .12},
         {.78, .6},
         {.6, .94},
         {.24, .96}}},
       {{{.72, .24}, {.5, .02}, {.2, .2}, {.36, .5}, {.7, .34}, {.74, .06}},
        {{.74, .06}, {.6, .54}, {.5, 1}}}},
  }};
  return table;
}

/// A point of the Catmull-Rom curve between b and c; a and d are their neighbours (Catmull, Rom 1974).
Point between(Point a, Point b, Point c, Point d, double t) {
  const auto blend = [t](double p, double q, double r, double s) {
    return 0.5 * (2 * q + t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * q - p - 3 * r + s))));
  };
  return {blend(a.x, b.x, c.x, d.x), blend(a.y, b.y, c.y, d.y)};
}

/// The stroke as a polyline.
Stroke smooth(const Stroke& stroke) {
  constexpr int steps = 6;
  const size_t last = stroke.size() - 1;
  Stroke out = {stroke[0]};
  for (size_t i = 0; i < last; ++i) {
    const Point before = stroke[i == 0 ? 0 : i - 1], after = stroke[std::min(i + 2, last)];
    for (int step = 1; step <= steps; ++step) {
      out.push_back(between(before, stroke[i], stroke[i + 1], after, static_cast<double>(step) / steps));
    }
  }
  return out;
}

/// Distortion of one image: the affine map and the pen.
struct Manner {
  double width, height, slant, turn, x, y;
  double radius, edge;  ///< of the pen, in pixels
  double ink, grain;    ///< of 255, and the fraction that varies per pixel
};

Manner manner(RandomStream& random) {
  const double size = random.uniform(17, 20.5);
  return {.width = size * random.uniform(0.62, 1.0),
          .height = size,
          .slant = random.uniform(-0.2, 0.5),
          .turn = random.uniform(-0.17, 0.17),
          .x = digit_side / 2.0 - 0.5 + random.uniform(-1.8, 1.8),
          .y = digit_side / 2.0 - 0.5 + random.uniform(-1.8, 1.8),
          .radius = random.uniform(0.75, 1.7),
          .edge = random.uniform(0.8, 1.3),
          .ink = random.uniform(215, 255),
          .grain = random.uniform(0, 0.18)};
}

Point placed(Point p, const Manner& how) {
  const double up = 0.5 - p.y;
  const double x = (p.x - 0.5) * how.width + how.slant * up * how.height, y = -up * how.height;
  return {how.x + x * std::cos(how.turn) - y * std::sin(how.turn),
          how.y + x * std::sin(how.turn) + y * std::cos(how.turn)};
}

double distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double t = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

using Canvas = std::array<double, digit_side * digit_side>;

/// Darkens the pixels near a line segment; the pen has a soft edge.
void draw(Canvas& canvas, Point a, Point b, double radius, double edge) {
  const double reach = radius + edge;
  const auto first = [&](double u, double v) {
    return std::max<int64_t>(0, static_cast<int64_t>(std::ceil(std::min(u, v) - reach)));
  };
  const auto last = [&](double u, double v) {
    return std::min<int64_t>(digit_side - 1, static_cast<int64_t>(std::floor(std::max(u, v) + reach)));
  };
  for (int64_t row = first(a.y, b.y); row <= last(a.y, b.y); ++row) {
    for (int64_t column = first(a.x, b.x); column <= last(a.x, b.x); ++column) {
      const double away = distance({static_cast<double>(column), static_cast<double>(row)}, a, b);
      double& pixel = canvas[static_cast<size_t>(row * digit_side + column)];
      pixel = std::max(pixel, std::clamp((reach - away) / edge, 0.0, 1.0));
    }
  }
}

void draw_digit(RandomStream& random, int64_t digit, uint8_t* pixels) {
  Figure figure = random.pick(hands()[static_cast<size_t>(digit)]);
  const double wobble = random.uniform(0.01, 0.055);
  const Manner how = manner(random);
  Canvas canvas{};
  for (Stroke& stroke : figure) {
    for (Point& point : stroke) {
      point.x += random.uniform(-wobble, wobble);
      point.y += random.uniform(-wobble, wobble);
      point = placed(point, how);
    }
    const Stroke line = smooth(stroke);
    // Uneven pressure: the pen widens or narrows along the stroke.
    const double start = how.radius * random.uniform(0.85, 1.15), end = how.radius * random.uniform(0.8, 1.1);
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      const double t = static_cast<double>(i) / static_cast<double>(line.size());
      draw(canvas, line[i], line[i + 1], start + (end - start) * t, how.edge);
    }
  }
  for (size_t i = 0; i < canvas.size(); ++i) {
    if (canvas[i] <= 0) continue;
    const double value = canvas[i] * how.ink * (1 - how.grain * random.uniform());
    pixels[i] = static_cast<uint8_t>(value + 0.5);
  }
}

}  // namespace

LabelledImages digits(int64_t count, uint64_t seed, const ProgressCallback& on_progress) {
  if (count < 1 || count > 10'000'000) {
    fail("digits: a count of ", count, " is outside 1 .. 10000000. Choose one inside.");
  }
  LabelledImages out;
  out.images.count = count;
  out.images.rows = out.images.columns = digit_side;
  out.images.pixels.assign(static_cast<size_t>(count * digit_side * digit_side), 0);
  out.labels.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) out.labels[static_cast<size_t>(i)] = static_cast<uint8_t>(i % classes);
  shuffle(std::span(out.labels), seed, 0);
  parallel_rows_with_progress(count, 64, on_progress, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      RandomStream random(seed, static_cast<uint64_t>(i) + 1);
      draw_digit(random, out.labels[static_cast<size_t>(i)],
                 &out.images.pixels[static_cast<size_t>(i * digit_side * digit_side)]);
    }
  });
  return out;
}

}  // namespace heed
