// Settings that heed 0.1 had under another name: the table, and what is said of an old name.
#include "heed/train/run/renamed_settings.h"

#include <cstdlib>
#include <set>

#include "heed/core/io/files.h"
#include "heed/tests/train/shell.h"
#include "heed/train/config/config.h"
#include "heed/train/session/setting_options.h"
#include "heed/train/tasks/registry.h"
#include "heed/train/tasks/task.h"

using namespace heed;

namespace {

std::set<std::string> every_key() {
  std::set<std::string> keys;
  for (const TaskEntry& entry : tasks()) {
    Config config;
    config.task = entry.make();
    for (const OptionText& option : options_of(config)) keys.insert(option.name);
  }
  return keys;
}

}  // namespace

TEST_CASE("renamed settings: each old key is gone, and each present one is there") {
  const std::set<std::string> keys = every_key();
  for (const RenamedSetting& one : renamed_settings()) {
    CAPTURE(one.old_key);
    CHECK_FALSE(keys.contains(std::string(one.old_key)));
    CHECK(keys.contains(std::string(one.key)));
    CHECK(key_now(one.old_key) == one.key);
  }
  CHECK(key_now("train.learning_rate").empty());
  CHECK(key_now("train.nothing").empty());
  CHECK(key_now("pool").empty());
}

TEST_CASE("renamed settings: no option of today has the name of an old one") {
  for (const Setting& setting : settings()) {
    CAPTURE(setting.option);
    for (const std::string& name : {setting.option, setting.key}) CHECK(option_now(name).empty());
  }
  CHECK(option_now("rate") == "lr");
  CHECK(option_now("clip-each") == "grad-clip-value");
  CHECK(option_now("train.rate") == "train.learning_rate");
  CHECK(option_now("data.pool") == "model.pool");
  CHECK(option_now("pool").empty());
}

TEST_CASE("renamed settings: --set, a file and a variable are told the present name") {
  Config config = make_config("lm");
  CHECK_THROWS_WITH(config.set("train.rate", "1e-3", "--set "),
                    "--set train.rate is called train.learning_rate now. Write train.learning_rate = 1e-3.");
  CHECK_THROWS_WITH(config.set("rate", "1e-3", "--set "), containing("train.learning_rate"));
  CHECK_THROWS_WITH(config.set("data.pool", "first", "--set "), containing("model.pool"));
  const Scratch scratch;
  const Path file = scratch / "old.toml";
  io::write(file, "preset = \"lm\"\n[train]\nrate = 1e-3\n");
  CHECK_THROWS_WITH(make_config(file.string()),
                    containing("old.toml:3:8: train.rate is called train.learning_rate now."));
  ::setenv("HEED_TRAIN_RATE", "1e-3", 1);
  CHECK_THROWS_WITH(make_config("lm"),
                    "the variable HEED_TRAIN_RATE is called HEED_TRAIN_LEARNING_RATE now.");
  ::unsetenv("HEED_TRAIN_RATE");
}

TEST_CASE("renamed settings: an old option is told the present one, where the command has it") {
  const Shell shell;
  check_refused(shell, {"train", "lm", "--rate", "1e-3"}, 2, {"option --rate is called --lr now."});
  check_refused(shell, {"train", "lm", "--train.rate=1e-3"}, 2,
                {"--train.rate", "--train.learning_rate now"});
  check_refused(shell, {"train", "lm", "--clip-each", "1"}, 2, {"--grad-clip-value now"});
  check_refused(shell, {"generate", "runs/a", "--tokens", "5"}, 2, {"--max-new-tokens now"});
  check_refused(shell, {"evaluate", "runs/a", "--ckpt", "5"}, 2, {"--checkpoint now"});
  check_refused(shell, {"evaluate", "runs/a", "--rate", "5"}, 2, {"option --rate is unknown."});
}

TEST_CASE("renamed settings: a config of a run is read under old names") {
  const Config config = read_config(
      "task = \"mnist\"\n[model]\nwidth = 24\n[data]\npool = \"first\"\nimages = 300\n"
      "held_out = 31\n[train]\nrate = 0.5\nsteps = 7\n",
      "config.toml");
  CHECK(config.model.d_model == 24);
  CHECK(config.train.schedule.learning_rate == 0.5);
  CHECK(config.train.max_steps == 7);
  std::set<std::string> values;
  Config copy = read_config("task = \"mnist\"\n[data]\npool = \"first\"\nimages = 300\nheld_out = 31\n", "a");
  for (const OptionText& option : options_of(copy)) values.insert(option.name + "=" + option.value);
  CHECK(values.contains("model.pool=first"));
  CHECK(values.contains("data.num_examples=300"));
  CHECK(values.contains("data.test_size=31"));
}
