// Names settings in errors, with the members of FitOptions and DataLoaderOptions that fit() fills a Config
// from.
#include "heed/train/config/setting_name.h"

#include <algorithm>

#include "heed/core/error.h"
#include "heed/core/settings_in_errors.h"

namespace heed {
namespace {

struct FitSetting {
  std::string_view key;     // name of the setting without "train."
  std::string_view member;  // member of FitOptions, unless it names another class
};

constexpr FitSetting fit_settings[] = {
    {"seed", "seed"},
    {"max_steps", "steps"},
    {"epochs", "epochs"},
    {"batch_size", "DataLoaderOptions::batch_size"},
    {"grad_accumulation", "grad_accumulation"},
    {"precision", "precision"},
    {"schedule", "schedule.kind"},
    {"learning_rate", "schedule.learning_rate"},
    {"warmup_steps", "schedule.warmup_steps"},
    {"min_lr_ratio", "schedule.min_lr_ratio"},
    {"decay_share", "schedule.decay_share"},
    {"decay_shape", "schedule.decay_shape"},
    {"cycle_momentum", "schedule.cycle_momentum"},
    {"optimizer", "optimizer.kind"},
    {"beta1", "optimizer.beta1"},
    {"beta2", "optimizer.beta2"},
    {"epsilon", "optimizer.epsilon"},
    {"momentum", "optimizer.momentum"},
    {"hidden_rate", "optimizer.hidden_rate"},
    {"muon_momentum", "optimizer.muon.momentum"},
    {"newton_schulz_steps", "optimizer.muon.newton_schulz_steps"},
    {"muon_scaling", "optimizer.muon.scaling"},
    {"weight_decay", "optimizer.weight_decay"},
    {"decay_vectors", "optimizer.decay_vectors"},
    {"grad_clip", "optimizer.grad_clip"},
    {"grad_clip_value", "optimizer.grad_clip_value"},
    {"ema", "optimizer.ema"},
    {"groups", "optimizer.groups"},
    {"validate_every", "validate_every"},
    {"keep_checkpoints", "keep_checkpoints"},
    {"patience", "patience"},
    {"stop_score", "stop_score"},
    {"time_limit", "time_limit"},
    {"on_nan", "on_nan"},
    {"overfit_batches", "overfit_batches"},
};

}  // namespace

std::string setting_name(std::string_view key) {
  constexpr std::string_view group = "train.";
  if (settings_source() != SettingsSource::fit || !key.starts_with(group)) return std::string(key);
  const auto* const found = std::ranges::find(fit_settings, key.substr(group.size()), &FitSetting::key);
  if (found == std::end(fit_settings)) return std::string(key);
  return found->member.find("::") != std::string_view::npos ? std::string(found->member)
                                                            : text("FitOptions::", found->member);
}

std::string setting_advice(std::string_view key, std::string_view option, int64_t value, int64_t now) {
  if (settings_source() == SettingsSource::command_line)
    return text(option, " ", value, " (", key, ", now ", now, ")");
  return text(setting_name(key), " = ", value, " (now ", now, ")");
}

}  // namespace heed
