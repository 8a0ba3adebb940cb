// heed show: shows the settings and the model of a preset or run, without training.
#include "heed/core/io/files.h"
#include "heed/core/io/table_text.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/session/dry_run.h"
#include "heed/train/session/loaded_run.h"

namespace heed {
namespace {

int run_show(const ParsedArguments& arguments) {
  const Path path = arguments.positional[0];
  if (io::is_directory(path)) {
    refuse_others(arguments, "show", {"checkpoint", "model"},
                  text("does not go with a run, whose settings are given. Give ", path.string(),
                       "/config.toml instead of the folder to see what other settings would take."));
    LoadedRun run = load_run(path, {.checkpoint = arguments.get("checkpoint")});
    io::print_data(to_toml(run.config));
    io::printf("\n# model of step %lld\n%s", static_cast<long long>(run.checkpoint.step),
               summary(*run.model).c_str());
    return 0;
  }
  if (arguments.has("checkpoint"))
    fail("show: --checkpoint chooses among the checkpoints of a run, and ", path.string(),
         " is none. Leave it out.");
  Config config = make_config(named_preset(arguments));
  apply_settings(config, arguments);
  config.check();
  if (arguments.has("origin")) {
    std::vector<TableRow> rows;
    for (const OptionText& option : options_of(config)) {
      const auto from = config.origin.find(option.name);
      const std::string otherwise = option.follows.empty() ? "default" : "follows " + option.follows;
      rows.push_back(
          {option.name, option.value, from == config.origin.end() ? otherwise : from->second.words});
    }
    io::print(aligned_table(rows));
    return 0;
  }
  io::print_data(to_toml(config));
  print_estimate(config, arguments);
  if (!arguments.has("model")) return 0;
  config.task->load(config, {}, [](const std::string&) {});
  Rng rng(static_cast<uint64_t>(config.train.seed));
  io::printf("\n# model\n%s", summary(*new_model(config, rng)).c_str());
  return 0;
}

}  // namespace

Command command::show() {
  return {.name = "show",
          .about = "show the settings of a preset, file or run, and its memory and time",
          .positional = "PRESET|FILE|RUN",
          .positional_help = "a preset (heed list presets), a .toml file of settings, or the folder of a run",
          .min_positional = 1,
          .max_positional = 1,
          .options = {recipe_option,
                      {"origin", "", "where each value comes from"},
                      {"model", "", "count the parameters part by part too"},
                      {"checkpoint", "WHICH", "checkpoint of a run: best, last or a step"}},
          .settings = true,
          .run = run_show,
          .several_processes = true};
}

}  // namespace heed
