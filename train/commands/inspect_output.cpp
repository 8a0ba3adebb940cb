// Writes and prints the maps of one input.
#include "heed/train/commands/inspect_output.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/map_svg.h"
#include "heed/attention/inspect/map_text.h"
#include "heed/attention/inspect/paper_svg.h"
#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/npy.h"
#include "heed/core/io/safetensors.h"
#include "heed/train/commands/inspect_modes.h"

namespace heed {
namespace {

std::string file_name(const MapView& map) {
  std::string name = map.kind + "-" + std::to_string(map.layer);
  for (char& c : name) c = c == ' ' ? '-' : c;
  return name;
}

/// Replaces the weights of a map by its attributions, as shares of the largest, or by its rollout. Sets
/// `note` to a description of the numbers.
void replace_weights(MapView& view, const std::string& show, std::string& note) {
  view.weights = show == "rollout" ? view.rollout : view.attribution;
  if (show == "rollout") view.heads = 1;
  view.attribution.clear();
  view.rollout.clear();
  view.factor_width = 0;
  view.query_factors.clear();
  view.key_factors.clear();
  if (show == "rollout") {
    note = text(view.kind, ", rollout of layers 0 to ", view.layer);
    return;
  }
  float max = 0;
  for (const float x : view.weights) max = std::max(max, std::abs(x));
  if (max > 0)
    for (float& x : view.weights) x /= max;
  note = text("weight times gradient, as shares of the largest, ", max);
}

}  // namespace

void write_map_files(const Path& out, const std::vector<MapView>& maps, const std::string& title,
                     const std::string& caption, bool paper) {
  const auto checked_path = [&](const std::string& name) {
    io::check_regular(out / name);
    return out / name;
  };
  io::write(checked_path("maps.html"), maps_page(maps, {.title = title, .subtitle = caption}));
  io::write(checked_path("all-heads.svg"), contact_sheet_svg(maps, caption));
  std::vector<TensorBytes> tensors;
  for (const MapView& map : maps) {
    const std::vector<int64_t> shape{map.heads, map.queries, map.keys}, flat{map.queries, map.keys};
    const std::string name = file_name(map);
    write_npy(checked_path(name + ".npy"), Array::of<float>(shape, map.weights));
    if (!map.attribution.empty())
      write_npy(checked_path(name + "-attribution.npy"), Array::of<float>(shape, map.attribution));
    if (!map.rollout.empty())
      write_npy(checked_path(name + "-rollout.npy"), Array::of<float>(flat, map.rollout));
    tensors.push_back({map.name, "f32", shape, std::as_bytes(std::span(map.weights))});
    for (int64_t head = 0; head < map.heads; ++head) {
      const std::string one = text(name, "-head-", head);
      io::write(checked_path(one + ".svg"), map_svg(map, head));
      if (paper) io::write(checked_path(one + "-paper.svg"), paper_svg(map, head));
    }
  }
  write_safetensors(checked_path("maps.safetensors"), tensors);
}

void print_map(const std::string& map) {
  if (map.find('\033') == std::string::npos) return io::print(map);
  const size_t end = std::min(map.find('\n'), map.size() - 1) + 1;
  io::print(map.substr(0, end));
  io::print_styled(map.substr(end));
}

std::string chosen_map_text(const std::vector<MapView>& maps, const ParsedArguments& arguments) {
  std::vector<MapView> wanted = wanted_maps(maps, arguments);
  const std::string show = arguments.word("show", {"weights", "attribution", "rollout"}, "weights");
  if (show != "weights") {
    std::erase_if(wanted, [&](const MapView& map) {
      return show == "rollout" ? map.rollout.empty() : map.attribution.empty();
    });
    if (wanted.empty())
      fail("--show ", show, ": no map that was asked for has one. ",
           show == "rollout"
               ? "It is of self-attention in a stack of layers of one length, up to 2,048 tokens."
               : "It needs heads whose output is the map times the values.");
  }
  const HeadChoice chosen = first_head(wanted);
  MapView view = wanted[chosen.map];
  TextOptions options = terminal_options();
  if (show != "weights") replace_weights(view, show, options.note);
  if (show == "rollout") return map_text(view, 0, options);
  if (arguments.get("head") == "mean") return map_text(mean_of_heads(view), 0, options);
  return map_text(view, chosen_head(view, chosen.head, arguments), options);
}

}  // namespace heed
