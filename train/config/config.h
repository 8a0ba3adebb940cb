// Config: everything that decides a run, in one struct of structs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/matmul_precision.h"
#include "heed/nn/seq2seq.h"
#include "heed/nn/set_option.h"
#include "heed/train/optim/optimizer.h"
#include "heed/train/optim/schedule.h"

namespace heed {

class Task;

/// The architecture of a translator.
enum class ModelKind { transformer, seq2seq };

/// The group "model".
struct ModelOptions : TransformerConfig {
  ModelKind kind = ModelKind::transformer;  ///< architecture of a translator
  Seq2SeqOptions recurrent;                 ///< settings of kind = seq2seq
  void fields(Fields& f);                   ///< names every setting of [model], with its help
};

/// The attentions of a model, each a spec "name:key=value,...".
struct AttentionOptions {
  std::string encoder = "softmax";  ///< self-attention of encoders
  std::string decoder = "softmax";  ///< self-attention of decoders and language models
  std::string cross = "softmax";    ///< from decoder to encoder
  /// Names the three settings of [attention].
  void fields(Fields& f) {
    f("encoder", encoder, "self-attention of the encoder");
    f("decoder", decoder, "self-attention of the decoder");
    f("cross", cross, "attention from decoder to encoder; none: with a wiring that has no attention");
  }
};

/// What a run does at a step whose loss or gradient is not finite.
enum class OnNan { stop, skip };

/// The pre-training of a run: none, predicting tokens that are hidden, or each token from those before it.
/// See train/loop/pretraining.h.
enum class Pretrain { none, masked, causal };

/// The number format of weights, gradients and moments. bf16 and tf32 store them in f32 and round the factors
/// of matrix products.
enum class Precision { f32, f64, bf16, tf32 };

/// How products are rounded on the default device. Fails for tf32 on the CPU, which has no such products.
Rounding rounding_of(Precision precision);

/// Maximum number of batches a step: each draws its random numbers in a range of its own, which still has a
/// thousand draws for so many batches.
inline constexpr int64_t max_grad_accumulation = 10000;

/// How long and how a run trains.
struct TrainOptions {
  int64_t seed = 1;                      ///< seed of the weights, the order of the data and dropout
  int64_t max_steps = 0;                 ///< steps of the run; 0: `epochs` is set
  int64_t epochs = 0;                    ///< passes over the data; 0: `max_steps` is set
  int64_t batch_size = 0;                ///< examples a batch; 0: as many as fit into batch_tokens
  int64_t batch_tokens = 4096;           ///< target tokens a batch, padding included
  int64_t grad_accumulation = 1;         ///< batches a step
  double label_smoothing = 0.1;          ///< probability mass spread over all classes; 0: none
  Pretrain pretrain = Pretrain::none;    ///< pre-training before the task
  int64_t pretrain_steps = 0;            ///< steps of pre-training, before `max_steps`
  double pretrain_rate = 0;              ///< learning rate of pre-training; 0: that of `schedule`
  Precision precision = Precision::f32;  ///< number format of weights, gradients, moments and products
  Schedule schedule;                     ///< learning rate of each step
  /// The defaults of presets: no weight decay, and the gradient clipped.
  OptimizerOptions optimizer{.beta2 = 0.98, .epsilon = 1e-9, .weight_decay = 0, .grad_clip = 1};
  int64_t validate_every = 0;    ///< steps between validations; 0: by `validate_each_epoch`
  int64_t checkpoint_every = 0;  ///< steps between checkpoints; 0: one with each validation
  int64_t keep_checkpoints = 2;  ///< newest checkpoints kept, beside the best
  double best_after = 0;       ///< share of the steps before a checkpoint can be the best; 1: the last one is
  int64_t patience = 0;        ///< validations without a better one before the run stops; 0: never
  double time_limit = 0;       ///< seconds of training; 0: none
  OnNan on_nan = OnNan::stop;  ///< at a step whose loss or gradient is not finite
  int64_t skip_limit = 10;     ///< skipped steps in a row before a run that skips stops all the same
  bool detect_anomaly = false;       ///< check every op for values that are not finite
  bool validate_each_epoch = false;  ///< where validate_every is 0: once a pass over the data, not ten times
  int64_t maps_every =
      0;  ///< steps between attention maps kept on the way; 0: none. See loop/map_snapshot_callback.h
  std::string maps_of;      ///< the input of these maps; empty: the first of the validation split
  int64_t maps_keep = 100;  ///< steps whose maps are kept at most
  /// Whether some batches are computed before the first step, to see what the run takes. No setting: fit()
  /// leaves it out, which calls a loss function for nothing but training.
  bool estimate = true;
  int64_t overfit_batches = 0;  ///< train on the first so many batches alone, on purpose; 0: on all
  void fields(Fields& f);       ///< names every setting of [train], with its help
};

/// How outputs are made when scoring and translating.
struct DecodeOptions {
  int64_t beam_size = 1;          ///< hypotheses kept; 1: greedy
  double length_penalty = 1.0;    ///< alpha of ((5 + length) / 6)^alpha, Wu et al. 2016, arXiv 1609.08144
  int64_t max_extra_tokens = 50;  ///< an output may be this much longer than its source
  bool allow_unknown = false;     ///< whether the unknown token may be generated
  /// Names the settings of [decode].
  void fields(Fields& f) {
    f("beam_size", beam_size, {1, 1000}, "hypotheses kept; 1: greedy");
    f("length_penalty", length_penalty, "exponent of the length normalisation of beams");
    f("max_extra_tokens", max_extra_tokens, {1, max_integer},
      "tokens an output may be longer than its source");
    f("allow_unknown", allow_unknown, "let decoding choose the unknown token, as the published recipe does");
  }
};

/// Where a value comes from.
enum class SetBy { preset, file, environment, command_line, program };

/// The source of a value.
struct Origin {
  std::string words;          ///< for messages: "--lr: ", "my.toml:3:1: ", "preset lm"
  SetBy by = SetBy::program;  ///< what set it
};

/// Everything that decides a run. Dotted names (model.d_model) are the same in files, on the command line and
/// in --set.
struct Config {
  Config();
  ~Config();
  Config(Config&&) noexcept;             ///< takes all values; the other must not be used any more
  Config& operator=(Config&&) noexcept;  ///< takes all values; the other must not be used any more

  std::string preset;                    ///< name of the preset; empty: none
  std::string task_name;                 ///< "translate": the name in TaskEntry
  std::unique_ptr<Task> task;            ///< its options are the group "data"
  ModelOptions model;                    ///< the group "model"
  AttentionOptions attention;            ///< the group "attention"
  TrainOptions train;                    ///< the group "train"
  DecodeOptions decode;                  ///< the group "decode"
  std::map<std::string, Origin> origin;  ///< key -> who set it last

  void fields(Fields& f);  ///< names all groups: the order of config.toml
  /// Sets one dotted key; `where` is the source, for errors: "--set ", "my.toml:3:1: ".
  void set(const std::string& key, const std::string& value, const std::string& where,
           SetBy by = SetBy::program);
  /// Whether an option of the command line set this key last.
  bool is_on_command_line(const std::string& key) const;
  /// Fails on values that do not go together.
  void check() const;
};

/// Fails where attention.encoder has one that cannot look back only, which `setting` ("data.causal = true")
/// asks for, or, unless `causal`, one that looks back only. The errors name the setting that makes it work.
void check_encoder_attention(const Config& config, bool causal, const char* setting);

/// The task's model with initial weights, in the config's precision. The task must be loaded.
std::unique_ptr<Module> new_model(const Config& config, Rng& rng);

/// Sets train.epochs to 0 where the length is given in steps, and train.max_steps where it is given in
/// epochs. Each argument is the source of that length ("--steps: "), empty where it is not given or 0.
void replace_length(Config& config, const std::string& steps, const std::string& epochs, SetBy by);

/// Named settings: a file of train/presets.
struct Preset {
  std::string name;       ///< lra-text-google of train/presets/lra/text-google.toml
  std::string task;       ///< as TaskEntry calls it
  std::string about;      ///< one line
  std::string recipe;     ///< google, where several tasks have a preset by the same recipe; else empty
  std::string_view toml;  ///< the file
};

/// All presets: in the order of their tasks, then by name; after them those that register_preset()
/// (train/program.h) has added, in their order.
std::span<const Preset> presets();
/// The name of the preset that follows a recipe: lra-text and skyformer give lra-text-skyformer. Fails naming
/// the recipes there are.
std::string with_recipe(const std::string& preset, const std::string& recipe);

/// The settings of a preset, without those from the environment. Fails with the nearest name.
Config preset_config(const std::string& name);
/// The config of a preset or of a .toml file (which may begin from a preset: `preset = "translate"`), then
/// HEED_* from the environment. Fails with the nearest preset.
Config make_config(const std::string& preset_or_file);
/// The config of the text of a .toml file, without the environment. Errors call the text `name`.
Config parse_config(const std::string& toml, const std::string& name);
/// The text of a config.toml from a run folder, as it was written by to_toml.
Config read_config(const std::string& toml, const std::string& name);
/// Sets the options of training that the config.toml of a run of fit() names; the others stay. Fault::data
/// where the text is of another task.
void read_fit_options(TrainOptions& train, const std::string& toml, const std::string& name);
/// Every key with its value, in TOML, with comments that explain each.
std::string to_toml(Config& config);

}  // namespace heed
