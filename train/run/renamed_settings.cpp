// The tables of renamed settings and options, and lookups in them.
#include "heed/train/run/renamed_settings.h"

#include <algorithm>

namespace heed {
namespace {

constexpr RenamedSetting settings_of_0_1[] = {
    {"model.width", "model.d_model"},
    {"model.feed_forward", "model.d_ff"},
    {"model.key_heads", "model.kv_heads"},
    {"model.head_width", "model.head_dim"},
    {"model.tie", "model.tie_embeddings"},
    {"model.embedding_deviation", "model.embedding_std"},
    {"data.most", "data.vocab_size"},
    {"data.minimum", "data.min_frequency"},
    {"data.longest", "data.max_length"},
    {"data.blanks", "data.join_with_spaces"},
    {"data.distinct", "data.deduplicate"},
    {"data.share", "data.train_fraction"},
    {"data.estimate", "data.eval_batches"},
    {"data.test", "data.test_size"},
    {"data.held_out", "data.test_size"},
    {"data.pairs", "data.num_examples"},
    {"data.examples", "data.num_examples"},
    {"data.images", "data.num_examples"},
    {"data.characters", "data.num_examples"},
    {"data.pool", "model.pool"},
    {"data.head", "model.head"},
    {"data.patch", "model.patch"},
    {"data.pair_head", "model.pair_head"},
    {"train.rate", "train.learning_rate"},
    {"train.batch", "train.batch_size"},
    {"train.accumulate", "train.grad_accumulation"},
    {"train.steps", "train.max_steps"},
    {"train.warmup", "train.warmup_steps"},
    {"train.decay", "train.weight_decay"},
    {"train.clip", "train.grad_clip"},
    {"train.clip_each", "train.grad_clip_value"},
    {"train.smoothing", "train.label_smoothing"},
    {"train.final_share", "train.min_lr_ratio"},
    {"train.keep", "train.keep_checkpoints"},
    {"train.anomaly", "train.detect_anomaly"},
    {"decode.beam", "decode.beam_size"},
    {"decode.extra", "decode.max_extra_tokens"},
};

/// Options that are no settings, or that are not named after the setting's key.
constexpr RenamedSetting options_of_0_1[] = {
    {"rate", "lr"},
    {"longest", "data.max-length"},
    {"tokens", "max-new-tokens"},
    {"samples", "num-samples"},
    {"ckpt", "checkpoint"},
};

/// A key without its group: "learning_rate" of "train.learning_rate".
std::string_view without_group(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

std::span<const RenamedSetting> renamed_settings() { return settings_of_0_1; }

std::string_view key_now(std::string_view old_key) {
  const bool has_group = old_key.find('.') != old_key.npos;
  for (const RenamedSetting& setting : settings_of_0_1) {
    const std::string_view short_old_key = without_group(setting.old_key);
    // Without its group, the key of a setting that only moved to another group has not changed.
    if (!has_group && short_old_key == without_group(setting.key)) continue;
    if ((has_group ? setting.old_key : short_old_key) == old_key) return setting.key;
  }
  return {};
}

std::string option_now(std::string_view old_option) {
  for (const RenamedSetting& option : options_of_0_1) {
    if (option.old_key == old_option) return std::string(option.key);
  }
  std::string old_key(old_option);
  std::replace(old_key.begin(), old_key.end(), '-', '_');
  const std::string_view key = key_now(old_key);
  // An option with a group is the key of the setting itself: --train.rate is --train.learning_rate now.
  if (old_option.find('.') != old_option.npos) return std::string(key);
  std::string out(without_group(key));
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::string_view metric_now(std::string_view name) { return name == "rate" ? "learning_rate" : name; }

}  // namespace heed
