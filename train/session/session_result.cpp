// Scores and reports what a session has trained.
#include "heed/train/session/session_result.h"

#include <algorithm>
#include <cmath>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/version.h"
#include "heed/train/experiments/preset_diff.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/loop/overfit.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/metrics/baseline_scores.h"
#include "heed/train/metrics/bleu_by_length.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/report/length_chart.h"
#include "heed/train/report/run_charts.h"
#include "heed/train/run/program_name.h"
#include "heed/train/session/session_manifest.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {
namespace {

std::string score_line(const Scores& scores) {
  std::string out;
  for (const auto& [name, value] : scores.list)
    out += (out.empty() ? "" : "  ") + score_name(name) + " " + formatted("%.4g", value);
  return out;
}

ReportCard pretraining_card(const Json& metadata) {
  return {.name = "pre-training",
          .value = text(metadata.at("steps_taken").integer(), " steps"),
          .note = text(metadata.at("objective").text(), ", ", formatted("%.4g", metadata.at("loss").real()),
                       " nats a token on held-out data")};
}

/// The estimate for as many steps and validations as this session had.
Estimate estimate_of_session(const Trainer& trainer, const TrainResult& outcome) {
  Estimate expected = trainer.estimate();
  expected.seconds *= static_cast<double>(outcome.steps_taken) / static_cast<double>(trainer.total_steps());
  expected.validations = outcome.validations;
  return expected;
}

/// The measured memory and time of the training of this session, and the errors of their estimates.
Json measured_cost(const Trainer& trainer, const TrainResult& outcome) {
  Json took = measured_cost_json(estimate_of_session(trainer, outcome), outcome.step_seconds,
                                 outcome.validation_seconds);
  took.set("steps", outcome.steps_taken);
  return took;
}

/// Prints the memory and time that the session used, beside their estimates where these were wrong.
void print_measured_cost(Progress& progress, const Json& took, const TrainResult& outcome) {
  progress.say(
      "memory",
      text(with_estimate(
               static_cast<double>(took.at("memory_bytes").integer()), took.at("memory_estimate_off").real(),
               [](double bytes) { return bytes_text(static_cast<int64_t>(bytes)) + " at the peak"; }),
           "; tensors ", bytes_text(took.at("tensor_bytes").integer()), place_of_tensors()));
  progress.say("time",
               with_estimate(took.at("seconds").real(), took.at("time_estimate_off").real(), clock_text));
  progress.say(
      "", text(clock_text(outcome.step_seconds), " in steps, ", clock_text(outcome.validation_seconds),
               " in validations, ", clock_text(took.at("seconds_of_test").real()), " in test and report"));
}

/// Writes report.html and samples.txt.
void write_report(Config& config, const RunFolder& folder, Module& model, const Evaluation& evaluation,
                  const TrainResult& outcome, Progress& progress) {
  ProgressScope shown(progress, "report");
  const std::vector<MetricSeries> metrics = read_metrics(folder.metrics());
  write_metrics_csv(folder.metrics(), folder.metrics_table());
  ReportData report;
  report.title = folder.path().filename().string();
  report.subtitle = text("heed ", HEED_VERSION, ", task ", config.task_name,
                         config.preset.empty() ? "" : ", preset " + config.preset);
  for (const auto& [name, value] : evaluation.scores.list) {
    const std::vector<std::string> known = baseline_words(config.task->baselines(), name);
    report.cards.push_back(
        {.name = score_name(name) + (name == "loss" ? ", nats" : ""),
         .value = formatted("%.4g", value),
         .note = text("best checkpoint, held-out data", known.empty() ? "" : "; baselines:"),
         .beside = known});
  }
  report.cards.push_back(
      {.name = "best step", .value = text(outcome.best_step), .note = text("of ", outcome.step)});
  report.cards.push_back(
      {.name = "parameters", .value = short_number(static_cast<double>(count_parameters(model)))});
  report.cards.push_back(
      {.name = "training",
       .value = clock_text(outcome.seconds),
       .note = text(threads(), threads() == 1 ? " thread" : " threads", ", OpenBLAS ", blas_core())});
  report.cards.push_back({.name = "seed", .value = text(config.train.seed)});
  const auto mark = static_cast<double>(outcome.best_step);
  report.charts = {
      chart_of(metrics, "Loss, nats",
               {{"loss", "training"}, {"valid_loss", "validation"}, {"valid_estimate", "estimate"}}, mark),
      chart_of(metrics, "Learning rate", {{"learning_rate", "learning rate"}}, mark),
      chart_of(metrics, "Gradient norm", {{"gradient_norm", "gradient norm"}}, mark),
      chart_of(metrics, "Speed", {{"tokens_per_second", "tokens/s"}, {"examples_per_second", "examples/s"}},
               mark)};
  if (pretrained(folder.path())) {
    report.cards.push_back(pretraining_card(pretraining_metadata(config, folder.path())));
    report.charts.push_back(chart_of(read_metrics(pretraining_folder(folder.path()) / "metrics.jsonl"),
                                     "Loss of pre-training, nats a token",
                                     {{"loss", "training"}, {"valid_loss", "validation"}}, NAN));
  }
  for (Chart& chart : score_charts(metrics, mark)) report.charts.push_back(std::move(chart));
  if (const std::vector<LengthBucket> buckets = bleu_by_length(evaluation.sentences); buckets.size() > 1)
    report.charts.push_back(length_chart({length_series("test", buckets)}));
  report.samples = evaluation.samples;
  report.confusion = evaluation.confusion;
  // The run is trained and scored by now: it does not fail where its maps do.
  try {
    report.maps = map_provider(*config.task).maps(model, "", report.maps_caption);
  } catch (const Error& error) {
    report.maps_caption = text("No maps: ", error.what());
    progress.say("", report.maps_caption);
  }
  report.settings = settings_of(config);
  io::write_own(folder.report(), report_html(report));
  std::string samples;
  for (const ReportSample& sample : evaluation.samples) {
    samples += "source      " + sample.source + "\nreference   " + sample.reference + "\nhypothesis  " +
               sample.hypothesis + "\n\n";
  }
  io::write_own(folder.samples(), samples);
}

/// Prints why a run ended before its last step, and the command that makes it longer: more steps do nothing
/// for a run that ran out of time or patience, or reached its score. `run` is null in pre-training, which the
/// run follows by itself.
void print_next_command(Progress& progress, const TrainOptions& train, const Trainer& trainer,
                        const TrainResult& outcome, const Path* run) {
  const std::string where = text(" at step ", outcome.step, " of ", trainer.total_steps());
  if (outcome.early && trainer.patience_exhausted()) {
    progress.say("patience", text(train.patience, " validations without improvement: stopped", where));
  } else if (outcome.early && trainer.score_reached()) {
    progress.say("score", text("as good as train.stop_score = ", train.stop_score, ": stopped", where));
  } else if (outcome.early) {
    progress.say("time limit", text(train.time_limit, " seconds are over: stopped", where));
  }
  if (run == nullptr) return;
  std::string more;
  if (!outcome.early) more += text(" --steps ", 2 * outcome.step);
  if (trainer.patience_exhausted()) {
    more += text(" --patience ", 2 * train.patience);
  } else if (trainer.score_reached()) {
    more += " --stop-score 0";
  } else if (outcome.early) {
    more += text(" --time-limit ",
                 static_cast<int64_t>(std::ceil(2 * std::max(train.time_limit, outcome.seconds))));
  }
  progress.say("next", text(program_name(), " resume ", run->string(), more));
}

/// Says, by the first and last logged loss, whether a run on the same few batches has learned them.
std::string describe_overfit(const RunFolder& folder) {
  for (const MetricSeries& one : read_metrics(folder.metrics())) {
    if (one.name == "loss" && !one.values.empty())
      return overfit_verdict(one.values.front(), one.values.back());
  }
  return "no step has given a loss";
}

/// Scores the test split, with progress under this label. `with_samples`: also what the model writes.
Evaluation tested(const Config& config, Module& model, Progress& progress, const char* label,
                  bool with_samples) {
  const ProgressScope shown(progress, label);
  Evaluation out = config.task->test(model, config.decode);
  if (with_samples) config.task->add_samples(model, out);
  return out;
}

}  // namespace

void show_result(Config& config, const RunFolder& folder, Trainer& trainer, const TrainResult& outcome,
                 Progress& progress, const Path* resumable) {
  std::string baselines;
  for (const auto& [name, value] : outcome.best.list) {
    for (const std::string& words : baseline_words(config.task->baselines(), name))
      baselines += (baselines.empty() ? "; baselines on the test: " : ", ") + words;
  }
  if (config.train.overfit_batches > 0) progress.say("overfit", describe_overfit(folder));
  progress.say("best", score_line(outcome.best) + text(" at step ", outcome.best_step, baselines));
  // The checkpoint is read back from the disk, so that the stored weights are those that are scored.
  const Checkpoint best =
      open_checkpoint(folder.path(), best_step(folder.path()) ? "best" : "last", HeldFiles::all_but_tensors);
  // The cost is recorded before the test is scored, which is no part of training: if the run is stopped while
  // it is scored, the resumed session takes no step and measures nothing.
  Json took = measured_cost(trainer, outcome);
  const bool stepped = outcome.steps_taken > 0;
  if (stepped) note_what_it_took(folder, took);
  const double began = seconds_now();
  std::vector<std::pair<std::string, double>> last_scores;
  if (config.task->scores_last() && best.step != outcome.step)
    last_scores = tested(config, trainer.model(), progress, "last step", /*with_samples=*/false).scores.list;
  load(trainer.model(), best.path("model.safetensors"));
  const Evaluation evaluation = tested(config, trainer.model(), progress, "test", /*with_samples=*/true);
  progress.say("test", score_line(evaluation.scores));
  for (const std::string& note : evaluation.notes) progress.say("", note);
  if (!last_scores.empty()) progress.say("last step", score_line({.list = last_scores}));
  constexpr size_t max_samples = 3;
  for (size_t i = 0; i < std::min(evaluation.samples.size(), max_samples); ++i)
    progress.say("sample", evaluation.samples[i].source + "  \u2192  " + evaluation.samples[i].hypothesis);
  write_report(config, folder, trainer.model(), evaluation, outcome, progress);
  if (stepped) {
    Estimate expected = estimate_of_session(trainer, outcome);
    expected.tests = last_scores.empty() ? 1 : 2;
    set_measured_times(took, expected, outcome.step_seconds, outcome.validation_seconds,
                       seconds_now() - began);
    note_what_it_took(folder, took);
    print_measured_cost(progress, took, outcome);
  }
  // scores.json is written last of all files: where it exists, the run is complete.
  Json scores = Json::object({{"step", best.step}, {"of", outcome.step}});
  if (evaluation.confusion) scores.set("examples", evaluation.confusion->total());
  for (const auto& [name, value] : evaluation.scores.list) scores.set(name, value);
  for (const auto& [name, value] : last_scores) scores.set("last_" + name, value);
  if (!evaluation.sentences.empty()) scores.set("by_length", to_json(bleu_by_length(evaluation.sentences)));
  set_baselines(scores, config.task->baselines());
  io::write_own(folder.path() / "scores.json", scores.dump(1) + "\n");
  progress.say("report", folder.report().string());
  print_next_command(progress, config.train, trainer, outcome, resumable);
}

}  // namespace heed
