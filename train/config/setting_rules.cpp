// Checks the values of a configuration one by one and together.
#include <utility>

#include "heed/attention/layered_spec.h"
#include "heed/attention/variant.h"
#include "heed/train/config/config.h"
#include "heed/train/config/setting_name.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

constexpr std::string_view no_attention = "none";

/// Fails for settings of the kind of model that is not used: they would be ignored without notice.
void check_kind(const Config& config) {
  const ModelOptions& model = config.model;
  if (config.attention.cross == no_attention &&
      (model.kind == ModelKind::transformer || has_attention(model.recurrent.wiring))) {
    fail(
        "attention.cross = none is for models that read the source without attention: --model seq2seq with "
        "--wiring sutskever or cho. Give an attention, such as softmax.");
  }
  if (model.kind == ModelKind::transformer) {
    const Seq2SeqOptions defaults, &given = model.recurrent;
    const char* key = given.cell != defaults.cell                     ? "cell"
                      : given.wiring != defaults.wiring               ? "wiring"
                      : given.bidirectional != defaults.bidirectional ? "bidirectional"
                      : given.input_feeding != defaults.input_feeding ? "input_feeding"
                                                                      : nullptr;
    if (key != nullptr) fail("model.", key, " is of recurrent models. Add --model seq2seq, or take it out.");
    return;
  }
  if (model.base_width > 0)
    fail("model.base_width = ", model.base_width,
         " is of transformers, and model.kind = seq2seq has none. Take it out.");
  if (config.task_name != "translate")
    fail("model.kind = seq2seq translates, and the task is ", config.task_name, ". Use transformer.");
  const Wiring wiring = model.recurrent.wiring;
  if (wiring != Wiring::luong && !model.recurrent.input_feeding)
    fail("model.input_feeding = false is for wiring = luong: with ", to_string(wiring),
         " nothing is fed back that could be left out. Add --wiring luong.");
  if (!has_attention(wiring) && config.attention.cross != no_attention &&
      config.is_on_command_line("attention.cross")) {
    fail("attention.cross = ", shown(config.attention.cross), ": model.wiring = ", to_string(wiring),
         " has no attention. Take it out, or choose --wiring bahdanau or luong.");
  }
  if (model.recurrent.bidirectional && model.d_model % 2 != 0)
    fail("model.d_model = ", model.d_model,
         " is odd, and each direction of the encoder takes half of it. Use an even one, or --bidirectional "
         "false.");
  for (const auto& [key, spec] :
       {std::pair{"encoder", &config.attention.encoder}, {"decoder", &config.attention.decoder}}) {
    if (*spec != AttentionOptions().encoder)
      fail("attention.", key, " = ", shown(*spec),
           ": model.kind = seq2seq has no self-attention. Give --cross-attention only.");
  }
  for (const char* key : {"position", "norm", "norm_scale", "norm_epsilon", "norm_bias", "feed_forward",
                          "feed_forward_bias", "activation", "identity_projections", "short_convolution"}) {
    if (config.is_on_command_line(text("model.", key)))
      fail("model.", key, " is of transformers, and model.kind = seq2seq has none. Take it out.");
  }
}

/// Fails for pre-training without a length, for a length without pre-training, and for a task or an attention
/// that cannot be pre-trained so.
void check_pretraining(const Config& config) {
  const TrainOptions& train = config.train;
  if (train.overfit_batches > 0 && train.pretrain != Pretrain::none)
    fail("train.overfit_batches = ", train.overfit_batches,
         ", but train.pretrain trains on all data before. ", "Take one of them out.");
  if (train.pretrain == Pretrain::none) {
    if (train.pretrain_steps == 0) return;
    fail("train.pretrain_steps = ", train.pretrain_steps,
         ", but train.pretrain is none. Add --pretrain masked or --pretrain causal.");
  }
  const bool is_causal = train.pretrain == Pretrain::causal;
  const std::string setting = text("train.pretrain = ", is_causal ? "causal" : "masked");
  const std::string why = config.task->why_no_pretraining();
  if (!why.empty()) fail(setting, " with the task ", config.task_name, ": ", why, ". Take it out.");
  if (train.pretrain_steps < 1)
    fail(setting, " does not give its length. Add --pretrain-steps N, such as 1000.");
  for (const std::string& spec : parse_layered_spec(config.attention.encoder).all()) {
    const Traits& traits = variant_named(parse_spec(spec).name).traits;
    if (is_causal && !traits.causal)
      fail(setting, " needs an attention that can look back only, and ", traits.name,
           " mixes later keys in. Use --pretrain masked, or another --attention.");
  }
}

/// The name of a training setting in errors.
std::string of_train(const char* key) { return setting_name(text("train.", key)); }

/// Fails for settings of the optimizer that are out of range or contradict each other.
void check_optimizer(const Config& config) {
  const TrainOptions& train = config.train;
  const OptimizerOptions& optimizer = train.optimizer;
  OptimizerKind kind = optimizer.kind;
  if (config.model.base_width > 0 && (kind == OptimizerKind::sgd || kind == OptimizerKind::muon))
    fail("model.base_width = ", config.model.base_width, " scales learning rates as adamw needs it, and ",
         of_train("optimizer"), " = ", choice_of(kind).word(), ". Use adamw, adam, lion or schedule_free.");
  if (optimizer.kind != OptimizerKind::schedule_free) return;
  if (optimizer.ema > 0)
    fail(of_train("ema"), " = ", optimizer.ema,
         ", but schedule_free averages the weights by itself. Take it out.");
  if (train.schedule.kind != ScheduleKind::constant && !train.schedule.rate_of_step)
    fail(of_train("schedule"),
         " lets the learning rate fall, which schedule_free replaces by an average. Set ",
         setting_name("train.schedule"), " = constant; its warm-up stays.");
}

/// Checks the range of each training setting; errors call it by setting_name().
class TrainRanges final : public Fields {
  void on(const char* name, int64_t& option, IntRange range, const char* help) override {
    detail::check_ranges([&](Fields& f) { f(of_train(name).c_str(), option, range, help); }, "");
  }
};

/// Runs all checks; errors name the setting, but not where it was set.
void check_all(const Config& config) {
  const TrainOptions& train = config.train;
  TrainOptions train_copy = train;  // fields() needs writable options
  DecodeOptions decode_copy = config.decode;
  check_ranges(*config.task, "data.");
  detail::check_ranges([&](Fields& f) { config.task->model_fields(f); }, "model.");
  config.model.check();
  TrainRanges ranges;
  train_copy.fields(ranges);
  check_ranges(decode_copy, "decode.");
  const auto not_negative = [](const char* key, double value) {
    if (!(value >= 0)) fail(of_train(key), " = ", value, ". It must be at least 0.");
  };
  const auto fraction = [](const char* key, double value) {
    if (!(value >= 0 && value < 1)) fail(of_train(key), " = ", value, ". It must be at least 0 and below 1.");
  };
  not_negative("pretrain_rate", train.pretrain_rate);
  not_negative("learning_rate", train.schedule.learning_rate);
  not_negative("time_limit", train.time_limit);
  not_negative("grad_clip", train.optimizer.grad_clip);
  not_negative("grad_clip_value", train.optimizer.grad_clip_value);
  not_negative("hidden_rate", train.optimizer.hidden_rate);
  fraction("muon_momentum", train.optimizer.muon.momentum);
  not_negative("weight_decay", train.optimizer.decay());
  fraction("beta1", train.optimizer.beta1);
  fraction("beta2", train.optimizer.beta2);
  fraction("momentum", train.optimizer.momentum);
  fraction("ema", train.optimizer.ema);
  check_groups(parse_groups(train.groups, text(of_train("groups"), ": ")));
  fraction("label_smoothing", train.label_smoothing);
  if (!(train.optimizer.epsilon > 0))
    fail(of_train("epsilon"), " = ", train.optimizer.epsilon, ". It must be above 0, such as 1e-8.");
  if (!(train.schedule.min_lr_ratio >= 0 && train.schedule.min_lr_ratio <= 1))
    fail(of_train("min_lr_ratio"), " = ", train.schedule.min_lr_ratio, ". It must be 0 to 1.");
  if (!(train.schedule.decay_share > 0 && train.schedule.decay_share <= 1))
    fail(of_train("decay_share"), " = ", train.schedule.decay_share, ". It must be above 0 and at most 1.");
  check_optimizer(config);
  if ((train.max_steps > 0) == (train.epochs > 0))
    fail("train.max_steps = ", train.max_steps, " and train.epochs = ", train.epochs,
         ". Set one of them and leave the other 0.");
  for (const auto& [key, spec] : {std::pair{"encoder", &config.attention.encoder},
                                  {"decoder", &config.attention.decoder},
                                  {"cross", &config.attention.cross}}) {
    if (spec == &config.attention.cross && *spec == no_attention)
      continue;  // check_kind() refuses it where necessary
    try {
      check_attention(*spec);
    } catch (const Error& error) {
      throw Error(error.fault(), text("attention.", key, ": ", error.what()));
    }
  }
  check_kind(config);
  if (train.maps_every == 0 && !train.maps_of.empty())
    fail("train.maps_of = ", shown(train.maps_of), ", but no maps are kept. Add --maps-every N, such as 50.");
  check_pretraining(config);
  config.task->check_settings(config);
}

/// The place that set the first key in a message, among keys that the preset has not set: "my.toml:3:8: ",
/// "--lr: "; empty: none.
std::string place_of_first_key(const Config& config, const std::string& message) {
  std::string place;
  size_t first = message.find(". ");  // advice follows: keys in it are not at fault
  for (const auto& [key, origin] : config.origin) {
    const size_t begin = message.find(key), end = begin + key.size();
    if (begin >= first || origin.by == SetBy::preset) continue;
    const char next = end < message.size() ? message[end] : ' ';
    if (next != ' ' && next != ':') continue;  // the key is only the beginning of a longer one
    first = begin;
    place = origin.words;
  }
  return place;
}

}  // namespace

void check_encoder_attention(const Config& config, bool causal, const char* setting) {
  for (const std::string& spec : parse_layered_spec(config.attention.encoder).all()) {
    const Traits& traits = variant_named(parse_spec(spec).name).traits;
    if (causal && !traits.causal)
      fail("attention '", traits.name, "' cannot look back only, which ", setting,
           " asks for. Take that out, or choose another attention.");
    if (!causal && !traits.bidirectional)
      fail("attention '", traits.name, "' looks back only, and this encoder looks both ways. Add --causal ",
           "true, or choose another attention.");
  }
}

void Config::check() const {
  try {
    check_all(*this);
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(error.fault(), place_of_first_key(*this, message) + message);
  }
}

}  // namespace heed
