// Maps through training as an animated SVG: each frame is a group that SMIL shows for its share of the time.
#include <algorithm>
#include <array>
#include <cmath>

#include "heed/attention/inspect/map_svg.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/train/report/standalone_svg.h"
#include "heed/train/report/training_page.h"

namespace heed {
namespace {

using picture::escape;
using picture::trimmed;

constexpr double film_gap = 12, film_left = 74, loss_height = 74;

std::vector<size_t> chosen_frames(size_t count, int64_t most) {
  std::vector<size_t> out;
  const size_t wanted = std::min(count, static_cast<size_t>(std::max<int64_t>(most, 2)));
  for (size_t i = 0; i < wanted; ++i)
    out.push_back(wanted == 1 ? 0 : (i * (count - 1) + (wanted - 1) / 2) / (wanted - 1));
  return out;
}

/// What is drawn of a frame: the maps of one kind.
std::vector<size_t> chosen_maps(const MapSnapshot& last) {
  const std::string kind = last.maps[first_head(last.maps).map].kind;
  std::vector<size_t> out;
  for (size_t i = 0; i < last.maps.size(); ++i) {
    if (last.maps[i].kind == kind) out.push_back(i);
  }
  return out;
}

std::string film_text(double x, double y, const std::string& words, const std::string& more) {
  return text("<text x=\"", trimmed(x, 1), "\" y=\"", trimmed(y, 1), "\" ", more, ">", escape(words),
              "</text>\n");
}

/// All cells of one head: a path for each shade, on a ground of the lightest.
std::string film_cells(const MapView& map, int64_t head, double x, double y, double box) {
  constexpr int shades = 16;
  std::array<std::string, shades + 1> paths;
  for (int64_t query = 0; query < map.queries; ++query) {
    for (int64_t key = 0, end = 0; key < map.keys; key = end) {
      const auto shade_of = [&](int64_t at) {
        const float weight = map.at(head, query, at);
        return std::isfinite(weight) ? std::lround(std::clamp(weight, 0.0F, 1.0F) * shades) : 0L;
      };
      const auto shade = shade_of(key);
      for (end = key + 1; end < map.keys && shade_of(end) == shade;) ++end;
      if (shade > 0)
        paths[static_cast<size_t>(shade)] +=
            text("M", key, " ", query, "h", end - key, "v1h-", end - key, "z");
    }
  }
  std::string out =
      text("<g transform=\"translate(", trimmed(x, 2), " ", trimmed(y, 2), ") scale(",
           trimmed(box / static_cast<double>(map.keys), 5), " ",
           trimmed(box / static_cast<double>(map.queries), 5), ")\" shape-rendering=\"crispEdges\">");
  for (int shade = 1; shade <= shades; ++shade) {
    if (const std::string& path = paths[static_cast<size_t>(shade)]; !path.empty())
      out += text("<path fill=\"", picture::colour(shade / static_cast<double>(shades)), "\" d=\"", path,
                  "\"/>");
  }
  return out + "</g>\n";
}

/// When a frame begins, as a share of a round: the last one stays for a quarter of all.
double film_begin(size_t at, size_t count) {
  const size_t hold = count / 3;
  return static_cast<double>(at) / static_cast<double>(count + hold);
}

/// Shown from `begin` to `end` of each round, both shares of it.
std::string film_shown(double begin, double end, double seconds) {
  const std::string before = begin > 0 ? "hidden;" : "", after = end < 1 ? ";hidden" : "";
  const std::string times =
      text(begin > 0 ? "0;" : "", trimmed(begin, 5), end < 1 ? ";" + trimmed(end, 5) : "");
  return text("<animate attributeName=\"visibility\" calcMode=\"discrete\" dur=\"", trimmed(seconds, 2),
              "s\" repeatCount=\"indefinite\" values=\"", before, "visible", after, "\" keyTimes=\"", times,
              "\"/>");
}

/// The loss from the first to the last frame, with a marker that moves from frame to frame.
std::string film_loss(const TrainingMaps& training, const std::vector<size_t>& frames, double top,
                      double film_right, double seconds) {
  const double first = static_cast<double>(training.frames.front().step),
               last = std::max(static_cast<double>(training.frames.back().step), first + 1);
  double most = 0;
  for (const Series& one : training.loss) {
    for (const double y : one.y) most = std::isfinite(y) ? std::max(most, y) : most;
  }
  if (most <= 0) return "";
  const auto across = [&](double x) {
    return film_left + (x - first) / (last - first) * (film_right - film_left);
  };
  const auto down = [&](double y) { return top + loss_height * (1 - y / most); };
  std::string out;
  for (size_t i = 0; i < training.loss.size(); ++i) {
    const Series& one = training.loss[i];
    const size_t stride = one.x.size() / 400 + 1;
    std::string path;
    for (size_t at = 0; at < one.x.size(); at += stride) {
      if (!std::isfinite(one.y[at]) || one.x[at] < first || one.x[at] > last) continue;
      path += text(path.empty() ? "M" : "L", trimmed(across(one.x[at]), 1), " ", trimmed(down(one.y[at]), 1));
    }
    out += text("<path fill=\"none\" stroke=\"var(--series-", i % 8, ")\" stroke-width=\"1.6\" d=\"", path,
                "\"/>\n");
    out += film_text(film_right, top + 10 + 14 * static_cast<double>(i), one.name,
                     text("text-anchor=\"end\" font-size=\"11\" fill=\"var(--series-", i % 8, ")\""));
  }
  out += text("<path stroke=\"var(--line)\" d=\"M", trimmed(film_left, 1), " ", trimmed(top + loss_height, 1),
              "H", trimmed(film_right, 1), "\"/>\n");
  out += film_text(film_left - 8, top + 9, trimmed(most, 2),
                   "text-anchor=\"end\" font-size=\"11\" fill=\"var(--muted)\"");
  out += film_text(film_left - 8, top + loss_height, "0",
                   "text-anchor=\"end\" font-size=\"11\" fill=\"var(--muted)\"");
  std::string places, times;
  for (size_t at = 0; at < frames.size(); ++at) {
    const std::string comma = at > 0 ? ";" : "";
    places += text(comma, trimmed(across(static_cast<double>(training.frames[frames[at]].step)), 1), " 0");
    times += comma + trimmed(film_begin(at, frames.size()), 5);
  }
  return out + text("<path stroke=\"var(--text)\" stroke-width=\"1.2\" d=\"M0 ", trimmed(top, 1), "v",
                    trimmed(loss_height, 1),
                    "\"><animateTransform attributeName=\"transform\" "
                    "type=\"translate\" calcMode=\"discrete\" dur=\"",
                    trimmed(seconds, 2), "s\" repeatCount=\"indefinite\" values=\"", places, "\" keyTimes=\"",
                    times, "\"/></path>\n");
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
  std::string out =
      text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", trimmed(width, 0), "\" height=\"",
           trimmed(height, 0), "\" viewBox=\"0 0 ", trimmed(width, 0), " ", trimmed(height, 0),
           "\" role=\"img\" font-family=\"system-ui, 'Segoe UI', Roboto, Arial, sans-serif\" "
           "font-size=\"12\" fill=\"var(--text)\">\n<title>",
           escape(training.title),
           "</title>\n<rect width=\"100%\" height=\"100%\" "
           "fill=\"var(--paper)\"/>\n");
  out += film_text(14, 24, training.title + ", " + last.maps[maps.front()].kind + " attention",
                   "font-size=\"14\" font-weight=\"600\"");
  out += film_loss(training, frames, 48, width - 14, options.seconds);
  for (int64_t head = 0; head < heads; ++head)
    out += film_text(film_left + static_cast<double>(head) * row + box / 2, top - 8, text("head ", head),
                     "text-anchor=\"middle\" font-size=\"11\" fill=\"var(--muted)\"");
  for (size_t i = 0; i < maps.size(); ++i) {
    const double y = top + static_cast<double>(i) * row;
    out += film_text(14, y + 16, text("layer ", last.maps[maps[i]].layer),
                     "font-size=\"11\" fill=\"var(--muted)\"");
    for (int64_t head = 0; head < last.maps[maps[i]].heads; ++head)
      out += text("<rect x=\"", trimmed(film_left + static_cast<double>(head) * row, 1), "\" y=\"",
                  trimmed(y, 1), "\" width=\"", trimmed(box, 0), "\" height=\"", trimmed(box, 0),
                  "\" fill=\"", picture::colour(0), "\" stroke=\"var(--strong)\"/>\n");
  }
  for (size_t at = 0; at < frames.size(); ++at) {
    const MapSnapshot& frame = training.frames[frames[at]];
    const bool is_last = at + 1 == frames.size();
    // Programs without animation show the last frame.
    out +=
        text("<g visibility=\"", is_last ? "visible" : "hidden", "\">",
             frames.size() > 1 ? film_shown(film_begin(at, frames.size()),
                                            is_last ? 1 : film_begin(at + 1, frames.size()), options.seconds)
                               : std::string(),
             "\n");
    out += film_text(width - 14, 24, text("step ", frame.step),
                     "text-anchor=\"end\" font-size=\"14\" font-weight=\"600\"");
    for (size_t i = 0; i < maps.size(); ++i) {
      const MapView map = pooled(frame.maps[maps[i]], options.max_side);
      for (int64_t head = 0; head < map.heads; ++head)
        out += film_cells(map, head, film_left + static_cast<double>(head) * row,
                          top + static_cast<double>(i) * row, box);
    }
    out += "</g>\n";
  }
  return picture::standalone_svg(out + "</svg>\n");
}

}  // namespace heed
