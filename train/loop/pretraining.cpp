// Pre-training: runs token prediction first, then gives its weights to the classifier.
#include "heed/train/loop/pretraining.h"

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/nn/encoder_models.h"
#include "heed/train/config/config.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/metrics_log.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// The name of the pre-training objective: a value of data.predict.
const char* objective(const Config& config) {
  return config.train.pretrain == Pretrain::causal ? "causal" : "masked";
}

Path scores_of(const Path& run) { return pretraining_folder(run) / "scores.json"; }

Checkpoint best_checkpoint(const Path& run) {
  const Path folder = pretraining_folder(run);
  return open_checkpoint(folder, best_step(folder) ? "best" : "last");
}

}  // namespace

Path pretraining_folder(const Path& run) { return run / "pretrain"; }

Config pretraining_config(Config& run) {
  Config out = read_config(to_toml(run), "pretrain");
  const TrainOptions& train = run.train;
  out.set("data.predict", objective(run), "--pretrain: ");
  out.train.max_steps = train.pretrain_steps;
  out.train.epochs = 0;
  if (train.pretrain_rate > 0) out.train.schedule.learning_rate = train.pretrain_rate;
  out.train.pretrain = Pretrain::none;
  out.train.pretrain_steps = 0;
  out.train.pretrain_rate = 0;
  out.train.maps_every = 0;  // its model has other outputs
  out.train.maps_of.clear();
  return out;
}

bool pretrained(const Path& run) { return io::exists(scores_of(run)); }

bool pretraining_begun(const Path& run) { return RunFolder::elsewhere(pretraining_folder(run)).begun(); }

void load_pretrained(Module& model, const Path& run) {
  auto* encoder = dynamic_cast<EncoderModel*>(&model);
  if (encoder == nullptr) fail("train.pretrain: this model does not read as one that predicts tokens does.");
  const Checkpoint from = best_checkpoint(run);
  encoder->load_encoder(from.file("model.safetensors"), (from.folder / "model.safetensors").string());
}

Json pretraining_metadata(const Config& config, const Path& run) {
  Json metadata =
      Json::object({{"objective", Json(objective(config))}, {"steps", config.train.pretrain_steps}});
  if (!pretrained(run)) return metadata;
  const Json scores = parse_json(io::read(scores_of(run)), scores_of(run).string());
  metadata.set("steps_taken", scores.at("of"));
  metadata.set("from_step", scores.at("step"));
  for (const char* name : {"loss", "accuracy"}) metadata.set(name, scores.at(name));
  metadata.set("sha256", sha256_hex(best_checkpoint(run).file("model.safetensors")));
  for (const MetricSeries& series : read_metrics(pretraining_folder(run) / "metrics.jsonl")) {
    if (series.name == "seconds" && !series.values.empty()) metadata.set("seconds", series.values.back());
  }
  return metadata;
}

}  // namespace heed
