// heed inspect: the attention maps of one input; of several runs side by side; a logit lens.
#include "heed/train/commands/inspect_modes.h"

#include "heed/attention/inspect/head_matching.h"
#include "heed/attention/inspect/lens_text.h"
#include "heed/attention/inspect/rollout.h"
#include "heed/attention/inspect/side_by_side_page.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/table_text.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/commands/inspect_output.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/run_inputs.h"
#include "heed/train/session/side_by_side_runs.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {
namespace {

/// How many of the arguments are runs: the first, and those after it that are folders of runs.
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

}  // namespace

std::string inspected_text(const ParsedArguments& arguments) {
  const size_t runs = count_runs(arguments);
  return runs < arguments.positional.size() ? arguments.positional[runs] : "";
}

void refuse_inspect_options(const ParsedArguments& arguments, const std::vector<std::string>& options,
                            const std::string& why) {
  for (const std::string& option : options) {
    if (arguments.has(option)) fail("inspect: --", option, " ", why);
  }
}

std::vector<MapView> wanted_maps(const std::vector<MapView>& maps, const ParsedArguments& arguments) {
  const std::string kind = arguments.word("kind", {"encoder", "decoder", "cross"}, "");
  std::vector<MapView> wanted;
  std::string all;
  for (const MapView& map : maps) {
    all += text(all.empty() ? "" : ", ", map.kind, " layer ", map.layer);
    if (map.kind.find(kind) != std::string::npos &&
        (!arguments.has("layer") || map.layer == arguments.integer("layer", 0)))
      wanted.push_back(map);
  }
  if (wanted.empty()) fail("inspect: no map is of the kind and layer asked for. There are: ", all, ".");
  return wanted;
}

int64_t chosen_head(const MapView& map, int64_t otherwise, const ParsedArguments& arguments) {
  const int64_t head = arguments.integer("head", otherwise);
  if (head < 0 || head >= map.heads) fail("--head = ", head, ". Heads are 0 to ", map.heads - 1, ".");
  return head;
}

namespace {

std::string head_name(const MapView& map, int64_t head) { return text(map.kind, " ", map.layer, ".", head); }

/// The heads of the first run and their counterparts in each other one.
std::string pairs_text(const SideBySide& all) {
  std::string out;
  const auto& [first_name, first] = all.models.front();
  for (size_t i = 1; i < all.models.size(); ++i) {
    const auto& [name, maps] = all.models[i];
    std::vector<TableRow> rows{{first_name, name, "distance in nats, 0 to 0.69"}};
    for (const HeadMatch& match : match_heads(first, maps)) {
      rows.push_back({head_name(first[match.one.map], match.one.head), "without a counterpart", ""});
      if (match.distance < 0) continue;
      rows.back()[1] = head_name(maps[match.other.map], match.other.head);
      rows.back()[2] = picture::fixed(match.distance, 3);
    }
    out += aligned_table(rows, {.indent = 2});
  }
  return out;
}

/// Shows the maps of several runs for one input, on one page.
int inspect_side_by_side(const ParsedArguments& arguments) {
  refuse_inspect_options(arguments, {"kind", "layer", "head"},
                         "is for one run; the page of several has all heads. Leave it out.");
  apply_machine(arguments);
  const size_t count = count_runs(arguments);
  std::vector<Path> runs(arguments.positional.begin(),
                         arguments.positional.begin() + static_cast<int64_t>(count));
  const SideBySide all = side_by_side(runs, inspected_text(arguments), arguments.get("checkpoint"));
  const Path page = output_folder(arguments, runs[0], "inspect") / "side-by-side.html";
  io::write_own(page, side_by_side_page(all));
  io::print(text(all.caption, "\n\n", pairs_text(all), "\npage  ", page.string(), "\n"));
  return 0;
}

/// Shows what each layer would predict.
int inspect_logit_lens(const ParsedArguments& arguments) {
  refuse_inspect_options(arguments, {"kind", "layer", "head"},
                         "chooses maps, and --logit-lens shows none. Leave it out.");
  apply_machine(arguments);
  const std::string input = inspected_text(arguments);
  LoadedRun run = load_run(arguments.positional[0],
                           {.checkpoint = arguments.get("checkpoint"), .with_data = input.empty()});
  const LensView lens = map_provider(*run.config.task).logit_lens(*run.model, input);
  if (arguments.has("json")) {
    io::print_data(lens_json(lens) + "\n");
    return 0;
  }
  const Path page = output_folder(arguments, run.folder.path(), "inspect") / "logit-lens.html";
  io::write_own(page, lens_page(lens, run.folder.path().filename().string()));
  io::print(lens.caption + "\n\n");
  io::print_styled(lens_text(lens, terminal_options()));
  io::print(text("\npage  ", page.string(), "\n"));
  return 0;
}

/// Runs the mode that the arguments ask for, by an option or by naming several runs, and gives its exit code;
/// none where they ask for the maps of one run.
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

constexpr int64_t longest_example = 1024;  // a map has the square of this many numbers for every head

int run_inspect(const ParsedArguments& arguments) {
  if (const std::optional<int> code = run_inspect_mode(arguments)) return *code;
  apply_machine(arguments);
  LoadedRun run = load_run(arguments.positional[0], {.checkpoint = arguments.get("checkpoint"),
                                                     .with_data = arguments.positional.size() < 2,
                                                     .swap = swap_of(arguments)});
  std::string caption;
  const std::string input = arguments.positional.size() > 1 ? arguments.positional[1] : "";
  const bool terminal = arguments.has("terminal");
  for (const char* option : {"out", "paper"})
    if (terminal && arguments.has(option))
      fail("--", option, " says what to write, and --terminal that nothing is written. Leave one out.");
  const MapParts parts{.factors = !terminal,
                       .attribution = !terminal || arguments.get("show") == "attribution",
                       .longest = arguments.integer("longest", longest_example, 1)};
  std::vector<MapView> maps = map_provider(*run.config.task).maps_with(*run.model, input, parts, caption);
  if (maps.empty())
    fail(
        "inspect: this run has no maps: its attentions make none, or it has none (--wiring sutskever or "
        "cho).");
  add_rollout(maps);
  const std::string chosen = chosen_map_text(maps, arguments);
  io::print(caption + "\n\n");
  print_map(chosen);
  if (terminal) return 0;
  const Path out = output_folder(arguments, run.folder.path(), "inspect");
  write_map_files(out, maps, run.folder.path().filename().string(), caption, arguments.has("paper"));
  io::printf("\npage        %s\nmatrices    %s, and one .npy file for each layer\n",
             (out / "maps.html").c_str(), (out / "maps.safetensors").c_str());
  if (arguments.has("paper"))
    io::printf("for print   %s, and one of every other head\n", (out / "*-paper.svg").c_str());
  return 0;
}

}  // namespace

Command command::inspect() {
  return {
      .name = "inspect",
      .about = "show the attention maps of a trained run for one input; of several runs, side by side",
      .positional = "RUN... [TEXT]",
      .positional_help =
          "the folder of a run, or of several that are compared, and the input; left out: one of the "
          "validation data",
      .min_positional = 1,
      .max_positional = 17,
      .options = with_machine_options(with_swap_options(
          {{"kind", "WORD", "encoder, decoder or cross: what is printed"},
           {"layer", "N", "from 0"},
           {"head", "N", "from 0, or mean; left out: the sharpest, of cross-attention where there is any"},
           {"show", "WORD", "weights, attribution (weight times gradient) or rollout: what is printed"},
           {"terminal", "", "print only; write no files"},
           {"longest", "N", "tokens that are read of an example given by its number (default: 1024)"},
           {"paper", "", "write figures for print too: 84 mm wide, black on white"},
           {"out", "FOLDER", "where the files go (default: RUN/inspect)"},
           checkpoint_option,
           {"through-training", "",
            "the maps that the run kept on the way (--maps-every of train): a page with a slider, and an "
            "animated SVG"},
           {"watch", "", "draw the head anew for each checkpoint that a training writes; Ctrl-C ends it"},
           {"logit-lens", "", "what each layer would predict: a table and a page"},
           {"json", "", "with --logit-lens: the table as one JSON object"}})),
      .run = run_inspect};
}

}  // namespace heed
