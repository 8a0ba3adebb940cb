// One session of a run.
#include "heed/train/session/run_session.h"

#include <algorithm>
#include <cmath>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/isa.h"
#include "heed/core/memory/storage.h"
#include "heed/core/parallel/blas.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/version.h"
#include "heed/train/session/attention_words.h"
#include "heed/train/session/given_weights.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/resume_data_check.h"
#include "heed/train/session/session_data.h"
#include "heed/train/session/session_manifest.h"
#include "heed/train/session/session_maps.h"
#include "heed/train/distributed/processes.h"
#include "heed/train/experiments/preset_diff.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/loop/overfit.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/loop/step_trace.h"
#include "heed/train/metrics/baseline_scores.h"
#include "heed/train/metrics/bleu_by_length.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/progress/progress.h"
#include "heed/train/report/length_chart.h"
#include "heed/train/report/run_charts.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/resume_point.h"
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

/// Whether the scores of a run of so many steps are already there.
bool scored(const RunFolder& folder, int64_t steps) {
  const Path path = folder.path() / "scores.json";
  if (!io::exists(path)) return false;
  const Json scores = parse_json(io::read(path), path.string());
  const Json* of = scores.find("of");
  return of != nullptr && of->is_integer() && of->integer() == steps;
}

void print_head(Progress& progress, Config& config, Trainer& trainer, const RunFolder& folder,
                const ProcessGroup& group) {
  if (group.size() > 1) {
    const TrainOptions& train = config.train;
    const std::string batch = train.batch_size > 0 ? text(train.batch_size, " examples")
                                                   : text(train.batch_tokens, " target tokens");
    progress.say("processes", text(group.size(), ", which share each batch of ", batch));
  }
  progress.say("device", text(default_device, ", ", threads(), " threads, kernels ", to_string(isa()),
                              ", OpenBLAS ", blas_core(), ", seed ", config.train.seed));
  const std::string attention = attention_words(config, trainer.model());
  progress.say("model", text(short_number(static_cast<double>(count_parameters(trainer.model()))),
                             " parameters", attention.empty() ? "" : ", " + attention));
  if (const std::string changed = changed_words(config); !changed.empty()) progress.say("changed", changed);
  progress.say("schedule",
               text(trainer.total_steps(), " steps",
                    config.train.pretrain != Pretrain::none
                        ? text(" after ", config.train.pretrain_steps, " of pre-training")
                        : std::string(),
                    trainer.step() > 0 ? text(", resumed at step ", trainer.step()) : std::string()));
  for (const auto& [label, words] : estimate_lines(
           trainer.estimate_of_rest(), trainer.total_steps() - trainer.step(), trainer.step() > 0)) {
    if (label == "memory" || label == "time") progress.say(label, words);
  }
  progress.say("run folder", folder.path().string());
}

/// The estimate of as many steps and validations as this session had.
Estimate estimate_of_session(const Trainer& trainer, const TrainResult& outcome) {
  Estimate expected = trainer.estimate();
  expected.seconds *= static_cast<double>(outcome.steps_taken) / static_cast<double>(trainer.total_steps());
  expected.validations = outcome.validations;
  return expected;
}

/// Memory and time that training took until now, and how far their estimates were off.
Json what_it_took(const Trainer& trainer, const TrainResult& outcome) {
  Json took = measured_cost_json(estimate_of_session(trainer, outcome), outcome.step_seconds,
                                 outcome.validation_seconds);
  took.set("steps", outcome.steps_taken);
  return took;
}

/// Says what it took, and what the estimate was where it misled.
void tell_what_it_took(Progress& progress, const Json& took, const TrainResult& outcome) {
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

/// Writes report.html from what the folder holds and the model as it is.
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
      chart_of(metrics, "Speed", {{"tokens_per_second", "tokens/s"}}, mark)};
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
  // The run is trained and scored by now: a picture that cannot be had does not make it a failure.
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

/// Why a run ended before its last step, and what makes it longer: more steps do nothing for one that ran out
/// of time or patience. `run` is null where this is a part of one, which goes on by itself.
void tell_what_is_next(Progress& progress, const TrainOptions& train, const Trainer& trainer,
                       const TrainResult& outcome, const Path* run) {
  const std::string where = text(" at step ", outcome.step, " of ", trainer.total_steps());
  if (outcome.early && trainer.patience_exhausted()) {
    progress.say("patience", text(train.patience, " validations without improvement: stopped", where));
  } else if (outcome.early) {
    progress.say("time limit", text(train.time_limit, " seconds are over: stopped", where));
  }
  if (run == nullptr) return;
  std::string more;
  if (!outcome.early) more += text(" --steps ", 2 * outcome.step);
  if (trainer.patience_exhausted()) {
    more += text(" --patience ", 2 * train.patience);
  } else if (outcome.early) {
    more += text(" --time-limit ",
                 static_cast<int64_t>(std::ceil(2 * std::max(train.time_limit, outcome.seconds))));
  }
  progress.say("next", text(program_name(), " resume ", run->string(), more));
}

/// Whether a run on the same few batches has learned them, by its first and last logged loss.
std::string learned_words(const RunFolder& folder) {
  for (const MetricSeries& one : read_metrics(folder.metrics())) {
    if (one.name == "loss" && !one.values.empty())
      return overfit_verdict(one.values.front(), one.values.back());
  }
  return "no step has given a loss";
}

/// The scores of the test split, with progress under this label.
Evaluation tested(const Config& config, Module& model, Progress& progress, const char* label) {
  const ProgressScope shown(progress, label);
  return config.task->test(model, config.decode);
}

/// The end of a run: the best checkpoint is scored and reported. `resumable` is the run that people resume;
/// null where there is none.
void show_result(Config& config, const RunFolder& folder, Trainer& trainer, const TrainResult& outcome,
                 Progress& progress, const Path* resumable) {
  std::string known;
  for (const auto& [name, value] : outcome.best.list) {
    for (const std::string& words : baseline_words(config.task->baselines(), name))
      known += (known.empty() ? "; baselines on the test: " : ", ") + words;
  }
  if (config.train.overfit_batches > 0) progress.say("overfit", learned_words(folder));
  progress.say("best", score_line(outcome.best) + text(" at step ", outcome.best_step, known));
  // The checkpoint that is scored is read back from the disk: what is reported is what is kept.
  const Checkpoint best = open_checkpoint(folder.path(), best_step(folder.path()) ? "best" : "last");
  // Before anything else is computed, since maps and samples of text are no part of training, and written at
  // once: who is stopped while the test is scored takes no step when the run is resumed.
  Json took = what_it_took(trainer, outcome);
  const bool stepped = outcome.steps_taken > 0;
  if (stepped) note_what_it_took(folder, took);
  const double began = seconds_now();
  std::vector<std::pair<std::string, double>> of_last;
  if (config.task->scores_last() && best.step != outcome.step)
    of_last = tested(config, trainer.model(), progress, "last step").scores.list;
  load_bytes(trainer.model(), best.file("model.safetensors"), (best.folder / "model.safetensors").string());
  const Evaluation evaluation = tested(config, trainer.model(), progress, "test");
  progress.say("test", score_line(evaluation.scores));
  for (const std::string& note : evaluation.notes) progress.say("", note);
  if (!of_last.empty()) progress.say("last step", score_line({.list = of_last}));
  for (size_t i = 0; i < std::min<size_t>(evaluation.samples.size(), 3); ++i)
    progress.say("sample", evaluation.samples[i].source + "  \u2192  " + evaluation.samples[i].hypothesis);
  write_report(config, folder, trainer.model(), evaluation, outcome, progress);
  if (stepped) {
    Estimate expected = estimate_of_session(trainer, outcome);
    expected.tests = of_last.empty() ? 1 : 2;
    set_measured_times(took, expected, outcome.step_seconds, outcome.validation_seconds,
                       seconds_now() - began);
    note_what_it_took(folder, took);
    tell_what_it_took(progress, took, outcome);
  }
  // Last of all files: where it is there, nothing else is missing.
  Json scores = Json::object({{"step", best.step}, {"of", outcome.step}});
  if (evaluation.confusion) scores.set("examples", evaluation.confusion->total());
  for (const auto& [name, value] : evaluation.scores.list) scores.set(name, value);
  for (const auto& [name, value] : of_last) scores.set("last_" + name, value);
  if (!evaluation.sentences.empty()) scores.set("by_length", to_json(bleu_by_length(evaluation.sentences)));
  set_baselines(scores, config.task->baselines());
  io::write_own(folder.path() / "scores.json", scores.dump(1) + "\n");
  progress.say("report", folder.report().string());
  tell_what_is_next(progress, config.train, trainer, outcome, resumable);
}

/// train_in() without what comes before, in a folder of this session's run.
int train_one(Opening& opening, const ParsedArguments& arguments, ProcessGroup& group, const Path& whole) {
  Config& config = opening.config;
  RunFolder& folder = opening.folder;
  const std::optional<Checkpoint>& resume = opening.from;
  const bool is_main = group.is_main();
  Progress progress;
  progress.quiet = !is_main || arguments.has("quiet");
  rounding_of(config.train.precision);  // refuses before anything is read
  load_data(config, resume ? &*resume : opening.initial ? &*opening.initial : nullptr, progress, group);
  const int64_t sharing = local_ranks(group).count;  // the machine's memory
  std::optional<StepTrace> trace;                    // before the trainer, which calls it
  if (arguments.has("trace") && whole == folder.path()) trace.emplace(arguments.get("trace"));
  std::optional<MapSnapshotCallback> maps;
  std::unique_ptr<Trainer> trainer;
  std::optional<Json> origin;
  group.together([&] {
    if (is_main && resume) check_same_data(config, folder);
    cap_to_free_memory({.sharing = sharing, .device_given = arguments.has("memory")});
    if (config.train.maps_every > 0) maps.emplace(maps_on_the_way(config, folder));
    std::vector<TrainCallback*> callbacks = arguments.callbacks;
    if (trace) callbacks.push_back(&*trace);
    if (maps) callbacks.push_back(&*maps);
    trainer = std::make_unique<Trainer>(config, folder, resume, progress, group, std::move(callbacks));
    if (opening.initial && !resume) origin = use_given_weights(*opening.initial, trainer->model(), progress);
  });
  bool complete = false, all_taken = false;
  group.together_on_main([&] {
    all_taken = trainer->step() >= trainer->total_steps();
    complete = (all_taken || trainer->patience_exhausted()) && scored(folder, trainer->step());
    if (!complete) {  // else what was written is of the sittings that made it
      io::write_own(folder.config(), to_toml(config));
      write_manifest(config, folder, *trainer, arguments, group, origin);
    }
    print_head(progress, config, *trainer, folder, group);
  });
  group.broadcast(&complete, sizeof complete);
  if (complete) {
    progress.say("done", all_taken ? text("the run has its ", trainer->total_steps(),
                                          " steps; resume it with --steps N to go on")
                                   : text(config.train.patience,
                                          " validations without a better one ended the run at step ",
                                          trainer->step(), "; resume it with --patience N to go on"));
    return 0;
  }
  const TrainResult outcome = trainer->run();
  if (trace) progress.say("trace", trace->finish(trainer->model()));
  if (maps && is_main) progress.say("maps", kept_words(*maps, folder, outcome.seconds));
  if (!outcome.finished()) {
    progress.say("stopped", leaves_nothing(arguments)
                                ? text("at step ", outcome.step)
                                : text("and saved at step ", outcome.step, "; resume with: ", program_name(),
                                       " resume ", whole));
    return 128 + outcome.stopped_by;
  }
  const bool is_whole = whole == folder.path(), removed = leaves_nothing(arguments);
  group.together_on_main([&] {
    show_result(config, folder, *trainer, outcome, progress, is_whole && !removed ? &whole : nullptr);
    if (is_whole && removed) progress.say("removed", "the run folder; --out FOLDER keeps it");
  });
  if (trace && !trace->failure().empty())
    fail(Fault::file, "the run has ended as it should, but its trace is not written: ", trace->failure());
  return 0;
}

/// The part that comes before, as far as it is not done.
int pretrain_in(Config& config, const RunFolder& folder, const ParsedArguments& arguments) {
  if (pretrained(folder.path())) return 0;
  const Path path = pretraining_folder(folder.path());
  io::check_directory(path);
  Config before = pretraining_config(config);
  RunFolder own = io::exists(path) ? RunFolder::resume(path, arguments.command_line())
                                   : RunFolder::create({.out = folder.path(),
                                                        .name = path.filename().string(),
                                                        .command = arguments.command_line(),
                                                        .config = to_toml(before)});
  std::optional<Checkpoint> resume = resume_point(own).from;
  Opening opening{std::move(before), std::move(own), std::move(resume)};
  return train_one(opening, arguments, single_process(), folder.path());
}

}  // namespace

bool leaves_nothing(const ParsedArguments& arguments) {
  return arguments.has("fast-dev-run") && !arguments.has("out") && !arguments.has("name");
}

int train_in(Opening& opening, const ParsedArguments& arguments, ProcessGroup& group) {
  if (opening.config.train.pretrain != Pretrain::none && !opening.from) {
    group.together([&] {
      if (group.size() > 1) {
        fail("train.pretrain is the work of one process, and ", group.size(),
             " were started. Begin the run with one; once it has a checkpoint, several may resume it.");
      }
    });
    if (const int code = pretrain_in(opening.config, opening.folder, arguments); code != 0) return code;
  }
  return train_one(opening, arguments, group, opening.folder.path());
}

}  // namespace heed
