// Changes the settings of a config for a short run.
#include "heed/train/config/debug_runs.h"

#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// Sets a key for the option `who`. Fails if the command line has set another value.
void override_setting(Config& config, const std::string& key, const std::string& value,
                      const std::string& who) {
  std::string present;
  for (const OptionText& option : options_of(config)) {
    if (option.name == key) present = option.value;
  }
  if (present == value) return;
  if (config.is_on_command_line(key))
    fail(config.origin.at(key).words, key, " = ", present, ", but ", who, " sets it to ", value,
         ". Take one of them out.");
  config.set(key, value, who + ": ");
}

}  // namespace

void fast_dev_run(Config& config) {
  const std::string who = "--fast-dev-run";
  override_setting(config, "train.epochs", "0", who);
  override_setting(config, "train.max_steps", "2", who);
  if (config.train.pretrain != Pretrain::none) override_setting(config, "train.pretrain_steps", "2", who);
  override_setting(config, "train.validate_every", "1", who);
  override_setting(config, "train.patience", "0", who);
  override_setting(config, "train.time_limit", "0", who);
  for (const auto& [key, value] : config.task->small_data())
    config.set("data." + key, text(value), who + ": ");
}

void overfit(Config& config, int64_t batches) {
  if (batches < 1 || batches > max_grad_accumulation)
    fail("--overfit ", batches, ": it must be 1 to ", max_grad_accumulation, " batches.");
  if (config.train.pretrain != Pretrain::none)
    fail("--overfit ", batches, ": train.pretrain would train on all data before. Add --pretrain none",
         " --pretrain-steps 0.");
  const std::string who = text("--overfit ", batches);
  override_setting(config, "model.dropout", "0", who);
  override_setting(config, "model.attention_dropout", "0", who);
  override_setting(config, "model.embedding_dropout", "0", who);
  override_setting(config, "train.label_smoothing", "0", who);
  config.set("train.overfit_batches", text(batches), who + ": ");
}

}  // namespace heed
