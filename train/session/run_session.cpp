// One session of a run: loads the data, trains, and shows the result.
#include "heed/train/session/run_session.h"

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/isa.h"
#include "heed/core/parallel/blas.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/nn/encoder_models.h"
#include "heed/nn/seq2seq.h"
#include "heed/train/distributed/processes.h"
#include "heed/train/experiments/preset_diff.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/loop/step_trace.h"
#include "heed/train/metrics/baseline_scores.h"
#include "heed/train/metrics/bleu_by_length.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/progress/progress.h"
#include "heed/train/report/length_chart.h"
#include "heed/train/report/run_charts.h"
#include "heed/train/run/weights_from_run.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/resume_point.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/session_data.h"
#include "heed/train/session/session_manifest.h"
#include "heed/train/session/session_maps.h"
#include "heed/train/session/session_result.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {
namespace {

/// Whether the scores of a run of so many steps are already there.
bool scored(const RunFolder& folder, int64_t steps) {
  const Path path = folder.path() / "scores.json";
  if (!io::exists(path)) return false;
  const Json scores = parse_json(io::read(path), path.string());
  const Json* of = scores.find("of");
  return of != nullptr && of->is_integer() && of->integer() == steps;
}

/// Names the attentions that a model has, which the settings alone do not tell; empty for the model of a task
/// that is not built in.
std::string attention_words(const Config& config, Module& model) {
  const AttentionOptions& attention = config.attention;
  if (dynamic_cast<DecoderOnly*>(&model) != nullptr) return "attention " + attention.decoder;
  if (dynamic_cast<EncoderModel*>(&model) != nullptr) return "attention " + attention.encoder;
  if (dynamic_cast<TranslationModel*>(&model) == nullptr) return "";
  if (config.model.kind == ModelKind::transformer)
    return text("attention ", attention.encoder, " / ", attention.decoder, " / cross ", attention.cross);
  return text(config.model.recurrent.cell == CellKind::lstm ? "LSTM" : "GRU", " encoder-decoder, ",
              to_string(config.model.recurrent.wiring),
              has_attention(config.model.recurrent.wiring) ? ", cross-attention " + attention.cross
                                                           : ", a fixed context without attention");
}

/// Puts the weights of another run into a model that has taken no step, and says which tensors are new.
/// Returns what the manifest records of it. Fails naming the tensors that do not fit.
Json use_given_weights(const Checkpoint& initial, Module& model, Progress& progress) {
  const WeightTransfer transfer = transfer_weights(model, initial.file("model.safetensors"),
                                                   (initial.folder / "model.safetensors").string());
  Json facts = origin_metadata(initial);
  progress.say("weights", text("of ", facts.at("run").text(), ", step ", initial.step));
  for (const std::string& line : transfer_words(transfer)) progress.say("", line);
  facts.set("initialised", std::vector<Json>(transfer.initialised.begin(), transfer.initialised.end()));
  facts.set("left_out", std::vector<Json>(transfer.unused.begin(), transfer.unused.end()));
  return facts;
}

/// Prints what this session computes with, the model and its schedule.
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

/// Runs one training: that of the run, or the pre-training in a folder of the run `whole`.
int train_one(Opening& opening, const ParsedArguments& arguments, ProcessGroup& group, const Path& whole) {
  Config& config = opening.config;
  RunFolder& folder = opening.folder;
  const std::optional<Checkpoint>& resume = opening.checkpoint;
  const bool is_main = group.is_main();
  Progress progress;
  progress.quiet = !is_main || arguments.has("quiet");
  rounding_of(config.train.precision);  // fails before anything is read
  load_data(config, resume ? &*resume : opening.weights_from_run ? &*opening.weights_from_run : nullptr, progress, group);
  const int64_t sharing = local_ranks(group).count;  // processes that share the machine's memory
  std::optional<StepTrace> trace;                    // declared before the trainer, which calls it
  if (arguments.has("trace") && whole == folder.path()) trace.emplace(arguments.get("trace"));
  std::optional<MapSnapshotCallback> maps;
  std::unique_ptr<Trainer> trainer;
  std::optional<Json> origin;
  group.together([&] {
    if (is_main && resume) check_same_data(config, folder);
    cap_to_free_memory({.sharing = sharing, .device_given = arguments.has("memory")});
    if (config.train.maps_every > 0) maps.emplace(keep_maps_callback(config, folder));
    std::vector<TrainCallback*> callbacks = arguments.callbacks;
    if (trace) callbacks.push_back(&*trace);
    if (maps) callbacks.push_back(&*maps);
    trainer = std::make_unique<Trainer>(config, folder, resume, progress, group, std::move(callbacks));
    if (opening.weights_from_run && !resume) origin = use_given_weights(*opening.weights_from_run, trainer->model(), progress);
  });
  bool complete = false, all_taken = false;
  group.together_on_main([&] {
    all_taken = trainer->step() >= trainer->total_steps();
    complete = (all_taken || trainer->patience_exhausted()) && scored(folder, trainer->step());
    if (!complete) {  // a complete run keeps what the sessions that made it have written
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

/// Runs the steps of pre-training that are not done yet.
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
  std::optional<Checkpoint> resume = resume_point(own).checkpoint;
  Opening opening{std::move(before), std::move(own), std::move(resume)};
  return train_one(opening, arguments, single_process(), folder.path());
}

}  // namespace

bool leaves_nothing(const ParsedArguments& arguments) {
  return arguments.has("fast-dev-run") && !arguments.has("out") && !arguments.has("name");
}

int train_in(Opening& opening, const ParsedArguments& arguments, ProcessGroup& group) {
  if (opening.config.train.pretrain != Pretrain::none && !opening.checkpoint) {
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
