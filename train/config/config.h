// Config: all settings of a run, in groups.
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
  std::string cross = "softmax";    ///< cross-attention from decoder to encoder
  /// Names the three settings of [attention].
  void fields(Fields& f) {
    f("encoder", encoder, "self-attention of the encoder");
    f("decoder", decoder, "self-attention of the decoder");
    f("cross", cross, "attention from decoder to encoder; none: with a wiring that has no attention");
  }
};

/// The pre-training of a run: none, the prediction of masked tokens, or of each next token. See
/// train/loop/pretraining.h.
enum class Pretrain { none, masked, causal };

/// The number format of weights, gradients and moments. With bf16 and tf32 these are f32, and the factors of
/// matrix products are rounded, with bf16 also activations between layers.
enum class Precision { f32, f64, bf16, tf32 };

/// The rounding of matrix products on the default device. Fails for tf32 on the CPU, which does not have it.
Rounding rounding_of(Precision precision);

/// Maximum number of batches a step. Each batch has a range of random draws of its own; with so many batches
/// a range still holds a thousand draws.
inline constexpr int64_t max_grad_accumulation = 10000;

/// The group "train".
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
  /// Groups of parameters as text, where `optimizer` has none: see parse_groups().
  std::string groups = {};
  int64_t validate_every = 0;    ///< steps between validations; 0: by `validate_each_epoch`
  int64_t checkpoint_every = 0;  ///< steps between checkpoints; 0: one with each validation
  int64_t keep_checkpoints = 2;  ///< newest checkpoints kept, beside the best
  double best_after = 0;       ///< fraction of steps before a checkpoint can be the best; 1: the last is best
  int64_t patience = 0;        ///< validations without improvement before the run stops; 0: never
  double stop_score = 0;       ///< validation score, the first, at which the run stops; 0: never
  double time_limit = 0;       ///< seconds of training; 0: none
  OnNan on_nan = OnNan::stop;  ///< reaction to a loss or gradient that is not finite
  int64_t skip_limit = 10;     ///< consecutive skipped steps before the run stops in spite of skip
  bool detect_anomaly = false;       ///< whether each op is checked for values that are not finite
  bool validate_each_epoch = false;  ///< if validate_every is 0: one validation an epoch, not ten a run
  int64_t maps_every = 0;   ///< steps between kept attention maps; 0: none. See loop/map_snapshot_callback.h
  std::string maps_of;      ///< input of these maps; empty: the first validation example
  int64_t maps_keep = 100;  ///< maximum number of steps with kept maps
  /// Whether time and memory are measured on some batches before the first step. This is no setting: fit()
  /// clears it, so that it calls the loss function only for training.
  bool estimate = true;
  int64_t overfit_batches = 0;  ///< number of first batches that are trained on; 0: all
  void fields(Fields& f);       ///< names every setting of [train], with its help
};

/// The rules of beam search (train/decode/beam_search.h). wu: scores are divided by ((5 + length) /
/// 6)^penalty (Wu et al. 2016, arXiv 1609.08144, equation 14), and the search ends when no hypothesis can
/// improve on the best; transformers: those of Hugging Face's Transformers, for models that came from there;
/// transformers_renormalized: the same with its `renormalize_logits`.
enum class BeamRules { wu, transformers, transformers_renormalized };

/// The group "decode": how outputs are decoded for scores and translations.
struct DecodeOptions {
  int64_t beam_size = 1;        ///< number of hypotheses; 1: greedy
  double length_penalty = 1.0;  ///< exponent of the length by which scores are divided, see BeamRules
  BeamRules beam_rules = BeamRules::wu;  ///< rules by which beams are scored and end
  int64_t max_extra_tokens = 50;         ///< tokens by which an output may exceed its source
  bool allow_unknown = false;            ///< whether the unknown token may be generated
  /// Names the settings of [decode].
  void fields(Fields& f) {
    f("beam_size", beam_size, {1, 1000}, "hypotheses kept; 1: greedy");
    f("length_penalty", length_penalty, "exponent of the length normalisation of beams");
    f("beam_rules", Choice(beam_rules, {"wu", "transformers", "transformers_renormalized"}),
      "wu: divide scores by ((5 + length) / 6)^length_penalty, search until none can improve; transformers: "
      "by length^length_penalty, with the ends and the early stop of Hugging Face's Transformers, where a "
      "forbidden token keeps its share of the probability; transformers_renormalized: where it has none");
    f("max_extra_tokens", max_extra_tokens, {1, max_integer},
      "tokens an output may be longer than its source");
    f("allow_unknown", allow_unknown, "let decoding choose the unknown token, as the published recipe does");
  }
};

/// The kind of source of a value.
enum class SetBy { preset, file, environment, command_line, program };

/// The source of a value.
struct Origin {
  std::string words;          ///< for messages: "--lr: ", "my.toml:3:1: ", "preset lm"
  SetBy by = SetBy::program;  ///< kind of source
};

/// All settings of a run. Dotted names (model.d_model) are the same in files, on the command line and
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
  std::map<std::string, Origin> origin;  ///< source that set each key last

  void fields(Fields& f);  ///< names all groups: the order of config.toml
  /// Sets the value of a dotted key. `where` begins errors: "--set ", "my.toml:3:1: ".
  void set(const std::string& key, const std::string& value, const std::string& where,
           SetBy by = SetBy::program);
  /// Whether an option of the command line set this key last.
  bool is_on_command_line(const std::string& key) const;
  /// train.optimizer, with the groups of train.groups where it has none of its own, and with the rate of
  /// hidden matrices that model.base_width asks for.
  OptimizerOptions optimizer_options() const;
  /// Fails for illegal values and for values that contradict each other.
  void check() const;
};

/// Checks attention.encoder. If `causal`, as `setting` ("data.causal = true") demands, fails for an attention
/// that cannot be causal; else fails for one that can only be causal.
void check_encoder_attention(const Config& config, bool causal, const char* setting);

/// The task's model with initial weights, in the config's precision. The task must be loaded.
std::unique_ptr<Module> new_model(const Config& config, Rng& rng);

/// Sets train.epochs to 0 if a source gives the length of the run in steps, and train.max_steps to 0 if it
/// gives epochs. `steps` and `epochs` name the source ("--steps: "); empty: that length is not given, or is
/// 0.
void replace_length(Config& config, const std::string& steps, const std::string& epochs, SetBy by);

/// Named settings: a file of train/presets.
struct Preset {
  std::string name;       ///< lra-text-google of train/presets/lra/text-google.toml
  std::string task;       ///< name of its task
  std::string about;      ///< one line
  std::string recipe;     ///< name of a recipe that several tasks share: google; empty: none
  std::string_view toml;  ///< content of the file
};

/// All presets in the order of their tasks, then by name; then those added by register_preset()
/// (train/program.h), in the order of registration.
std::span<const Preset> presets();
/// The name of the preset that follows a recipe: lra-text-skyformer for lra-text and skyformer. Fails with a
/// list of the recipes.
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
/// Sets the training options that the config.toml of a run of fit() names; the others stay. Fault::data for
/// the config.toml of another task.
void read_fit_options(TrainOptions& train, const std::string& toml, const std::string& name);
/// Every key with its value, in TOML, with comments that explain each.
std::string to_toml(Config& config);

}  // namespace heed
