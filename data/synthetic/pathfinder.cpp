// Generates Pathfinder images: curves that grow dash by dash and do not touch.
#include "heed/data/synthetic/pathfinder.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "heed/data/synthetic/counter_rng.h"
#include "heed/data/synthetic/pathfinder_brush.h"

namespace heed {

PathfinderOptions pathfinder_options(int64_t side) {
  switch (side) {
    case 32:
      return {};
    case 64:
      return {.side = 64,
              .dash = 5,
              .thickness = 1,
              .gaps = {1},
              .marker = 2.5,
              .apart = 12,
              .continuity = 1.8,
              .contrast = 0.8,
              .dash_contrast = 1};
    case 128:
      return {.side = 128,
              .dash = 5,
              .thickness = 1.5,
              .gaps = {2, 3},
              .marker = 3,
              .distractors = 8,
              .apart = 20,
              .continuity = 1.8,
              .contrast = 0.9,
              .dash_contrast = 1};
    case 256:
      return {.side = 256,
              .padding = 22,
              .dash = 5,
              .thickness = 2,
              .gaps = {3},
              .marker = 5,
              .distractors = 7,
              .apart = 27,
              .continuity = 1.8,
              .contrast = 1,
              .dash_contrast = 1};
    default:
      fail("pathfinder: images of ", side, " x ", side, " pixels. Use 32, 64, 128 or 256.");
  }
}

namespace {

constexpr double max_free_room = 0.3;  // a new curve may begin on pixels with no more room occupied
constexpr double overlap_room = 1.8;   // two dashes touch where their rooms sum to this
constexpr int64_t dash_tries = 3, curve_tries = 5;

struct Pixel {
  int64_t row = 0, column = 0;
};

/// The pixel at a distance from another. Rounds up as the published generator does, except for rounding
/// errors of whole numbers.
Pixel moved(Pixel from, double direction, int64_t distance) {
  const auto length = static_cast<double>(distance);
  return {from.row + static_cast<int64_t>(std::ceil(length * std::sin(direction) - 1e-9)),
          from.column + static_cast<int64_t>(std::ceil(length * std::cos(direction) - 1e-9))};
}

/// A growing curve. Its last dash does not occupy room yet, so that the next dash may follow closely.
struct Curve {
  Pixel first, last;          // ends of the curve
  Pixel pivot;                // middle of the circle on which the last dash ends
  double direction = 0;       // from the pivot to the end of the last dash, in radians
  Pixel dash_begin;           // start of the last dash drawn
  double dash_direction = 0;  // its direction
};

/// A possible end of the next dash.
struct DashEnd {
  Pixel pixel;
  double direction;
  double cumulative_weight;  // sum of weights up to this end
};

/// One image during generation.
class Picture {
 public:
  Picture(const PathfinderOptions& options, const Brush& brush, int64_t gap, CounterRng& rng)
      : options_(options), brush_(brush), gap_(gap), rng_(rng) {
    border_.assign(static_cast<size_t>(options_.side * options_.side), 0.0f);
    for (int64_t y = 0; y < options_.side; ++y) {
      for (int64_t x = 0; x < options_.side; ++x) {
        if (to_edge({y, x}) < options_.padding) border_[index(y, x)] = 1;
      }
    }
  }

  /// Draws curves and discs. `connected`: both discs are on one curve.
  PathfinderFacts draw(bool connected) {
    Curve curves[2];
    while (!draw_target_curves(curves)) {
    }
    // The last dash of the first curve occupies no room, which is so in the published generator.
    occupy(curves[1]);
    for (int64_t i = 0; i < options_.distractors; ++i) {
      for (int64_t tries = 0; tries < curve_tries && !draw_distractor(); ++tries) {
      }
    }
    const auto first_curve = static_cast<size_t>(rng_.below(2));
    const size_t second_curve = connected ? first_curve : 1 - first_curve;
    const Pixel discs[2] = {curves[first_curve].first, curves[second_curve].last};
    PathfinderFacts facts{.gap = gap_};
    for (int i = 0; i < 2; ++i) {
      print(image_, brush_.disc(), brush_.disc().ink, discs[i], 1);
      facts.markers[i][0] = discs[i].row;
      facts.markers[i][1] = discs[i].column;
    }
    return facts;
  }

  /// Writes the pixels as bytes, scaled to a maximum of 255.
  void write(char* pixels) const {
    const float brightest = *std::max_element(image_.begin(), image_.end());
    for (size_t i = 0; i < image_.size(); ++i)
      pixels[i] = static_cast<char>(static_cast<uint8_t>(image_[i] / brightest * 255 + 0.5f));
  }

 private:
  size_t index(int64_t row, int64_t column) const {
    return static_cast<size_t>(row * options_.side + column);
  }
  /// Number of pixels between a pixel and the nearest edge of the image.
  int64_t to_edge(Pixel p) const {
    return std::min({p.row, p.column, options_.side - 1 - p.row, options_.side - 1 - p.column});
  }
  bool inside(Pixel p) const {
    return p.row >= 0 && p.row < options_.side && p.column >= 0 && p.column < options_.side;
  }

  /// Calls visit(index, value) for the entries of a stamp's `values` that are inside the image, where the
  /// stamp's middle is at `middle`.
  template <class Visit>
  void each_pixel(const Stamp& stamp, const std::vector<float>& values, Pixel middle, Visit visit) const {
    const int64_t reach = stamp.reach, stamp_side = 2 * reach + 1;
    const int64_t top = std::max<int64_t>(0, middle.row - reach),
                  bottom = std::min<int64_t>(options_.side - 1, middle.row + reach);
    const int64_t left = std::max<int64_t>(0, middle.column - reach),
                  right = std::min<int64_t>(options_.side - 1, middle.column + reach);
    for (int64_t y = top; y <= bottom; ++y) {
      const float* row = &values[static_cast<size_t>((y - middle.row + reach) * stamp_side)];
      for (int64_t x = left; x <= right; ++x) visit(index(y, x), row[x - middle.column + reach]);
    }
  }

  /// Raises the pixels of a canvas (`image_` or `room_`) to the stamp's values times the contrast.
  void print(std::vector<float>& canvas, const Stamp& stamp, const std::vector<float>& values, Pixel middle,
             double contrast) const {
    const auto scale = static_cast<float>(contrast);
    each_pixel(stamp, values, middle,
               [&](size_t pixel, float value) { canvas[pixel] = std::max(canvas[pixel], value * scale); });
  }

  /// Occupies the room of a curve's last dash.
  void occupy(const Curve& curve) {
    const Stamp& dash = brush_.dash(curve.dash_direction);
    print(room_, dash, dash.room, curve.dash_begin, 1);
  }

  /// Draws the next dash of a curve, without its room.
  void draw_dash(Curve& curve, Pixel begin, double direction, double contrast) {
    const Stamp& dash = brush_.dash(direction);
    print(image_, dash, dash.ink, begin, contrast);
    curve.dash_begin = begin;
    curve.dash_direction = direction;
  }

  /// A random direction in whole degrees, -180 .. 179, as radians.
  double any_direction() { return static_cast<double>(rng_.between(-180, 179)) * std::numbers::pi / 180; }
  static double reversed(double direction) {
    return direction < 0 ? direction + std::numbers::pi : direction - std::numbers::pi;
  }

  /// A uniformly random pixel where a dash of this direction avoids occupied room and the `border`
  /// outermost pixels. False when there is none.
  bool free_pixel(double direction, int64_t border, Pixel& out) {
    const Stamp& dash = brush_.dash(direction);
    const auto is_free = [&](Pixel p) {
      for (int64_t y = -dash.reach; y <= dash.reach; ++y) {
        for (int64_t x = -dash.reach; x <= dash.reach; ++x) {
          if (dash.at(dash.room, y, x) < 1) continue;
          // The published generator tests the dash one pixel further down and right.
          const Pixel tested{p.row + y + 1, p.column + x + 1};
          if (!inside(tested)) continue;
          if (to_edge(tested) < border ||
              static_cast<double>(room_[index(tested.row, tested.column)]) > max_free_room)
            return false;
        }
      }
      return true;
    };
    // Rejection sampling, uniform over free pixels; if it fails often, enumerate all free pixels.
    const int64_t low = std::max<int64_t>(0, border - 2), count = options_.side - 2 * low;
    for (int64_t tries = 0; tries < 32; ++tries) {
      out = {low + rng_.below(count), low + rng_.below(count)};
      if (is_free(out)) return true;
    }
    std::vector<Pixel> free_pixels;
    for (int64_t y = low; y < low + count; ++y) {
      for (int64_t x = low; x < low + count; ++x) {
        if (is_free({y, x})) free_pixels.push_back({y, x});
      }
    }
    if (free_pixels.empty()) return false;
    out = rng_.pick(free_pixels);
    return true;
  }

  /// Begins a curve with a dash from `tail`; false where the dash or the pivot leaves the image.
  bool begin(Curve& curve, Pixel tail, double direction, double contrast) {
    curve = {};
    curve.first = tail;
    curve.direction = direction;
    const Pixel head = moved(tail, direction, options_.dash);
    curve.pivot = moved(head, reversed(direction), options_.dash + gap_);
    if (!inside(head) || !inside(curve.pivot)) return false;
    draw_dash(curve, tail, direction, contrast);
    return true;
  }

  /// Appends a dash at a random end, of those that turn little and have room, and makes the dash before it
  /// occupy its room; false when no try succeeds.
  bool extend(Curve& curve, double contrast) {
    const Pixel pivot = moved(curve.pivot, curve.direction, options_.dash + 2 * gap_);
    dash_ends_.clear();
    double total_weight = 0;
    for (const Turn& turn : brush_.turns()) {
      const Pixel p{pivot.row + turn.row, pivot.column + turn.column};
      if (!inside(p)) continue;
      double angle = std::abs(turn.direction - curve.direction);
      angle = std::min(angle, std::abs(2 * std::numbers::pi - angle)) * options_.continuity;
      if (angle >= std::numbers::pi / 2) continue;
      const double weight = std::cos(angle);
      total_weight += (1 - max_room_near(p)) * weight * weight;
      dash_ends_.push_back({.pixel = p, .direction = turn.direction, .cumulative_weight = total_weight});
    }
    if (total_weight < 1e-4) return false;
    for (int64_t tries = 0; tries < dash_tries; ++tries) {
      const double drawn = rng_.uniform() * total_weight;
      const auto end = std::find_if(dash_ends_.begin(), dash_ends_.end(),
                                    [&](const DashEnd& one) { return one.cumulative_weight > drawn; });
      if (end == dash_ends_.end()) continue;
      const double back = reversed(end->direction);  // a dash is drawn from its far end to the pivot
      const Stamp& dash = brush_.dash(back);
      float max_sum = 0;
      each_pixel(dash, dash.room, end->pixel,
                 [&](size_t pixel, float value) { max_sum = std::max(max_sum, room_[pixel] + value); });
      if (static_cast<double>(max_sum) >= overlap_room) continue;
      occupy(curve);
      draw_dash(curve, end->pixel, back, contrast);
      curve.pivot = pivot;
      curve.direction = end->direction;
      curve.last = end->pixel;
      return true;
    }
    return false;
  }

  /// The maximum of `room_` within the gap around a pixel.
  double max_room_near(Pixel p) const {
    float max_room = 0;
    for (int64_t y = -gap_; y <= gap_; ++y) {
      for (int64_t x = -gap_; x <= gap_; ++x) {
        const Pixel near{p.row + y, p.column + x};
        if (y * y + x * x <= gap_ * gap_ && inside(near))
          max_room = std::max(max_room, room_[index(near.row, near.column)]);
      }
    }
    return static_cast<double>(max_room);
  }

  /// Begins a curve at a free pixel at least `border` pixels from the edge; false when no try succeeds.
  bool begin_at_free_pixel(Curve& curve, int64_t border, double contrast) {
    for (int64_t tries = 0; tries < dash_tries; ++tries) {
      const double direction = any_direction();
      Pixel tail;
      if (!free_pixel(direction, border, tail)) return false;
      if (begin(curve, tail, direction, contrast)) return true;
    }
    return false;
  }

  /// Begins a curve at the distance `apart` from another one's start; false when no try succeeds.
  bool begin_apart_from(const Curve& other, Curve& curve, double contrast) {
    const auto apart = static_cast<double>(options_.apart);
    for (int64_t tries = 0; tries < dash_tries; ++tries) {
      const double direction = any_direction();
      const double bearing = static_cast<double>(rng_.below(360)) * std::numbers::pi / 180;
      const Pixel tail{other.first.row + std::lround(apart * std::sin(bearing)),
                       other.first.column + std::lround(apart * std::cos(bearing))};
      if (begin(curve, tail, direction, contrast)) return true;
    }
    return false;
  }

  /// Draws both target curves into an empty image; false when one of them finds no room.
  bool draw_target_curves(Curve (&curves)[2]) {
    image_.assign(static_cast<size_t>(options_.side * options_.side), 0.0f);
    room_ = border_;
    const double contrast = options_.contrast * options_.dash_contrast;
    if (!begin_at_free_pixel(curves[0], 2 * options_.apart, contrast)) return false;
    if (!begin_apart_from(curves[0], curves[1], contrast)) return false;
    for (int64_t dash = 1; dash < options_.contour; ++dash) {
      for (Curve& curve : curves) {
        if (!extend(curve, contrast)) return false;
      }
    }
    return true;
  }

  /// Draws a short curve in free room; changes nothing when there is none.
  bool draw_distractor() {
    saved_image_ = image_;
    saved_room_ = room_;
    Curve curve;
    bool is_complete = begin_at_free_pixel(curve, 1, options_.contrast);
    for (int64_t dash = 1; is_complete && dash < options_.distractor; ++dash)
      is_complete = extend(curve, options_.contrast);
    if (is_complete) {
      occupy(curve);
    } else {
      image_ = saved_image_;
      room_ = saved_room_;
    }
    return is_complete;
  }

  const PathfinderOptions& options_;
  const Brush& brush_;
  int64_t gap_;
  CounterRng& rng_;
  std::vector<float> border_;                    // 1 in the border that no curve enters, 0 elsewhere
  std::vector<float> image_;                     // brightness
  std::vector<float> room_;                      // how much of each pixel is occupied, 0 to 1
  std::vector<float> saved_image_, saved_room_;  // before the distractor that is being drawn
  std::vector<DashEnd> dash_ends_;               // candidates of extend(), kept for their memory
};

}  // namespace

Sequences pathfinder(int64_t count, uint64_t seed, const PathfinderOptions& options,
                     std::vector<PathfinderFacts>* facts, const ProgressCallback& on_progress) {
  if (count < 1 || count > 10'000'000)
    fail("pathfinder: a count of ", count, " is outside 1 .. 10000000. Choose one inside.");
  std::vector<Brush> brushes;
  for (const int64_t gap : options.gaps) brushes.emplace_back(options, gap);
  const int64_t area = options.side * options.side;
  Sequences out = blank_sequences(std::vector<uint8_t>(static_cast<size_t>(count)), area);
  if (facts != nullptr) facts->resize(static_cast<size_t>(count));
  parallel_rows_with_progress(count, 16, on_progress, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      CounterRng rng(seed, static_cast<uint64_t>(i));
      const auto brush = static_cast<size_t>(rng.below(static_cast<int64_t>(brushes.size())));
      const bool connected = rng.below(2) == 1;
      Picture picture(options, brushes[brush], options.gaps[brush], rng);
      const PathfinderFacts facts_of_image = picture.draw(connected);
      picture.write(&out.bytes[static_cast<size_t>(i * area)]);
      out.labels[static_cast<size_t>(i)] = connected ? 1 : 0;
      if (facts != nullptr) (*facts)[static_cast<size_t>(i)] = facts_of_image;
    }
  });
  return out;
}

}  // namespace heed
