// heed evaluate: the test scores of a run.
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/inspect/head_ablation.h"
#include "heed/train/metrics/baseline_scores.h"
#include "heed/train/metrics/bleu_by_length.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/progress/progress.h"
#include "heed/train/report/length_chart.h"
#include "heed/train/report/report.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/tasks/example_provider.h"

namespace heed {
namespace {

/// The number of lengths, in words, that --by-length scores together.
int64_t bucket_words(const ParsedArguments& arguments) {
  const int64_t words = arguments.integer("bucket-words", usual_bucket_words, 1);
  if (arguments.has("bucket-words") && !arguments.has("by-length"))
    fail("--bucket-words goes with --by-length. Add --by-length, or take it out.");
  return words;
}

/// Fails where --by-length is given for a task that writes no sentences.
void refuse_by_length(const ParsedArguments& arguments, const LoadedRun& run, bool writes_sentences) {
  if (!arguments.has("by-length") || writes_sentences) return;
  fail("--by-length is for translators; ", arguments.positional[0], " is a run of the task ",
       run.config.task_name, ". Take it out.");
}

/// Writes the page of the scores by length into the folder of the run, and returns its path.
Path write_length_page(const LoadedRun& run, const std::vector<LengthBucket>& buckets) {
  ReportData page{
      .title = "BLEU by length of the source",
      .subtitle = text(run.folder.path().filename().string(), ", checkpoint of step ", run.checkpoint.step)};
  for (const LengthBucket& one : buckets) {
    page.cards.push_back(
        {.name = to_string(one) + " words",
         .value = picture::fixed(one.bleu, 1),
         .note = text(one.sentences, " sentences, length ratio ", picture::fixed(one.length_ratio, 2))});
  }
  page.charts = {length_chart({length_series("test", buckets)})};
  const Path file = run.folder.path() / "by-length.html";
  io::write_own(file, report_html(page));
  return file;
}

/// Scores the run on its test data, and shows the progress.
Evaluation scored(const LoadedRun& run, Progress& progress) {
  progress.say("test", text("scoring step ", run.checkpoint.step));
  const ProgressScope shown(progress, "test");
  return run.config.task->test(*run.model, run.config.decode);
}

int run_evaluate(const ParsedArguments& arguments) {
  bucket_words(arguments);  // fails for an illegal value before anything is computed
  apply_machine(arguments);
  Progress progress;
  LoadedRun run = load_run(arguments.positional[0], {.checkpoint = arguments.get("checkpoint"),
                                                     .with_data = true,
                                                     .data = other_data(arguments),
                                                     .stride = arguments.get("stride"),
                                                     .swap = swap_of(arguments),
                                                     .progress = &progress});
  apply_decoding(run.config, arguments);
  if (arguments.has("by-length"))  // before the scores are computed, where the task can be asked
    refuse_by_length(arguments, run,
                     num_test_examples(*run.config.task) == 0 ||
                         writes_outputs(*run.config.task, *run.model, run.config.decode));
  const Evaluation evaluation = scored(run, progress);
  refuse_by_length(arguments, run, !evaluation.sentences.empty());
  std::vector<LengthBucket> buckets;
  if (arguments.has("by-length")) buckets = bleu_by_length(evaluation.sentences, bucket_words(arguments));
  const Path page = buckets.empty() ? Path() : write_length_page(run, buckets);
  if (arguments.has("json")) {
    Json out = Json::object({{"run", arguments.positional[0]}, {"step", run.checkpoint.step}});
    if (arguments.has("attention")) out.set("attention", arguments.get("attention"));
    if (arguments.has("cross-attention")) out.set("cross_attention", arguments.get("cross-attention"));
    if (arguments.has("layers")) out.set("layers", arguments.get("layers"));
    for (const auto& [name, value] : evaluation.scores.list) out.set(name, value);
    if (!buckets.empty()) out.set("by_length", to_json(buckets));
    set_baselines(out, run.config.task->baselines());
    io::print_data(out.dump() + "\n");
    return 0;
  }
  io::printf("%s, checkpoint of step %lld\n", arguments.positional[0].c_str(),
             static_cast<long long>(run.checkpoint.step));
  for (const std::string& line : transfer_words(run.transfer)) io::printf("  %s\n", line.c_str());
  std::vector<TableRow> scores;
  for (const auto& [name, value] : evaluation.scores.list)
    scores.push_back({score_name(name), formatted("%.4f", value)});
  io::print(aligned_table(scores, {.indent = 2}));
  for (const std::string& note : evaluation.notes) io::printf("  %s\n", note.c_str());
  if (buckets.empty()) return 0;
  std::vector<TableRow> rows{{"words", "sentences", "BLEU", "length ratio"}};
  for (const LengthBucket& one : buckets) {
    rows.push_back({to_string(one), text(one.sentences), formatted("%.2f", one.bleu),
                    formatted("%.3f", one.length_ratio)});
  }
  io::print("\n" + aligned_table(rows, {.alignment = "lrrr", .indent = 2}));
  io::printf("  page  %s\n", page.c_str());
  return 0;
}

std::string about_test_data() {
  return "Test data are what training never saw. translate: the pairs held out for it. lm, mlm: the text of "
         "--test-path, else all of the validation text, which chose the checkpoint. mnist, lra: the test "
         "files in the folder of --data, else embedded ones. recall: sequences of their own. A file that is "
         "given here is the test as a whole.\n";
}

}  // namespace

Command command::evaluate() {
  return {
      .name = "evaluate",
      .about = "score a run on its test data",
      .positional = "RUN",
      .positional_help = "the folder of a run",
      .min_positional = 1,
      .max_positional = 1,
      .options = with_machine_options(with_decoding_options(with_swap_options(
          {checkpoint_option,
           {"data", "PATH",
            "other data in place of the run's, in the form that heed train --data takes for its task: all of "
            "a file is scored, and of a folder its test files"},
           {"test-path", "FILE", "means --data, as heed train calls the test text of a language model"},
           {"stride", "N", "language models: new tokens in a window; its other tokens are context"},
           {"by-length", "", "translators: BLEU by the words of the source, and a page with the curve"},
           {"bucket-words", "N", "with --by-length: number of lengths that are scored together (default: 5)"},
           {"json", "", "one JSON object"}}))),
      .run = run_evaluate,
      .more = about_test_data};
}

}  // namespace heed
