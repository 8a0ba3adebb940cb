// One session of a run: loads the data, trains, and shows the result.
#include "heed/train/session/run_session.h"

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/safetensors.h"
#include "heed/core/isa.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/nn/encoder_models.h"
#include "heed/nn/seq2seq.h"
#include "heed/train/experiments/preset_diff.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/loop/step_trace.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/resume_point.h"
#include "heed/train/run/weights_from_run.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/session_data.h"
#include "heed/train/session/session_manifest.h"
#include "heed/train/session/session_maps.h"
#include "heed/train/session/session_result.h"

namespace heed {
namespace {

/// Why a complete run takes no step, and the option that lets it go on.
std::string why_complete(const Trainer& trainer, const TrainOptions& train) {
  if (trainer.step() >= trainer.total_steps())
    return text("the run has its ", trainer.total_steps(), " steps; resume it with --steps N to go on");
  if (trainer.score_reached())
    return text("the run is as good as train.stop_score = ", train.stop_score, " since step ", trainer.step(),
                "; resume it with --stop-score 0 to go on");
  return text(train.patience, " validations without a better one ended the run at step ", trainer.step(),
              "; resume it with --patience N to go on");
}

/// Whether the folder has the test scores of a run of so many steps.
bool is_scored(const RunFolder& folder, int64_t steps) {
  const Path path = folder.path() / "scores.json";
  if (!io::exists(path)) return false;
  const Json scores = parse_json(io::read(path), path.string());
  const Json* scored_steps = scores.find("of");
  return scored_steps != nullptr && scored_steps->is_integer() && scored_steps->integer() == steps;
}

/// Names the attentions that the model uses of those in the settings; empty for the model of a task that is
/// not built in.
std::string describe_attention(const Config& config, Module& model) {
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

/// Puts the weights of another run into a model that has taken no step, and prints which tensors are new.
/// Returns the metadata of their origin, for the manifest. Fails naming the tensors that do not fit.
Json transfer_weights_from_run(const Checkpoint& weights, Module& model, Progress& progress) {
  const WeightTransfer transfer = transfer_weights(
      model,
      SafeTensors::parse(weights.file("model.safetensors"), weights.path("model.safetensors").string()));
  Json origin = origin_metadata(weights);
  progress.say("weights", text("of ", origin.at("run").text(), ", step ", weights.step));
  for (const std::string& line : transfer_words(transfer)) progress.say("", line);
  origin.set("initialised", std::vector<Json>(transfer.initialised.begin(), transfer.initialised.end()));
  origin.set("left_out", std::vector<Json>(transfer.unused.begin(), transfer.unused.end()));
  return origin;
}

/// Prints the machine, the model, the schedule and the estimates of this session.
void print_heading(Progress& progress, Config& config, Trainer& trainer, const RunFolder& folder,
                   const ProcessGroup& group) {
  if (group.size() > 1) {
    const TrainOptions& train = config.train;
    const std::string batch = train.batch_size > 0 ? text(train.batch_size, " examples")
                                                   : text(train.batch_tokens, " target tokens");
    progress.say("processes", text(group.size(), ", which share each batch of ", batch));
  }
  progress.say("device", text(default_device, ", ", threads(), " threads, kernels ", isa_name(),
                              ", OpenBLAS ", blas_core(), ", seed ", config.train.seed));
  const std::string attention = describe_attention(config, trainer.model());
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

/// Trains the opened run, which is the run in the folder `main_run` or the pre-training in a folder below
/// that.
int train_one(Opening& opening, const ParsedArguments& arguments, ProcessGroup& group, const Path& main_run) {
  Config& config = opening.config;
  RunFolder& folder = opening.folder;
  const std::optional<Checkpoint>& resume = opening.checkpoint;
  const bool is_main = group.is_main();
  Progress progress;
  progress.quiet = !is_main || arguments.has("quiet");
  rounding_of(config.train.precision);  // fails, before anything is read, where the device lacks it
  const std::optional<Checkpoint>& tokenizers = resume ? resume : opening.weights_from_run;
  load_data(config, tokenizers ? &*tokenizers : nullptr, progress, group);
  const int64_t sharing = local_ranks(group).count;    // processes that share the machine's memory
  std::optional<StepTrace> trace;                      // declared before the trainer, which calls it
  const bool is_main_run = main_run == folder.path();  // else the pre-training
  if (arguments.has("trace") && is_main_run) trace.emplace(arguments.get("trace"));
  std::optional<MapSnapshotCallback> maps;
  std::unique_ptr<Trainer> trainer;
  std::optional<Json> origin;
  group.together([&] {
    if (is_main && resume) check_same_data(config, folder);
    cap_to_free_memory({.sharing = sharing, .device_given = arguments.has("memory")});
    if (config.train.maps_every > 0) maps.emplace(make_map_snapshot_callback(config, folder));
    std::vector<TrainCallback*> callbacks = arguments.callbacks;
    if (trace) callbacks.push_back(&*trace);
    if (maps) callbacks.push_back(&*maps);
    trainer = std::make_unique<Trainer>(config, folder, resume, progress, group, std::move(callbacks));
    if (opening.weights_from_run && !resume)
      origin = transfer_weights_from_run(*opening.weights_from_run, trainer->model(), progress);
  });
  bool complete = false;
  group.together_on_main([&] {
    complete = trainer->is_complete() && is_scored(folder, trainer->step());
    if (!complete) {  // a complete run keeps the settings and the manifest of its last session
      io::write_own(folder.config(), to_toml(config));
      write_manifest(config, folder, *trainer, arguments, group, origin);
    }
    print_heading(progress, config, *trainer, folder, group);
  });
  group.broadcast(&complete, sizeof complete);
  if (complete) {
    progress.say("done", why_complete(*trainer, config.train));
    return 0;
  }
  const TrainResult outcome = trainer->run();
  if (trace) progress.say("trace", trace->finish(trainer->model()));
  if (maps && is_main) progress.say("maps", describe_snapshots(*maps, folder, outcome.seconds));
  if (!outcome.finished()) {
    progress.say("stopped", leaves_nothing(arguments)
                                ? text("at step ", outcome.step)
                                : text("and saved at step ", outcome.step, "; resume with: ", program_name(),
                                       " resume ", main_run));
    return 128 + outcome.stopped_by;
  }
  const bool is_removed = leaves_nothing(arguments);
  group.together_on_main([&] {
    const Path* resumable = is_main_run && !is_removed ? &main_run : nullptr;
    show_result(config, folder, *trainer, outcome, progress, resumable);
    if (is_main_run && is_removed) progress.say("removed", "the run folder; --out FOLDER keeps it");
  });
  if (trace && !trace->failure().empty())
    fail(Fault::file, "the run has ended as it should, but its trace is not written: ", trace->failure());
  return 0;
}

/// Runs the remaining steps of pre-training, in its folder below that of the run. Returns the exit code.
int pretrain_in(Config& config, const RunFolder& folder, const ParsedArguments& arguments) {
  if (pretrained(folder.path())) return 0;
  const Path path = pretraining_folder(folder.path());
  io::check_directory(path);
  Config pretraining = pretraining_config(config);
  RunFolder pretraining_run = io::exists(path) ? RunFolder::resume(path, arguments.command_line())
                                               : RunFolder::create({.out = folder.path(),
                                                                    .name = path.filename().string(),
                                                                    .command = arguments.command_line(),
                                                                    .config = to_toml(pretraining)});
  std::optional<Checkpoint> checkpoint = resume_point(pretraining_run).checkpoint;
  Opening opening{std::move(pretraining), std::move(pretraining_run), std::move(checkpoint)};
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
