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

constexpr int64_t digit_side = 28;
constexpr int64_t classes = 10;

struct Point {
  double x = 0, y = 0;
};

/// A pen stroke: a smooth curve through these points, in a box of 1 x 1 with y pointing down.
using Stroke = std::vector<Point>;
/// One way of writing a digit.
using Figure = std::vector<Stroke>;

/// The figures of each digit: several ways to write it.
const std::array<std::vector<Figure>, classes>& figures() {
  static const std::array<std::vector<Figure>, classes> table = [] {
    std::array<std::vector<Figure>, classes> out;
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
  double radius, edge;  ///< radius of the pen and width of its soft edge, in pixels
  double ink, grain;    ///< brightness of a stroke, up to 255, and the fraction that varies per pixel
};

Manner manner(CounterRng& random) {
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

void draw_digit(CounterRng& random, int64_t digit, uint8_t* pixels) {
  Figure figure = random.pick(figures()[static_cast<size_t>(digit)]);
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
      CounterRng random(seed, static_cast<uint64_t>(i) + 1);
      draw_digit(random, out.labels[static_cast<size_t>(i)],
                 &out.images.pixels[static_cast<size_t>(i * digit_side * digit_side)]);
    }
  });
  return out;
}

Sequences digits_on_background(int64_t count, uint64_t seed, const ProgressCallback& on_progress) {
  constexpr int64_t side = 32, drawn_side = 28;
  const LabelledImages drawn = digits(count, seed, on_progress);
  Sequences out = blank_sequences(drawn.labels, side * side);
  parallel_rows(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      CounterRng rng(seed, (uint64_t{1} << 40) + static_cast<uint64_t>(i));
      const double ground = rng.uniform(40, 215), down = rng.uniform(-1, 1), right = rng.uniform(-1, 1);
      const double ink = ground > 128 ? rng.uniform(-110, -60) : rng.uniform(60, 110);
      const int64_t top = rng.below(side - drawn_side + 1), left = rng.below(side - drawn_side + 1);
      const uint8_t* digit = drawn.images.pixels.data() + i * drawn_side * drawn_side;
      for (int64_t y = 0; y < side; ++y) {
        for (int64_t x = 0; x < side; ++x) {
          const int64_t row = y - top, column = x - left;
          const bool inside = row >= 0 && row < drawn_side && column >= 0 && column < drawn_side;
          const double share = inside ? static_cast<double>(digit[row * drawn_side + column]) / 255 : 0;
          const double grey = ground + down * static_cast<double>(y - side / 2) +
                              right * static_cast<double>(x - side / 2) + ink * share + rng.uniform(-8, 8);
          out.bytes[static_cast<size_t>((i * side + y) * side + x)] =
              static_cast<char>(static_cast<uint8_t>(std::clamp(grey, 1.0, 255.0)));
        }
      }
    }
  });
  return out;
}

}  // namespace heed
