// heed inspect: the attention maps of one input.
#include <algorithm>
#include <cstdio>

#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/map_statistics.h"
#include "heed/attention/inspect/map_svg.h"
#include "heed/attention/inspect/map_text.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/npy.h"
#include "heed/core/io/safetensors.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/commands/inspect_modes.h"
#include "heed/train/commands/loaded_run.h"

namespace heed {
namespace {

std::string file_name(const MapView& map) {
  std::string name = map.kind + "-" + std::to_string(map.layer);
  for (char& c : name) c = c == ' ' ? '-' : c;
  return name;
}

/// Into a folder that is there.
void write_files(const Path& out, const std::vector<MapView>& maps, const std::string& title,
                 const std::string& caption) {
  const auto own = [&](const std::string& name) {
    io::check_regular(out / name);
    return out / name;
  };
  io::write(own("maps.html"), maps_page(maps, {.title = title, .subtitle = caption}));
  io::write(own("all-heads.svg"), contact_sheet_svg(maps, caption));
  std::vector<TensorBytes> tensors;
  for (const MapView& map : maps) {
    const std::vector<int64_t> shape{map.heads, map.queries, map.keys};
    write_npy(own(file_name(map) + ".npy"), Array::of<float>(shape, map.weights));
    tensors.push_back({map.name, "f32", shape, std::as_bytes(std::span(map.weights))});
    for (int64_t head = 0; head < map.heads; ++head) {
      io::write(own(file_name(map) + "-head-" + std::to_string(head) + ".svg"), map_svg(map, head));
    }
  }
  write_safetensors(own("maps.safetensors"), tensors);
}

int run_inspect(const ParsedArguments& arguments) {
  if (const std::optional<int> code = run_inspect_mode(arguments)) return *code;
  apply_machine(arguments);
  LoadedRun run =
      load_run(arguments.positional[0], arguments.get("checkpoint"), "", arguments.positional.size() < 2);
  std::string caption;
  const std::string input = arguments.positional.size() > 1 ? arguments.positional[1] : "";
  std::vector<MapView> maps = run.config.task->maps(*run.model, input, caption);
  if (maps.empty()) fail("inspect: the attentions of this run have no maps.");
  const std::string kind = arguments.get("kind");
  const std::vector<std::string> kinds{"encoder", "decoder", "cross"};
  if (arguments.has("kind") && std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    fail("--kind '", kind, "' is unknown.", suggestion(kind, kinds));
  std::vector<MapView> wanted;
  for (const MapView& map : maps) {
    if ((kind.empty() || map.kind.find(kind) != std::string::npos) &&
        (!arguments.has("layer") || map.layer == arguments.integer("layer", 0))) {
      wanted.push_back(map);
    }
  }
  if (wanted.empty()) {
    std::string have;
    for (const MapView& map : maps)
      have += (have.empty() ? "" : ", ") + map.kind + " layer " + std::to_string(map.layer);
    fail("inspect: no map is of the kind and layer asked for. There are: ", have, ".");
  }
  HeadChoice chosen = first_head(wanted);
  if (arguments.has("head")) {
    const int64_t head = arguments.integer("head", 0);
    const MapView& map = wanted[static_cast<size_t>(chosen.map)];
    if (head < 0 || head >= map.heads) fail("--head = ", head, ". Heads are 0 to ", map.heads - 1, ".");
    chosen.head = head;
  }
  io::print(caption + "\n\n");
  io::print_styled(map_text(wanted[static_cast<size_t>(chosen.map)], chosen.head, terminal_options()));
  const Path out = arguments.get("out", (run.folder.path() / "inspect").string());
  if (arguments.has("out")) {
    io::make_directories(out);
  } else {
    io::make_directory(out);  // in a folder that may come from elsewhere: no link
  }
  write_files(out, maps, run.folder.path().filename().string(), caption);
  io::printf("\nall heads   %s\nmatrices    %s, one .npy a layer beside it\n", (out / "maps.html").c_str(),
             (out / "maps.safetensors").c_str());
  return 0;
}

}  // namespace

Command command::inspect() {
  std::vector<CommandOption> options{
      {"kind", "WORD", "encoder, decoder or cross: what is printed"},
      {"layer", "N", "from 0"},
      {"head", "N", "from 0; when not given the sharpest, of cross-attention where there is any"},
      {"out", "FOLDER", "where the files go (default: RUN/inspect)"},
      {"checkpoint", "WHICH", "best, last or a step (default: best)"}};
  for (const CommandOption& one : inspect_mode_options()) options.push_back(one);
  return {"inspect",
          "show the attention maps of a trained run for one input; of several runs, side by side",
          "RUN... [TEXT]",
          "the folder of a run, or of several that are compared, and the input; left out: one of the "
          "validation data",
          1,
          17,
          with_machine(std::move(options)),
          false,
          run_inspect};
}

}  // namespace heed
