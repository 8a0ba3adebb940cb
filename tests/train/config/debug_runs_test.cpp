// Short runs of development: what they set, and what they refuse.
#include "heed/train/config/debug_runs.h"

#include "heed/tests/catch.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/task.h"

using namespace heed;

namespace {

std::string value_of(Config& config, const std::string& key) {
  for (const OptionText& option : options_of(config)) {
    if (option.name == key) return option.value;
  }
  return "no such key";
}

}  // namespace

TEST_CASE("development: a fast run has two steps, two validations and few data, in every preset") {
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    Config config = preset_config(preset.name);
    Config before = preset_config(preset.name);
    fast_dev_run(config);
    config.check();
    CHECK(config.train.max_steps == 2);
    CHECK(config.train.epochs == 0);
    CHECK(config.train.validate_every == 1);
    const auto small = config.task->small_data();
    CHECK(!small.empty());
    for (const auto& [key, value] : small) {
      CAPTURE(key);
      CHECK(value_of(config, "data." + key) == text(value));
      const std::string was = value_of(before, "data." + key);
      CHECK((was == "0" || value <= std::stoll(was)));
    }
  }
}

TEST_CASE("development: a length of the command line and a fast run refuse each other") {
  Config config = make_config("recall");
  config.set("train.max_steps", "50", "--steps: ", SetBy::command_line);
  CHECK_THROWS_WITH(fast_dev_run(config),
                    containing("--steps: train.max_steps = 50") && containing("--fast-dev-run sets it to 2"));
  config.set("train.max_steps", "2", "--steps: ", SetBy::command_line);  // says the same
  fast_dev_run(config);
  CHECK(config.train.max_steps == 2);
}

TEST_CASE("development: to overfit switches dropout and smoothing off, and refuses who asks for them") {
  Config config = make_config("translate");
  config.set("model.dropout", "0.2", "my.toml:3:1: ");
  config.set("train.label_smoothing", "0.1", "my.toml:4:1: ");
  config.set("model.embedding_dropout", "0.2", "my.toml:5:1: ");
  overfit(config, 3);
  config.check();
  CHECK(config.train.overfit_batches == 3);
  CHECK(config.model.dropout == 0);
  CHECK(value_of(config, "model.attention_dropout") == "0");
  CHECK(value_of(config, "model.embedding_dropout") == "0");
  CHECK(config.train.label_smoothing == 0);

  Config asks = make_config("translate");
  asks.set("model.dropout", "0.3", "--dropout: ", SetBy::command_line);
  CHECK_THROWS_WITH(overfit(asks, 3),
                    containing("--dropout: model.dropout = 0.3, but --overfit 3 sets it to 0"));
  Config other = make_config("lra-text");
  CHECK_THROWS_WITH(overfit(other, 0), containing("--overfit 0: it must be 1 to"));
  CHECK_THROWS_WITH(overfit(other, -1), containing("--overfit -1"));
  other.set("train.pretrain", "masked", "");
  other.set("train.pretrain_steps", "5", "");
  CHECK_THROWS_WITH(overfit(other, 1), containing("--pretrain none"));
  other.set("train.overfit_batches", "1", "");
  CHECK_THROWS_WITH(other.check(), containing("train.overfit_batches = 1, but train.pretrain"));
}
