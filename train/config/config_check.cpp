// Checks the values of a configuration, and that they go together.
#include <utility>

#include "heed/attention/layered_spec.h"
#include "heed/attention/variant.h"
#include "heed/train/config/config.h"
#include "heed/train/config/setting_name.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

constexpr std::string_view no_attention = "none";

/// Fails where a setting of the other kind of model is given, which would be ignored without notice.
void check_kind(const Config& config) {
  const ModelOptions& model = config.model;
  if (config.attention.cross == no_attention &&
      (model.kind == ModelKind::transformer || has_attention(model.recurrent.wiring))) {
    fail(
        "attention.cross = none is for models that read the source without attention: --model seq2seq with "
        "--wiring sutskever or cho. Give an attention, such as softmax.");
  }
  if (model.kind == ModelKind::transformer) {
    const Seq2SeqOptions plain, &given = model.recurrent;
    const char* key = given.cell != plain.cell                     ? "cell"
                      : given.wiring != plain.wiring               ? "wiring"
                      : given.bidirectional != plain.bidirectional ? "bidirectional"
                      : given.input_feeding != plain.input_feeding ? "input_feeding"
                                                                   : nullptr;
    if (key != nullptr) fail("model.", key, " is of recurrent models. Add --model seq2seq, or take it out.");
    return;
  }
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
                          "feed_forward_bias", "activation", "identity_projections"}) {
    if (config.is_on_command_line(text("model.", key)))
      fail("model.", key, " is of transformers, and model.kind = seq2seq has none. Take it out.");
  }
}

void check_maps(const TrainOptions& train) {
  if (train.maps_every == 0 && !train.maps_of.empty())
    fail("train.maps_of = ", shown(train.maps_of), ", but no maps are kept. Add --maps-every N, such as 50.");
}

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
  const bool causal = train.pretrain == Pretrain::causal;
  const std::string asked = text("train.pretrain = ", causal ? "causal" : "masked");
  const std::string why = config.task->why_no_pretraining();
  if (!why.empty()) fail(asked, " with the task ", config.task_name, ": ", why, ". Take it out.");
  if (train.pretrain_steps < 1)
    fail(asked, " does not give its length. Add --pretrain-steps N, such as 1000.");
  for (const std::string& spec : parse_layered_spec(config.attention.encoder).all()) {
    const Traits& traits = variant_named(parse_spec(spec).name).traits;
    if (causal && !traits.causal)
      fail(asked, " needs an attention that can look back only, and ", traits.name,
           " mixes later keys in. Use --pretrain masked, or another --attention.");
  }
}

std::string of_train(const char* key) { return setting_name(text("train.", key)); }

/// Checks each setting of training by its name of setting_name().
class TrainRanges final : public Fields {
  void on(const char* name, int64_t& option, IntRange range, const char* help) override {
    detail::check_ranges([&](Fields& f) { f(of_train(name).c_str(), option, range, help); }, "");
  }
};

void check_values(const Config& config) {
  const TrainOptions& train = config.train;
  const DecodeOptions& decode = config.decode;
  TrainOptions same_train = train;  // fields() is for reading and writing
  DecodeOptions same_decode = decode;
  check_ranges(*config.task, "data.");
  detail::check_ranges([&](Fields& f) { config.task->model_fields(f); }, "model.");
  config.model.check();
  TrainRanges ranges;
  same_train.fields(ranges);
  check_ranges(same_decode, "decode.");
  const auto at_least = [](const char* key, double value, double least) {
    if (!(value >= least)) fail(of_train(key), " = ", value, ". It must be at least ", least, ".");
  };
  const auto share = [](const char* key, double value) {
    if (!(value >= 0 && value < 1)) fail(of_train(key), " = ", value, ". It must be at least 0 and below 1.");
  };
  at_least("pretrain_rate", train.pretrain_rate, 0);
  at_least("learning_rate", train.schedule.learning_rate, 0);
  at_least("time_limit", train.time_limit, 0);
  at_least("grad_clip", train.optimizer.grad_clip, 0);
  at_least("grad_clip_value", train.optimizer.grad_clip_value, 0);
  at_least("weight_decay", train.optimizer.decay(), 0);
  share("beta1", train.optimizer.beta1);
  share("beta2", train.optimizer.beta2);
  share("momentum", train.optimizer.momentum);
  share("ema", train.optimizer.ema);
  check_groups(parse_groups(train.groups, text(of_train("groups"), ": ")));
  share("label_smoothing", train.label_smoothing);
  if (!(train.optimizer.epsilon > 0))
    fail(of_train("epsilon"), " = ", train.optimizer.epsilon, ". It must be above 0, such as 1e-8.");
  if (!(train.schedule.min_lr_ratio >= 0 && train.schedule.min_lr_ratio <= 1))
    fail(of_train("min_lr_ratio"), " = ", train.schedule.min_lr_ratio, ". It must be 0 to 1.");
  if ((train.max_steps > 0) == (train.epochs > 0))
    fail("train.max_steps = ", train.max_steps, " and train.epochs = ", train.epochs,
         ". Set one of them and leave the other 0.");
  for (const auto& [key, spec] : {std::pair{"encoder", &config.attention.encoder},
                                  {"decoder", &config.attention.decoder},
                                  {"cross", &config.attention.cross}}) {
    if (spec == &config.attention.cross && *spec == no_attention) continue;  // check_kind() says where
    try {
      check_attention(*spec);
    } catch (const Error& error) {
      throw Error(error.fault(), text("attention.", key, ": ", error.what()));
    }
  }
  check_kind(config);
  check_maps(config.train);
  check_pretraining(config);
  config.task->check_settings(config);
}

/// Where the first of the keys that a message names was set, other than by the preset: "my.toml:3:8: ",
/// "--lr: ".
std::string place_of_keys(const Config& config, const std::string& message) {
  std::string place;
  size_t first = message.find(". ");  // what follows is advice
  for (const auto& [key, origin] : config.origin) {
    const size_t at = message.find(key);
    if (at >= first || origin.by == SetBy::preset) continue;
    const char after = at + key.size() < message.size() ? message[at + key.size()] : ' ';
    if (after != ' ' && after != ':') continue;
    first = at;
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
    check_values(*this);
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(error.fault(), place_of_keys(*this, message) + message);
  }
}

}  // namespace heed
