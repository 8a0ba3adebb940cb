// Finds the mode that is asked for, and what the modes share.
#include "heed/train/commands/inspect_modes.h"

#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"

namespace heed {

std::vector<CommandOption> inspect_mode_options() {
  return {{"through-training", "",
           "the maps that the run kept on the way (--maps-every of train): a page with a slider, and an "
           "animated SVG"},
          {"watch", "", "draw the head anew for each checkpoint that a training writes; Ctrl-C ends it"},
          {"logit-lens", "", "what each layer would predict: a table and a page"},
          {"json", "", "with --logit-lens: the table as one JSON object"}};
}

size_t count_runs(const ParsedArguments& arguments) {
  size_t count = 1;
  while (count < arguments.positional.size() && io::exists(Path(arguments.positional[count]) / "config.toml"))
    ++count;
  if (const size_t behind = arguments.positional.size() - count; behind > 1) {
    fail("inspect: '", shown(arguments.positional[count]),
         "' is not the folder of a run, and something stands behind it. Give runs first and one text at the "
         "end, in quotes.");
  }
  return count;
}

std::string inspected_text(const ParsedArguments& arguments) {
  const size_t runs = count_runs(arguments);
  return runs < arguments.positional.size() ? arguments.positional[runs] : "";
}

bool needs_data(const std::string& input) {
  return std::all_of(input.begin(), input.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Path inspect_folder(const ParsedArguments& arguments, const Path& run) {
  const Path out = arguments.get("out", (run / "inspect").string());
  if (arguments.has("out"))
    io::make_directories(out);
  else
    io::make_directory(out);
  return out;
}

HeadChoice chosen_head(const ParsedArguments& arguments, const std::vector<MapView>& maps) {
  const std::string kind = arguments.get("kind");
  std::vector<MapView> wanted;
  std::vector<size_t> places;
  std::string have;
  for (size_t i = 0; i < maps.size(); ++i) {
    have += text(have.empty() ? "" : ", ", maps[i].kind, " layer ", maps[i].layer);
    if (maps[i].kind.find(kind) == std::string::npos) continue;
    if (arguments.has("layer") && maps[i].layer != arguments.integer("layer", 0)) continue;
    wanted.push_back(maps[i]);
    places.push_back(i);
  }
  if (wanted.empty()) fail("inspect: no map is of the kind and layer asked for. There are: ", have, ".");
  HeadChoice choice = first_head(wanted);
  if (arguments.has("head")) choice.head = arguments.integer("head", 0);
  if (const int64_t heads = wanted[choice.map].heads; choice.head < 0 || choice.head >= heads)
    fail("--head = ", choice.head, ". Heads are 0 to ", heads - 1, ".");
  return {places[choice.map], choice.head};
}

std::optional<int> run_inspect_mode(const ParsedArguments& arguments) {
  struct Mode {
    const char* option;
    int (*run)(const ParsedArguments&);
  };
  const Mode modes[] = {{"through-training", inspect_through_training},
                        {"watch", inspect_watch},
                        {"logit-lens", inspect_logit_lens}};
  const Mode* asked = nullptr;
  for (const Mode& mode : modes) {
    if (!arguments.has(mode.option)) continue;
    if (asked != nullptr)
      fail("inspect: --", asked->option, " and --", mode.option, " do not go together. Take one out.");
    asked = &mode;
  }
  if (arguments.has("json") && (asked == nullptr || asked->run != inspect_logit_lens))
    fail("inspect: --json is for --logit-lens.");
  const bool several = count_runs(arguments) > 1;
  if (asked != nullptr) {
    if (several) fail("inspect: --", asked->option, " is for one run. Leave the others out.");
    return asked->run(arguments);
  }
  if (several) return inspect_side_by_side(arguments);
  return std::nullopt;
}

}  // namespace heed
