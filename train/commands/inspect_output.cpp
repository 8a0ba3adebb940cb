// Files and text of the maps of one input.
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

namespace heed {
namespace {

std::string file_name(const MapView& map) {
  std::string name = map.kind + "-" + std::to_string(map.layer);
  for (char& c : name) c = c == ' ' ? '-' : c;
  return name;
}

/// The maps that --kind and --layer leave; a usage error when there is none.
std::vector<MapView> wanted_maps(const std::vector<MapView>& maps, const ParsedArguments& arguments) {
  const std::string kind = arguments.get("kind");
  const std::vector<std::string> kinds{"encoder", "decoder", "cross"};
  if (arguments.has("kind") && std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    fail("--kind '", kind, "' is unknown.", suggestion(kind, kinds));
  std::vector<MapView> wanted;
  for (const MapView& map : maps)
    if ((kind.empty() || map.kind.find(kind) != std::string::npos) &&
        (!arguments.has("layer") || map.layer == arguments.integer("layer", 0)))
      wanted.push_back(map);
  if (!wanted.empty()) return wanted;
  std::string have;
  for (const MapView& map : maps)
    have += (have.empty() ? "" : ", ") + map.kind + " layer " + std::to_string(map.layer);
  fail("inspect: no map is of the kind and layer asked for. There are: ", have, ".");
}

/// Puts attributions or the rollout in the place of the weights, as shares of the largest, and says so.
void show_instead(MapView& view, const std::string& show, std::string& note) {
  const std::vector<float>& numbers = show == "rollout" ? view.rollout : view.attribution;
  if (show == "rollout") view.heads = 1;
  view.weights = numbers;
  view.attribution.clear();
  view.rollout.clear();
  view.factor_width = 0;
  view.query_factors.clear();
  view.key_factors.clear();
  if (show == "rollout") {
    note = text(view.kind, ", rollout of layers 0 to ", view.layer);
    return;
  }
  float most = 0;
  for (const float x : view.weights) most = std::max(most, std::abs(x));
  if (most > 0)
    for (float& x : view.weights) x /= most;
  note = text("weight times gradient, as shares of the largest, ", most);
}

}  // namespace

void write_map_files(const Path& out, const std::vector<MapView>& maps, const std::string& title,
                     const std::string& caption, bool paper) {
  const auto own = [&](const std::string& name) {
    io::check_regular(out / name);
    return out / name;
  };
  io::write(own("maps.html"), maps_page(maps, {.title = title, .subtitle = caption}));
  io::write(own("all-heads.svg"), contact_sheet_svg(maps, caption));
  std::vector<TensorBytes> tensors;
  for (const MapView& map : maps) {
    const std::vector<int64_t> shape{map.heads, map.queries, map.keys}, flat{map.queries, map.keys};
    const std::string name = file_name(map);
    write_npy(own(name + ".npy"), Array::of<float>(shape, map.weights));
    if (!map.attribution.empty())
      write_npy(own(name + "-attribution.npy"), Array::of<float>(shape, map.attribution));
    if (!map.rollout.empty()) write_npy(own(name + "-rollout.npy"), Array::of<float>(flat, map.rollout));
    tensors.push_back({map.name, "f32", shape, std::as_bytes(std::span(map.weights))});
    for (int64_t head = 0; head < map.heads; ++head) {
      const std::string one = text(name, "-head-", head);
      io::write(own(one + ".svg"), map_svg(map, head));
      if (paper) io::write(own(one + "-paper.svg"), paper_svg(map, head));
    }
  }
  write_safetensors(own("maps.safetensors"), tensors);
}

std::string chosen_map_text(const std::vector<MapView>& maps, const ParsedArguments& arguments) {
  std::vector<MapView> wanted = wanted_maps(maps, arguments);
  const std::string show = arguments.get("show", "weights"), head_word = arguments.get("head");
  const std::vector<std::string> shows{"weights", "attribution", "rollout"};
  if (std::find(shows.begin(), shows.end(), show) == shows.end())
    fail("--show '", show, "' is unknown.", suggestion(show, shows));
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
  HeadChoice chosen = first_head(wanted);
  MapView view = wanted[chosen.map];
  TextOptions options = terminal_options();
  if (show != "weights") show_instead(view, show, options.note);
  if (show == "rollout") return map_text(view, 0, options);
  if (head_word == "mean") return map_text(mean_of_heads(view), 0, options);
  if (arguments.has("head")) {
    chosen.head = arguments.integer("head", 0);
    if (chosen.head < 0 || chosen.head >= view.heads)
      fail("--head = ", chosen.head, ". Heads are 0 to ", view.heads - 1, ", or mean.");
  }
  return map_text(view, chosen.head, options);
}

}  // namespace heed
