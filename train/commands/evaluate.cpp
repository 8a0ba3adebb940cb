// heed evaluate: the test scores of a run.
#include <cstdio>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/metrics/baseline_scores.h"
#include "heed/train/metrics/bleu_by_length.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/progress/progress.h"
#include "heed/train/report/length_chart.h"

namespace heed {
namespace {

int64_t bucket_words(const ParsedArguments& arguments) {
  const int64_t words = arguments.integer("bucket-words", usual_bucket_words);
  if (words < 1 || words > max_integer)
    fail("--bucket-words = ", words, ". It must be at least 1 word, such as 5.");
  if (arguments.has("bucket-words") && !arguments.has("by-length"))
    fail("--bucket-words is of --by-length. Add --by-length, or take it out.");
  return words;
}

/// The buckets that --by-length and --bucket-words ask for; none where nothing does.
std::vector<LengthBucket> buckets_of(const ParsedArguments& arguments, const LoadedRun& run,
                                     const Evaluation& evaluation) {
  if (!arguments.has("by-length")) return {};
  if (evaluation.sentences.empty()) {
    fail("--by-length is for translators; ", arguments.positional[0], " is a run of the task ",
         run.config.task_name, ". Take it out.");
  }
  return bleu_by_length(evaluation.sentences, bucket_words(arguments));
}

/// Writes the page of the buckets into the folder of the run; its path.
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

/// Scores the run, with progress.
Evaluation scored(const LoadedRun& run, Progress& progress) {
  progress.say("test", text("scoring step ", run.checkpoint.step));
  const ProgressScope shown(progress, "test");
  return run.config.task->test(*run.model, run.config.decode);
}

int run_evaluate(const ParsedArguments& arguments) {
  bucket_words(arguments);  // a mistake in it is told before the work
  apply_machine(arguments);
  Progress progress;
  LoadedRun run = load_run(arguments.positional[0], arguments.get("checkpoint"), other_data(arguments), true,
                           arguments.get("stride"), swap_of(arguments), OtherData::test, &progress);
  apply_decoding(run.config, arguments);
  const Evaluation evaluation = scored(run, progress);
  const std::vector<LengthBucket> buckets = buckets_of(arguments, run, evaluation);
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
  for (const auto& [name, value] : evaluation.scores.list)
    io::printf("  %-15s %.4f\n", score_name(name).c_str(), value);
  for (const std::string& note : evaluation.notes) io::printf("  %s\n", note.c_str());
  if (buckets.empty()) return 0;
  io::printf("\n  %-10s %10s %8s %13s\n", "words", "sentences", "BLEU", "length ratio");
  for (const LengthBucket& one : buckets) {
    io::printf("  %-10s %10lld %8.2f %13.3f\n", to_string(one).c_str(), static_cast<long long>(one.sentences),
               one.bleu, one.length_ratio);
  }
  io::printf("  page       %s\n", page.c_str());
  return 0;
}

std::string test_data() {
  return "Test data are what training never saw. translate: the pairs held out for it. lm: the text of "
         "--test-path, else all of the\nvalidation text, which chose the checkpoint. mnist, lra: the test "
         "files in the folder of --data, else embedded ones. recall:\nsequences of their own. A file that is "
         "given here is the test as a whole.";
}

}  // namespace

Command command::evaluate() {
  std::vector<CommandOption> options{
      {"checkpoint", "WHICH", "best, last or a step (default: best)"},
      {"data", "PATH",
       "other data in place of the run's, in the form that heed train --data takes for its task: all "
       "of a file is scored, and of a folder its test files"},
      {"test-path", "FILE", "means --data, as heed train calls the test text of a language model"},
      {"stride", "N", "of language models: new tokens a window, the others of it are context"},
      {"by-length", "", "of translators: BLEU by the words of the source, and a page with the curve"},
      {"bucket-words", "N", "of --by-length: lengths that are scored together (default: 5)"}};
  for (const CommandOption& one : swap_options()) options.push_back(one);
  options.push_back({"json", "", "one JSON object"});
  return {"evaluate",
          "score a run on its test data",
          "RUN",
          "the folder of a run",
          1,
          1,
          with_machine(with_decoding(std::move(options))),
          false,
          run_evaluate,
          test_data};
}

}  // namespace heed
