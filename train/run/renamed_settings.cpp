// The table of renamed settings, and what is looked up in it.
#include "heed/train/run/renamed_settings.h"

#include <algorithm>

namespace heed {
namespace {

constexpr RenamedSetting table[] = {
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

/// Options that are no settings, or whose short name is not that of the key.
constexpr RenamedSetting options[] = {
    {"rate", "lr"},
    {"longest", "data.max-length"},
    {"tokens", "max-new-tokens"},
    {"samples", "num-samples"},
    {"ckpt", "checkpoint"},
};

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

std::span<const RenamedSetting> renamed_settings() { return table; }

std::string_view key_now(std::string_view old_key) {
  const bool whole = old_key.find('.') != old_key.npos;
  const auto found = std::find_if(std::begin(table), std::end(table), [&](const RenamedSetting& one) {
    // What only moved to another group is found there by its short name already.
    if (!whole && last_part(one.old_key) == last_part(one.key)) return false;
    return (whole ? one.old_key : last_part(one.old_key)) == old_key;
  });
  return found == std::end(table) ? std::string_view() : found->key;
}

std::string option_now(std::string_view old_option) {
  for (const RenamedSetting& one : options) {
    if (one.old_key == old_option) return std::string(one.key);
  }
  std::string key(old_option);
  std::replace(key.begin(), key.end(), '-', '_');
  const std::string_view now = key_now(key);
  if (old_option.find('.') != old_option.npos) return std::string(now);
  std::string out(last_part(now));
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::string_view metric_now(std::string_view name) { return name == "rate" ? "learning_rate" : name; }

}  // namespace heed
