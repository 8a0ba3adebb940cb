// heed inspect RUN [TEXT] --logit-lens: what each layer of a language model or decoder would predict.
#include "heed/attention/inspect/lens_text.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/commands/inspect_modes.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {

int inspect_logit_lens(const ParsedArguments& arguments) {
  for (const char* option : {"kind", "layer", "head"}) {
    if (arguments.has(option))
      fail("inspect: --", option, " chooses maps, and --logit-lens shows none. Leave it out.");
  }
  apply_machine(arguments);
  const std::string input = inspected_text(arguments);
  LoadedRun run = load_run(arguments.positional[0], arguments.get("checkpoint"), "", input.empty());
  const LensView lens = map_provider(*run.config.task).logit_lens(*run.model, input);
  if (arguments.has("json")) {
    io::print_data(lens_json(lens) + "\n");
    return 0;
  }
  const Path page = inspect_folder(arguments, run.folder.path()) / "logit-lens.html";
  io::write_own(page, lens_page(lens, run.folder.path().filename().string()));
  io::print(lens.caption + "\n\n");
  io::print_styled(lens_text(lens, terminal_options()));
  io::print(text("\npage  ", page.string(), "\n"));
  return 0;
}

}  // namespace heed
