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

constexpr double occupied = 0.3;     // room above this is occupied for a new curve
constexpr double overlapping = 1.8;  // rooms of two dashes sum to this where they touch
constexpr int64_t dash_tries = 3, curve_tries = 5;

struct Pixel {
  int64_t row = 0, column = 0;
};

/// Rounds up as the published generator does, except for rounding errors of whole numbers.
Pixel moved(Pixel from, double direction, int64_t distance) {
  const auto length = static_cast<double>(distance);
  return {from.row + static_cast<int64_t>(std::ceil(length * std::sin(direction) - 1e-9)),
          from.column + static_cast<int64_t>(std::ceil(length * std::cos(direction) - 1e-9))};
}

/// A growing curve: its last dash does not occupy room yet, so that its own next dash may follow.
struct Curve {
  Pixel pivot, first, last;
  double direction = 0;
  Pixel stamped;  // start of the last dash drawn
  double stamped_direction = 0;
};

/// A possible end of the next dash.
struct DashEnd {
  Pixel at;
  double direction, below;  // below: cumulative weight, this one included
};

/// One image during generation.
class Picture {
 public:
  Picture(const PathfinderOptions& options, const Brush& brush, int64_t gap, CounterRng& rng)
      : options_(options), brush_(brush), gap_(gap), rng_(rng) {
    empty_.assign(static_cast<size_t>(options_.side * options_.side), 0.0f);
    for (int64_t y = 0; y < options_.side; ++y) {
      for (int64_t x = 0; x < options_.side; ++x) {
        if (std::min({y, x, options_.side - 1 - y, options_.side - 1 - x}) < options_.padding)
          empty_[index(y, x)] = 1;
      }
    }
  }

  /// Draws everything; `label` decides which ends get discs.
  PathfinderFacts draw(bool label) {
    Curve curves[2];
    while (!two_curves(curves)) {
    }
    // Both targets are in place except for one last dash: like the published generator, do not occupy the
    // first curve's.
    occupy(curves[1]);
    for (int64_t i = 0; i < options_.distractors; ++i) {
      for (int64_t tries = 0; tries < curve_tries && !distractor(); ++tries) {
      }
    }
    const auto origin = static_cast<size_t>(rng_.below(2));
    const size_t terminal = label ? origin : 1 - origin;
    const Pixel discs[2] = {curves[origin].first, curves[terminal].last};
    PathfinderFacts facts{.gap = gap_};
    for (int i = 0; i < 2; ++i) {
      stamp(image_, brush_.disc(), brush_.disc().ink, discs[i], 1);
      facts.markers[i][0] = discs[i].row;
      facts.markers[i][1] = discs[i].column;
    }
    return facts;
  }

  /// Writes pixels scaled to a maximum of 255.
  void write(char* pixels) const {
    const float largest = *std::max_element(image_.begin(), image_.end());
    for (size_t i = 0; i < image_.size(); ++i)
      pixels[i] = static_cast<char>(static_cast<uint8_t>(image_[i] / largest * 255 + 0.5f));
  }

 private:
  void clear() {
    image_.assign(static_cast<size_t>(options_.side * options_.side), 0.0f);
    room_ = empty_;
  }

  size_t index(int64_t row, int64_t column) const {
    return static_cast<size_t>(row * options_.side + column);
  }
  bool inside(Pixel p) const {
    return p.row >= 0 && p.row < options_.side && p.column >= 0 && p.column < options_.side;
  }

  /// Calls f(pixel, value) for the pixels of a stamp that are inside the image.
  template <class F>
  void each(const Stamp& one, const std::vector<float>& values, Pixel at, F f) const {
    const int64_t reach = one.reach, size = 2 * reach + 1;
    const int64_t top = std::max<int64_t>(0, at.row - reach),
                  bottom = std::min<int64_t>(options_.side - 1, at.row + reach);
    const int64_t left = std::max<int64_t>(0, at.column - reach),
                  right = std::min<int64_t>(options_.side - 1, at.column + reach);
    for (int64_t y = top; y <= bottom; ++y) {
      const float* row = &values[static_cast<size_t>((y - at.row + reach) * size)];
      for (int64_t x = left; x <= right; ++x) f(index(y, x), row[x - at.column + reach]);
    }
  }

  void stamp(std::vector<float>& onto, const Stamp& one, const std::vector<float>& values, Pixel at,
             double contrast) const {
    const auto scale = static_cast<float>(contrast);
    each(one, values, at,
         [&](size_t pixel, float value) { onto[pixel] = std::max(onto[pixel], value * scale); });
  }

  /// Occupies the room of a curve's last dash.
  void occupy(const Curve& curve) {
    const Stamp& one = brush_.dash(curve.stamped_direction);
    stamp(room_, one, one.room, curve.stamped, 1);
  }

  void set_dash(Curve& curve, Pixel from, double direction, double contrast) {
    const Stamp& one = brush_.dash(direction);
    stamp(image_, one, one.ink, from, contrast);
    curve.stamped = from;
    curve.stamped_direction = direction;
  }

  /// A random direction in whole degrees, -180 .. 179, as radians.
  double any_direction() { return static_cast<double>(rng_.between(-180, 179)) * std::numbers::pi / 180; }
  static double reversed(double direction) {
    return direction < 0 ? direction + std::numbers::pi : direction - std::numbers::pi;
  }

  /// A uniformly random pixel where a dash of this direction avoids occupied room and the `border` outermost
  /// pixels. False when there is none.
  bool free_pixel(double direction, int64_t border, Pixel& out) {
    const Stamp& one = brush_.dash(direction);
    const auto free = [&](Pixel p) {
      for (int64_t y = -one.reach; y <= one.reach; ++y) {
        for (int64_t x = -one.reach; x <= one.reach; ++x) {
          if (one.at(one.room, y, x) < 1) continue;
          // The published generator tests the dash one pixel further down and right.
          const Pixel at{p.row + y + 1, p.column + x + 1};
          if (!inside(at)) continue;
          const int64_t edge =
              std::min({at.row, at.column, options_.side - 1 - at.row, options_.side - 1 - at.column});
          if (edge < border || static_cast<double>(room_[index(at.row, at.column)]) > occupied) return false;
        }
      }
      return true;
    };
    // Rejection sampling, uniform over free pixels; if it fails often, enumerate all free pixels.
    const int64_t low = std::max<int64_t>(0, border - 2), count = options_.side - 2 * low;
    for (int64_t tries = 0; tries < 32; ++tries) {
      out = {low + rng_.below(count), low + rng_.below(count)};
      if (free(out)) return true;
    }
    std::vector<Pixel> all;
    for (int64_t y = low; y < low + count; ++y) {
      for (int64_t x = low; x < low + count; ++x) {
        if (free({y, x})) all.push_back({y, x});
      }
    }
    if (all.empty()) return false;
    out = rng_.pick(all);
    return true;
  }

  /// Starts a curve if its first dash and pivot are inside the image; else false.
  bool begin(Curve& curve, Pixel tail, double direction, double contrast) {
    curve = {};
    curve.first = tail;
    curve.direction = direction;
    const Pixel head = moved(tail, direction, options_.dash);
    curve.pivot = moved(head, reversed(direction), options_.dash + gap_);
    if (!inside(head) || !inside(curve.pivot)) return false;
    set_dash(curve, tail, direction, contrast);
    return true;
  }

  /// Appends a dash; false when there is no room.
  bool extend(Curve& curve, double contrast) {
    const Pixel pivot = moved(curve.pivot, curve.direction, options_.dash + 2 * gap_);
    dash_ends_.clear();
    double total = 0;
    for (const Turn& turn : brush_.turns()) {
      const Pixel p{pivot.row + turn.row, pivot.column + turn.column};
      if (!inside(p)) continue;
      double angle = std::abs(turn.direction - curve.direction);
      angle = std::min(angle, std::abs(2 * std::numbers::pi - angle)) * options_.continuity;
      if (angle >= std::numbers::pi / 2) continue;
      const double weight = std::cos(angle);
      total += (1 - occupied_near(p)) * weight * weight;
      dash_ends_.push_back({p, turn.direction, total});
    }
    if (total < 1e-4) return false;
    for (int64_t tries = 0; tries < dash_tries; ++tries) {
      const double drawn = rng_.uniform() * total;
      const auto found = std::find_if(dash_ends_.begin(), dash_ends_.end(),
                                      [&](const DashEnd& end) { return end.below > drawn; });
      if (found == dash_ends_.end()) continue;
      const double back = reversed(found->direction);
      const Stamp& one = brush_.dash(back);
      float largest = 0;
      each(one, one.room, found->at,
           [&](size_t pixel, float value) { largest = std::max(largest, room_[pixel] + value); });
      if (static_cast<double>(largest) >= overlapping) continue;
      occupy(curve);
      set_dash(curve, found->at, back, contrast);
      curve.pivot = pivot;
      curve.direction = found->direction;
      curve.last = found->at;
      return true;
    }
    return false;
  }

  /// The maximum occupied room within the gap around a pixel.
  double occupied_near(Pixel p) const {
    float largest = 0;
    for (int64_t y = -gap_; y <= gap_; ++y) {
      for (int64_t x = -gap_; x <= gap_; ++x) {
        const Pixel at{p.row + y, p.column + x};
        if (y * y + x * x <= gap_ * gap_ && inside(at))
          largest = std::max(largest, room_[index(at.row, at.column)]);
      }
    }
    return static_cast<double>(largest);
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
      const double away = static_cast<double>(rng_.below(360)) * std::numbers::pi / 180;
      const Pixel tail{other.first.row + std::lround(apart * std::sin(away)),
                       other.first.column + std::lround(apart * std::cos(away))};
      if (begin(curve, tail, direction, contrast)) return true;
    }
    return false;
  }

  /// Draws both target curves into an empty image; false when one of them finds no room.
  bool two_curves(Curve (&curves)[2]) {
    clear();
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
  bool distractor() {
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
  std::vector<float> empty_, image_, room_, saved_image_, saved_room_;
  std::vector<DashEnd> dash_ends_;
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
      const auto which = static_cast<size_t>(rng.below(static_cast<int64_t>(brushes.size())));
      const bool label = rng.below(2) == 1;
      Picture picture(options, brushes[which], options.gaps[which], rng);
      const PathfinderFacts known = picture.draw(label);
      picture.write(&out.bytes[static_cast<size_t>(i * area)]);
      out.labels[static_cast<size_t>(i)] = label ? 1 : 0;
      if (facts != nullptr) (*facts)[static_cast<size_t>(i)] = known;
    }
  });
  return out;
}

}  // namespace heed
