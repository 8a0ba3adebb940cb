// heed inspect RUN --through-training: the maps that a run kept in training.
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/table_text.h"
#include "heed/train/commands/inspect_modes.h"
#include "heed/train/report/training_page.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/session/run_inputs.h"

namespace heed {
namespace {

/// The entropy of each head of the first kind shown, at five steps from the first to the last.
std::string entropies_over_steps(const TrainingMaps& training) {
  const std::vector<MapSnapshot>& frames = training.frames;
  const std::string kind = frames.back().maps[first_head(frames.back().maps).map].kind;
  std::vector<size_t> columns;
  for (size_t i = 0; i < 5; ++i) {
    const size_t at = i * (frames.size() - 1) / 4;
    if (columns.empty() || columns.back() != at) columns.push_back(at);
  }
  std::vector<TableRow> rows{{"entropy at step"}};
  for (const size_t at : columns) rows[0].push_back(text(frames[at].step));
  rows[0].emplace_back("of uniform");
  for (size_t map = 0; map < frames.back().maps.size(); ++map) {
    const MapView& of = frames.back().maps[map];
    if (of.kind != kind) continue;
    for (size_t head = 0; head < static_cast<size_t>(of.heads); ++head) {
      rows.push_back({text(of.kind, " ", of.layer, ", head ", head)});
      for (const size_t at : columns)
        rows.back().push_back(picture::fixed(frames[at].heads[map][head].entropy, 2));
      rows.back().push_back(picture::fixed(frames.back().heads[map][head].uniform_entropy, 2));
    }
  }
  return aligned_table(rows, {.alignment = "lrrrrrr", .indent = 2});
}

}  // namespace

int inspect_through_training(const ParsedArguments& arguments) {
  if (arguments.positional.size() > 1) {
    fail("inspect: --through-training shows the input that the training was given by --maps-of. Leave '",
         shown(arguments.positional[1]), "' out.");
  }
  refuse_inspect_options(arguments, {"checkpoint", "kind", "layer", "head"},
                         "does not go with --through-training, which shows all kept steps.");
  const RunFolder folder = RunFolder::look(arguments.positional[0]);
  const TrainingMaps training = read_training_maps(folder.path());
  const Path out = output_folder(arguments, folder.path(), "inspect");
  const Path page = out / "through-training.html", film = out / "through-training.svg";
  io::write_own(page, training_page(training));
  io::write_own(film, training_svg(training));
  io::print(text(training.frames.back().caption, "\n\n", training.frames.size(), " steps, ",
                 training.frames.front().step, " to ", training.frames.back().step, "\n",
                 entropies_over_steps(training), "\npage       ", page.string(), "\nanimation  ",
                 film.string(), "\n"));
  return 0;
}

}  // namespace heed
