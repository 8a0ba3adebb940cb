// heed interchange: finds how trained models recall, by interchange interventions.
#include "heed/train/inspect/interchange.h"
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/core/io/terminal.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/progress/progress.h"
#include "heed/train/session/loaded_run.h"

namespace heed {
namespace {

/// The run of one row.
struct InterchangedRun {
  std::string run;        ///< folder
  std::string attention;  ///< its attention
  int64_t step;           ///< step of the checkpoint
  InterchangeReport report;
};

InterchangedRun interchanged(const std::string& folder, const ParsedArguments& arguments,
                             Progress& progress) {
  LoadedRun run =
      load_run(folder, {.checkpoint = arguments.get("checkpoint"), .with_data = true, .progress = &progress});
  const ProgressScope shown(progress, "interchange");
  return {.run = folder,
          .attention = run.config.attention.decoder,
          .step = run.checkpoint.step,
          .report = interchange(*run.config.task, *run.model, arguments.integer("examples", 500, 1))};
}

/// The number of a table's cell.
std::string share(double value) { return formatted("%.3f", value); }

/// A row for each run: its mechanism, and what decides in the block that answers.
std::string runs_text(const std::vector<InterchangedRun>& runs) {
  std::vector<TableRow> rows{
      {"run", "attention", "step", "right", "mechanism", "block", "key", "value", "value, input"}};
  for (const auto& [run, attention, step, report] : runs) {
    const auto other = [&](StateKind kind, ExchangePlace place) {
      return share(report.other(kind, report.answered_by, place));
    };
    rows.push_back(
        {terminal_word(run), terminal_word(attention), text(step),
         share(static_cast<double>(report.used) / static_cast<double>(report.examples)),
         to_string(report.mechanism), text(report.answered_by), other(StateKind::stream, ExchangePlace::key),
         other(StateKind::stream, ExchangePlace::value), other(StateKind::input, ExchangePlace::value)});
  }
  return aligned_table(rows, {.alignment = "llrrlrrrr"});
}

int run_interchange(const ParsedArguments& arguments) {
  apply_machine(arguments);
  Progress progress;
  progress.quiet = arguments.has("json");
  std::vector<InterchangedRun> runs;
  for (const std::string& folder : arguments.positional)
    runs.push_back(interchanged(folder, arguments, progress));
  if (arguments.has("json")) {
    std::vector<Json> list;
    for (const auto& [run, attention, step, report] : runs) {
      Json json = Json::object({{"run", run}, {"attention", attention}, {"step", step}});
      const Json results = interchange_json(report);
      for (const JsonMember& member : results.members()) json.append(member.key, member.value);
      list.push_back(std::move(json));
    }
    io::print_data(Json(std::move(list)).dump() + "\n");
    return 0;
  }
  io::print(runs.size() == 1 ? interchange_text(runs[0].report) : runs_text(runs));
  return 0;
}

std::string explanation_of_mechanisms() {
  return "Two keys of a sequence are swapped, so that the same question has another answer. Then a state "
         "of "
         "the model, at the places of the keys, of their values or of the question, is replaced by what it "
         "is "
         "on the other sequence: where the answer follows, that state decides. induction: the pair is stored "
         "where the value stands; convolution: so by the short convolution of the layer that answers; "
         "lookup: "
         "key and value meet at the question; neither: no place alone decides.\n";
}

}  // namespace

Command command::interchange() {
  return {.name = "interchange",
          .about = "find how models recall: by induction, by lookup at the end, or neither",
          .positional = "RUN...",
          .positional_help = "folders of runs of mqar, mad-recall or mad-noisy",
          .min_positional = 1,
          .max_positional = 1000,
          .options = with_machine_options(
              {{"examples", "N", "the first test sequences (default: 500)"},
               checkpoint_option,
               {"json", "", "a list with every number of each run, in place of the table"}}),
          .run = run_interchange,
          .more = explanation_of_mechanisms};
}

}  // namespace heed
