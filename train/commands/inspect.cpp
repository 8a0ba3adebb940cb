// heed inspect: the attention maps of one input.
#include "heed/attention/inspect/rollout.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/commands/inspect_modes.h"
#include "heed/train/commands/inspect_output.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {
namespace {

constexpr int64_t longest_example = 1024;  // a map has the square of this many numbers for every head

int run_inspect(const ParsedArguments& arguments) {
  if (const std::optional<int> code = run_inspect_mode(arguments)) return *code;
  apply_machine(arguments);
  LoadedRun run = load_run(arguments.positional[0], arguments.get("checkpoint"), "",
                           arguments.positional.size() < 2, "", swap_of(arguments));
  std::string caption;
  const std::string input = arguments.positional.size() > 1 ? arguments.positional[1] : "";
  const bool terminal = arguments.has("terminal");
  for (const char* option : {"out", "paper"})
    if (terminal && arguments.has(option))
      fail("--", option, " says what to write, and --terminal that nothing is written. Leave one out.");
  if (arguments.has("longest") && arguments.integer("longest", 0) < 1)
    fail("--longest = ", arguments.integer("longest", 0), ". It must be at least 1.");
  const MapParts parts{.factors = !terminal,
                       .attribution = !terminal || arguments.get("show") == "attribution",
                       .longest = arguments.integer("longest", longest_example)};
  std::vector<MapView> maps = map_provider(*run.config.task).maps_with(*run.model, input, parts, caption);
  if (maps.empty())
    fail(
        "inspect: this run has no maps: its attentions make none, or it has none (--wiring sutskever or "
        "cho).");
  add_rollout(maps);
  const std::string chosen = chosen_map_text(maps, arguments);
  io::print(caption + "\n\n");
  io::print_styled(chosen);
  if (terminal) return 0;
  const Path out = arguments.get("out", (run.folder.path() / "inspect").string());
  if (arguments.has("out")) {
    io::make_directories(out);
  } else {
    io::make_directory(out);  // in a folder that may come from elsewhere: no link
  }
  write_map_files(out, maps, run.folder.path().filename().string(), caption, arguments.has("paper"));
  io::printf("\npage        %s\nmatrices    %s, and one .npy file for each layer\n",
             (out / "maps.html").c_str(), (out / "maps.safetensors").c_str());
  if (arguments.has("paper"))
    io::printf("for print   %s, and one of every other head\n", (out / "*-paper.svg").c_str());
  return 0;
}

}  // namespace

Command command::inspect() {
  std::vector<CommandOption> options{
      {"kind", "WORD", "encoder, decoder or cross: what is printed"},
      {"layer", "N", "from 0"},
      {"head", "N", "from 0, or mean; left out: the sharpest, of cross-attention where there is any"},
      {"show", "WORD", "weights, attribution (weight times gradient) or rollout: what is printed"},
      {"terminal", "", "print only; write no files"},
      {"longest", "N", "tokens that are read of an example given by its number (default: 1024)"},
      {"paper", "", "write figures for print too: 84 mm wide, black on white"},
      {"out", "FOLDER", "where the files go (default: RUN/inspect)"},
      {"checkpoint", "WHICH", "best, last or a step (default: best)"}};
  for (const CommandOption& one : inspect_mode_options()) options.push_back(one);
  for (const CommandOption& one : swap_options()) options.push_back(one);
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
