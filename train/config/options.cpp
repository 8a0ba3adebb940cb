// Names the settings of the groups "model" and "train".
#include <limits>

#include "heed/core/device.h"
#include "heed/core/settings_in_errors.h"
#include "heed/train/config/config.h"
#include "heed/train/config/setting_name.h"

namespace heed {

void ModelOptions::fields(Fields& f) {
  f("kind", Choice(kind, {"transformer", "seq2seq"}),
    "a transformer, or recurrent networks with cross-attention");
  TransformerConfig::fields(f);
  recurrent.fields(f);
}

OptimizerOptions Config::optimizer_options() const {
  OptimizerOptions out = train.optimizer;
  if (out.groups.empty()) out.groups = parse_groups(train.groups, "train.groups: ");
  out.hidden_rate *= model.width_ratio();
  return out;
}

void TrainOptions::fields(Fields& f) {
  f("seed", seed, {0, std::numeric_limits<int64_t>::max()},
    "seed of the weights, the data order and dropout");
  f("max_steps", max_steps, {0, max_integer}, "optimizer steps of the run; 0: as epochs says");
  f("epochs", epochs, {0, max_integer}, "passes over the data; 0: as max_steps says");
  f("batch_size", batch_size, {0, max_integer}, "examples in a batch; 0: as many as fit into batch_tokens");
  f("batch_tokens", batch_tokens, {1, max_integer},
    "maximum number of target tokens in a batch, padding included");
  f("grad_accumulation", grad_accumulation, {1, max_grad_accumulation},
    "batches whose gradients are summed for one step");
  f("label_smoothing", label_smoothing, "probability mass that label smoothing spreads over all classes");
  f("precision", Choice(precision, {"f32", "f64", "bf16", "tf32"}),
    "what weights are kept and computed in; bf16: f32, with rounded factors of products and activations "
    "between layers; tf32, on GPUs: f32, with rounded factors");
  f("pretrain", Choice(pretrain, {"none", "masked", "causal"}),
    "what tasks over long sequences learn first: tokens that are hidden, or each from those before it");
  f("pretrain_steps", pretrain_steps, {0, max_integer}, "pre-training steps, before max_steps");
  f("pretrain_rate", pretrain_rate, "learning rate of pre-training; 0: train.learning_rate");
  schedule.fields(f);
  optimizer.fields(f);
  f("groups", groups,
    "parameters with a decay or rate of their own, \"*.bias: weight_decay=0; encoder.*: rate=0.1\"; in a "
    "file also "
    "as [[train.groups]]");
  f("validate_every", validate_every, {0, max_integer},
    "steps between validations; 0: ten per run, or as validate_each_epoch says");
  f("validate_each_epoch", validate_each_epoch,
    "validate after each pass over the data, where validate_every is 0");
  f("checkpoint_every", checkpoint_every, {0, max_integer},
    "steps between checkpoints; 0: one at each validation");
  f("keep_checkpoints", keep_checkpoints, {1, max_integer},
    "number of newest checkpoints to keep, besides the best one");
  f("best_after", best_after,
    "share of the steps before a checkpoint can be the best; 1: the last one is, whatever it scores");
  f("patience", patience, {0, max_integer},
    "validations without improvement before the run stops early; 0: never stop early");
  f("stop_score", stop_score,
    "validation score at which the run stops early: that of the best checkpoint, see best_after; 0: never");
  f("time_limit", time_limit, "seconds of training after which the run saves and stops; 0: none");
  f("on_nan", Choice(on_nan, {"stop", "skip"}), "what to do at a step whose loss or gradient is not finite");
  f("skip_limit", skip_limit, {1, max_integer},
    "consecutive steps that on_nan = skip may skip before the run stops");
  f("detect_anomaly", detect_anomaly, "check the output of every op for values that are not finite (slow)");
  f("maps_every", maps_every, {0, max_integer},
    "steps between attention maps of one input that the run keeps on the way; 0: none");
  f("maps_of", maps_of,
    "input whose maps are kept, written as for heed inspect; empty: the first validation example");
  f("maps_keep", maps_keep, {2, 10000},
    "steps whose maps are kept at most: beyond that, every second one goes and maps_every doubles");
  f("overfit_batches", overfit_batches, {0, max_integer},
    "train and validate on the first so many batches alone, to see whether the model can learn; 0: on all");
}

Rounding rounding_of(Precision precision) {
  if (precision != Precision::tf32) return precision == Precision::bf16 ? Rounding::bf16 : Rounding::none;
  if (default_device == Device::cpu)
    fail(setting_name("train.precision"), " = tf32 is for GPUs, and this is the CPU. Use f32 or bf16, or ",
         advice("--device cuda.", "Device::cuda."));
  return Rounding::tf32;
}

}  // namespace heed
