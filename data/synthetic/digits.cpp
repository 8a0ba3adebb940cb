// Draws synthetic digits: strokes in several handwritings, distorted, then rasterised with soft edges.
#include "heed/data/synthetic/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "heed/core/io/number_text.h"
#include "heed/data/synthetic/counter_rng.h"
#include "heed/data/synthetic/embedded_table.h"

namespace heed {
namespace {

constexpr int64_t digit_side = 28;  // pixels
constexpr int64_t num_digits = 10;

struct Point {
  double x = 0, y = 0;
};

/// A pen stroke: a smooth curve through these points, in a box of 1 x 1 with y pointing down.
using Stroke = std::vector<Point>;
/// One way of writing a digit.
using Figure = std::vector<Stroke>;

/// The figures of each digit: several ways to write it.
const std::array<std::vector<Figure>, num_digits>& figures() {
  static const std::array<std::vector<Figure>, num_digits> table = [] {
    std::array<std::vector<Figure>, num_digits> out;
    for (const std::vector<std::string_view>& row : embedded_table("digit_strokes.tsv", 4)) {
      Figure& figure = out.at(static_cast<size_t>(parsed_number(row[0]).value())).emplace_back();
      for (size_t column = 1; column < row.size() && !row[column].empty(); ++column) {
        Stroke& stroke = figure.emplace_back();
        for (const std::string_view point : split_words(row[column])) {
          const std::vector<std::string_view> xy = split_fields(point, ',');
          stroke.push_back({parsed_number(xy.at(0)).value(), parsed_number(xy.at(1)).value()});
        }
      }
    }
    return out;
  }();
  return table;
}

/// A point of the Catmull-Rom curve between b and c; a and d are their neighbours (Catmull, Rom 1974).
Point catmull_rom(Point a, Point b, Point c, Point d, double t) {
  const auto blend = [t](double p, double q, double r, double s) {
    return 0.5 * (2 * q + t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * q - p - 3 * r + s))));
  };
  return {blend(a.x, b.x, c.x, d.x), blend(a.y, b.y, c.y, d.y)};
}

/// The stroke's smooth curve as a polyline.
Stroke smooth(const Stroke& stroke) {
  constexpr int steps = 6;  // line segments between two points of the stroke
  const size_t last = stroke.size() - 1;
  Stroke out = {stroke[0]};
  for (size_t i = 0; i < last; ++i) {
    const Point before = stroke[i == 0 ? 0 : i - 1], after = stroke[std::min(i + 2, last)];
    for (int step = 1; step <= steps; ++step)
      out.push_back(catmull_rom(before, stroke[i], stroke[i + 1], after, static_cast<double>(step) / steps));
  }
  return out;
}

/// The affine map of one image from the figure's box to pixels, and the pen.
struct Handwriting {
  double width, height;  ///< size of the figure, in pixels
  double slant, turn;    ///< shear to the right per pixel of height; rotation in radians
  double x, y;           ///< middle of the figure, in pixels
  double radius, edge;   ///< radius of the pen and width of its soft edge, in pixels
  double ink, grain;     ///< brightness of a stroke, up to 255, and the fraction that varies per pixel
};

/// Draws the numbers in the order of the fields, which generated images depend on.
Handwriting random_handwriting(CounterRng& random) {
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

/// Maps a point of the figure's box, 1 x 1, to pixels: scales, slants, rotates and moves it.
Point to_pixels(Point p, const Handwriting& writing) {
  const double up = 0.5 - p.y;
  const double x = (p.x - 0.5) * writing.width + writing.slant * up * writing.height,
               y = -up * writing.height;
  return {writing.x + x * std::cos(writing.turn) - y * std::sin(writing.turn),
          writing.y + x * std::sin(writing.turn) + y * std::cos(writing.turn)};
}

/// Distance of a point from the line segment a b.
double distance_to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
  const double t = square > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / square, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

using Canvas = std::array<double, digit_side * digit_side>;

/// Draws the line segment a b: pixels nearer than `radius` become 1, and the ink falls to 0 over `edge`
/// pixels.
void draw_segment(Canvas& canvas, Point a, Point b, double radius, double edge) {
  const double reach = radius + edge;
  const auto first = [&](double u, double v) {
    return std::max<int64_t>(0, static_cast<int64_t>(std::ceil(std::min(u, v) - reach)));
  };
  const auto last = [&](double u, double v) {
    return std::min<int64_t>(digit_side - 1, static_cast<int64_t>(std::floor(std::max(u, v) + reach)));
  };
  for (int64_t row = first(a.y, b.y); row <= last(a.y, b.y); ++row) {
    for (int64_t column = first(a.x, b.x); column <= last(a.x, b.x); ++column) {
      const double distance =
          distance_to_segment({static_cast<double>(column), static_cast<double>(row)}, a, b);
      double& pixel = canvas[static_cast<size_t>(row * digit_side + column)];
      pixel = std::max(pixel, std::clamp((reach - distance) / edge, 0.0, 1.0));
    }
  }
}

/// Draws a digit in a random handwriting into 28 x 28 pixels, which are 0 before.
void draw_digit(CounterRng& random, int64_t digit, uint8_t* pixels) {
  Figure figure = random.pick(figures()[static_cast<size_t>(digit)]);
  const double wobble = random.uniform(0.01, 0.055);
  const Handwriting writing = random_handwriting(random);
  Canvas canvas{};
  for (Stroke& stroke : figure) {
    for (Point& point : stroke) {
      point.x += random.uniform(-wobble, wobble);
      point.y += random.uniform(-wobble, wobble);
      point = to_pixels(point, writing);
    }
    const Stroke line = smooth(stroke);
    // Uneven pressure: the pen widens or narrows along the stroke.
    const double start_radius = writing.radius * random.uniform(0.85, 1.15),
                 end_radius = writing.radius * random.uniform(0.8, 1.1);
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      const double t = static_cast<double>(i) / static_cast<double>(line.size());
      draw_segment(canvas, line[i], line[i + 1], start_radius + (end_radius - start_radius) * t,
                   writing.edge);
    }
  }
  for (size_t i = 0; i < canvas.size(); ++i) {
    if (canvas[i] <= 0) continue;
    const double value = canvas[i] * writing.ink * (1 - writing.grain * random.uniform());
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
  for (int64_t i = 0; i < count; ++i)
    out.labels[static_cast<size_t>(i)] = static_cast<uint8_t>(i % num_digits);
  shuffle(std::span(out.labels), seed, 0);
  parallel_rows_with_progress(count, 64, on_progress, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      CounterRng random(seed, static_cast<uint64_t>(i) + 1);
      draw_digit(random, out.labels[static_cast<size_t>(i)],
                 &out.images.pixels[static_cast<size_t>(i * digit_side * digit_side)]);
    }
  });
  return out;
}

Sequences digits_on_background(int64_t count, uint64_t seed, const ProgressCallback& on_progress) {
  constexpr int64_t side = 32, first_background_stream = int64_t{1} << 40;  // digits() uses those below
  const LabelledImages drawn = digits(count, seed, on_progress);
  Sequences out = blank_sequences(drawn.labels, side * side);
  parallel_rows(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      CounterRng rng(seed, static_cast<uint64_t>(first_background_stream + i));
      const double ground = rng.uniform(40, 215);
      const double gradient_y = rng.uniform(-1, 1), gradient_x = rng.uniform(-1, 1);  // per pixel
      const double ink = ground > 128 ? rng.uniform(-110, -60) : rng.uniform(60, 110);
      const int64_t top = rng.below(side - digit_side + 1), left = rng.below(side - digit_side + 1);
      const uint8_t* digit = drawn.images.pixels.data() + i * digit_side * digit_side;
      for (int64_t y = 0; y < side; ++y) {
        for (int64_t x = 0; x < side; ++x) {
          const int64_t row = y - top, column = x - left;
          const bool inside = row >= 0 && row < digit_side && column >= 0 && column < digit_side;
          const double coverage = inside ? static_cast<double>(digit[row * digit_side + column]) / 255 : 0;
          const double grain = rng.uniform(-8, 8);
          const double grey = ground + gradient_y * static_cast<double>(y - side / 2) +
                              gradient_x * static_cast<double>(x - side / 2) + ink * coverage + grain;
          out.bytes[static_cast<size_t>((i * side + y) * side + x)] =
              static_cast<char>(static_cast<uint8_t>(std::clamp(grey, 1.0, 255.0)));
        }
      }
    }
  });
  return out;
}

}  // namespace heed
