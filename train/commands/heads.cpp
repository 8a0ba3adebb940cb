// heed heads: measures what each attention head of a run does over its test data.
#include <optional>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/inspect/head_report.h"
#include "heed/train/progress/progress.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/run_inputs.h"

namespace heed {
namespace {

int run_heads(const ParsedArguments& arguments) {
  apply_machine(arguments);
  const int64_t examples = arguments.integer("examples", 2000, 1);
  const int64_t max_tokens = arguments.integer("max-tokens", 1024, 2);
  HeadReportOptions options{.source = {.examples = examples, .max_tokens = max_tokens}};
  if (arguments.has("file")) options.lines = lines_of_file(arguments.get("file"), "--file", examples);
  options.lines.max_tokens = max_tokens;
  Progress progress;
  LoadedRun run = load_run(arguments.positional[0], {.checkpoint = arguments.get("checkpoint"),
                                                     .with_data = true,
                                                     .data = arguments.get("data"),
                                                     .progress = &progress});
  options.phrasebook = is_phrasebook(run.config);
  // A line of --file may be refused, and standard error then holds the error alone.
  if (!arguments.has("file")) progress.say("heads", "looking at every head");
  std::optional<ProgressScope> shown;
  shown.emplace(progress, "heads");
  const HeadReport report = head_report(*run.config.task, *run.model, options);
  Json json = head_report_json(report);
  const Path out = output_folder(arguments, run.folder.path(), "heads");
  const std::string title = run.folder.path().filename().string();
  const std::string subtitle = text(
      "attention heads over ", report.examples, " ", options.lines.texts.empty() ? "test example" : "input",
      report.examples == 1 ? "" : "s", ", checkpoint of step ", run.checkpoint.step);
  Json named = Json::object({{"run", arguments.positional[0]}, {"step", run.checkpoint.step}});
  for (const JsonMember& member : json.members()) named.append(member.key, member.value);
  io::write_own(out / "heads.html", head_report_page(report, title + ": heads", subtitle));
  io::write_own(out / "head-distances.svg", head_distances_svg(report));
  io::write_own(out / "heads.json", named.dump(1) + "\n");
  shown.reset();
  if (arguments.has("json")) {
    io::print_data(named.dump() + "\n");
    return 0;
  }
  io::print(subtitle + "\n\n" + head_report_text(report));
  io::printf("\npage        %s\nnumbers     %s\ndistances   %s\ntime        %.1f s\n",
             (out / "heads.html").c_str(), (out / "heads.json").c_str(), (out / "head-distances.svg").c_str(),
             report.seconds);
  return 0;
}

std::string words_of_roles() {
  return R"(Roles, of heads with at least 8 rows:
  positional      largest weight at one offset in 90 % of rows
  rare words      largest weight on the rarest word in 50 % of the rows that have one
  alignment       10 points above the best single offset
  previous token  weight 0.4 on it in repeated sequences
  induction       weight 0.4 on what followed the same token before, in repeated sequences
  special tokens  half of the weight, 10 points more than of equal weights
  punctuation     half of the weight, 10 points more than of equal weights
  vertical        half of the weight on one column, 10 points more than of equal weights
  uniform         95 % of the entropy of equal weights
docs/tutorials/looking-at-heads.md has an example.
)";
}

}  // namespace

Command command::heads() {
  return {.name = "heads",
          .about = "measure what each attention head does over the test data",
          .positional = "RUN",
          .positional_help = "the folder of a run",
          .min_positional = 1,
          .max_positional = 1,
          .options = with_machine_options(
              {{"examples", "N", "the first test examples (default: 2000)"},
               {"file", "FILE", "inputs in place of test examples, one a line, as heed inspect takes them"},
               {"data", "PATH", "other data in place of the run's; of a file all is looked at"},
               {"max-tokens", "N", "longer inputs are cut to so many tokens (default: 1024)"},
               checkpoint_option,
               {"out", "FOLDER", "where the files go (default: RUN/heads)"},
               {"json", "", "one JSON object in place of the table"}}),
          .run = run_heads,
          .more = words_of_roles};
}

}  // namespace heed
