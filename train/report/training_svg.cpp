// Maps through training as an animated SVG: each frame is a group that SMIL shows for its share of the time.
#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/map_svg.h"
#include "heed/attention/inspect/svg.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/train/report/training_page.h"

namespace heed {
namespace {

using picture::SvgCanvas;
using picture::trimmed;

constexpr double film_gap = 12, film_left = 74, loss_height = 74;

/// At most so many of `count` frames, evenly spread: the first and the last are among them.
std::vector<size_t> chosen_frames(size_t count, int64_t max_frames) {
  std::vector<size_t> out;
  const size_t wanted = std::min(count, static_cast<size_t>(std::max<int64_t>(max_frames, 2)));
  for (size_t i = 0; i < wanted; ++i)
    out.push_back(wanted == 1 ? 0 : (i * (count - 1) + (wanted - 1) / 2) / (wanted - 1));
  return out;
}

/// The indices of the maps that are drawn: those of the kind of first_head().
std::vector<size_t> chosen_maps(const MapSnapshot& last) {
  const std::string kind = last.maps[first_head(last.maps).map].kind;
  std::vector<size_t> out;
  for (size_t i = 0; i < last.maps.size(); ++i) {
    if (last.maps[i].kind == kind) out.push_back(i);
  }
  return out;
}

constexpr std::string_view film_small = "font-size=\"11\" fill=\"var(--muted)\"",
                           film_heading = "font-size=\"14\" font-weight=\"600\"";

/// When a frame begins, as a share of a round: the last one stays for a quarter of all.
double film_begin(size_t at, size_t count) {
  const size_t hold = count / 3;
  return static_cast<double>(at) / static_cast<double>(count + hold);
}

/// The animation of an element that is visible from `begin` to `end` of each round, both shares of it.
std::string film_shown(double begin, double end, double seconds) {
  const std::string before = begin > 0 ? "hidden;" : "", after = end < 1 ? ";hidden" : "";
  const std::string times =
      text(begin > 0 ? "0;" : "", trimmed(begin, 5), end < 1 ? ";" + trimmed(end, 5) : "");
  return text("<animate attributeName=\"visibility\" calcMode=\"discrete\" dur=\"", trimmed(seconds, 2),
              "s\" repeatCount=\"indefinite\" values=\"", before, "visible", after, "\" keyTimes=\"", times,
              "\"/>");
}

/// Adds the loss from the first to the last frame, with a marker that moves from frame to frame.
void add_loss(SvgCanvas& out, const TrainingMaps& training, const std::vector<size_t>& frames, double top,
              double film_right, double seconds) {
  const double first = static_cast<double>(training.frames.front().step),
               last = std::max(static_cast<double>(training.frames.back().step), first + 1);
  double max_loss = 0;
  for (const Series& one : training.loss) {
    for (const double y : one.y) max_loss = std::isfinite(y) ? std::max(max_loss, y) : max_loss;
  }
  if (max_loss <= 0) return;
  const auto across = [&](double x) {
    return film_left + (x - first) / (last - first) * (film_right - film_left);
  };
  for (size_t i = 0; i < training.loss.size(); ++i) {
    const Series& one = training.loss[i];
    const size_t stride = one.x.size() / 400 + 1;
    std::string path;
    for (size_t at = 0; at < one.x.size(); at += stride) {
      if (!std::isfinite(one.y[at]) || one.x[at] < first || one.x[at] > last) continue;
      path += text(path.empty() ? "M" : "L", out.number(across(one.x[at])), " ",
                   out.number(top + loss_height * (1 - one.y[at] / max_loss)));
    }
    const std::string colour = text("\"var(--series-", i % 8, ")\"");
    out.path(path, text("fill=\"none\" stroke=", colour, " stroke-width=\"1.6\""));
    out.label(film_right, top + 10 + 14 * static_cast<double>(i), one.name,
              text("text-anchor=\"end\" font-size=\"11\" fill=", colour));
  }
  out.horizontal(film_left, top + loss_height, film_right, "stroke=\"var(--line)\"");
  const std::string small_end = text("text-anchor=\"end\" ", film_small);
  out.label(film_left - 8, top + 9, trimmed(max_loss, 2), small_end);
  out.label(film_left - 8, top + loss_height, "0", small_end);
  std::string places, times;
  for (size_t at = 0; at < frames.size(); ++at) {
    const std::string comma = at > 0 ? ";" : "";
    places += text(comma, out.number(across(static_cast<double>(training.frames[frames[at]].step))), " 0");
    times += comma + trimmed(film_begin(at, frames.size()), 5);
  }
  out.markup(text("<path stroke=\"var(--text)\" stroke-width=\"1.2\" d=\"M0 ", out.number(top), "v",
                  loss_height,
                  "\"><animateTransform attributeName=\"transform\" type=\"translate\" calcMode=\"discrete\" "
                  "dur=\"",
                  trimmed(seconds, 2), "s\" repeatCount=\"indefinite\" values=\"", places, "\" keyTimes=\"",
                  times, "\"/></path>\n"));
}

}  // namespace

std::string training_svg(const TrainingMaps& training, const AnimationOptions& options) {
  check(training);
  const MapSnapshot& last = training.frames.back();
  const std::vector<size_t> frames = chosen_frames(training.frames.size(), options.max_frames),
                            maps = chosen_maps(last);
  int64_t heads = 0;
  for (const size_t map : maps) heads = std::max(heads, last.maps[map].heads);
  const auto columns = static_cast<double>(heads);
  const double box = std::clamp((640 - film_left) / columns - film_gap, 56.0, 150.0), row = box + film_gap,
               width = std::max(420.0, film_left + columns * row + 2), top = 92 + loss_height,
               height = top + static_cast<double>(maps.size()) * row + 6;
  const auto left_of = [&](int64_t head) { return film_left + static_cast<double>(head) * row; };
  const auto top_of = [&](size_t map) { return top + static_cast<double>(map) * row; };
  SvgCanvas out;
  out.label(14, 24, training.title + ", " + last.maps[maps.front()].kind + " attention", film_heading);
  add_loss(out, training, frames, 48, width - 14, options.seconds);
  for (int64_t head = 0; head < heads; ++head)
    out.label(left_of(head) + box / 2, top - 8, text("head ", head),
              text("text-anchor=\"middle\" ", film_small));
  for (size_t i = 0; i < maps.size(); ++i) {
    out.label(14, top_of(i) + 16, text("layer ", last.maps[maps[i]].layer), film_small);
    for (int64_t head = 0; head < last.maps[maps[i]].heads; ++head)
      out.rectangle(left_of(head), top_of(i), box, box,
                    text(picture::fill(picture::colour(0)), " stroke=\"var(--strong)\""));
  }
  for (size_t at = 0; at < frames.size(); ++at) {
    const MapSnapshot& frame = training.frames[frames[at]];
    const bool is_last = at + 1 == frames.size();
    // Programs without animation show the last frame.
    out.markup(text("<g visibility=\"", is_last ? "visible" : "hidden", "\">\n"));
    if (frames.size() > 1)
      out.markup(film_shown(film_begin(at, frames.size()), is_last ? 1 : film_begin(at + 1, frames.size()),
                            options.seconds));
    out.label(width - 14, 24, text("step ", frame.step), text("text-anchor=\"end\" ", film_heading));
    for (size_t i = 0; i < maps.size(); ++i) {
      const MapView map = pooled(frame.maps[maps[i]], options.max_side);
      for (int64_t head = 0; head < map.heads; ++head)
        picture::add_head(out, map, head,
                          {.x = left_of(head), .y = top_of(i), .width = box, .height = box, .shades = 16});
    }
    out.markup("</g>\n");
  }
  return picture::standalone_svg(
      out.document(width, height,
                   text("width=\"", trimmed(width, 0), "\" height=\"", trimmed(height, 0), "\" role=\"img\" ",
                        picture::sans_serif, " font-size=\"12\" fill=\"var(--text)\""),
                   training.title, "var(--paper)"));
}

}  // namespace heed
