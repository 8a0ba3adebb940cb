// Integer settings: each declares its range, errors and help name it, and what is legal ends in an estimate.
#include <set>
#include <span>

#include "heed/tests/catch.h"
#include "heed/tests/train/shell.h"
#include "heed/train/commands/command.h"
#include "heed/train/config/config.h"
#include "heed/train/pages/pages.h"
#include "heed/train/tasks/registry.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// Settings of the data that are generated. Their largest values are bounded by memory, and a test would take
/// minutes to draw so much; with depth or arguments of 100 nearly all drawn expressions of ListOps are too
/// long, and finding 240 that are not takes minutes too.
const std::set<std::string> volumes{"data.num_examples", "data.validation", "data.test_size",
                                    "data.shortest",     "data.below",      "data.up_to",
                                    "data.depth",        "data.arguments"};

/// Settings that decide the size of a batch, which every task makes in its own way.
const std::set<std::string> batch_sizes{"train.batch_size", "train.batch_tokens", "model.max_length"};

/// A config of a task with little data.
Config small_config(const TaskEntry& entry) {
  Config config = parse_config(text("task = '", entry.name, "'\ntrain.max_steps = 2\n"), "test.toml");
  for (const auto& [name, value] : config.task->small_data()) config.set("data." + name, text(value), "");
  return config;
}

/// The integer settings of a task, without seeds that may be any number.
std::vector<OptionText> integers(Config& config) {
  std::vector<OptionText> out;
  for (const OptionText& option : options_of(config))
    if (option.kind == "integer" && option.name != "data.split_seed") out.push_back(option);
  return out;
}

std::string refusal_of(Config& config, const std::string& key, int64_t value) {
  try {
    config.set(key, text(value), "--set ");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::usage);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("setting ranges: every integer setting declares its own, and what is beyond is refused") {
  for (const TaskEntry& entry : tasks()) {
    Config config = small_config(entry);
    for (const OptionText& option : integers(config)) {
      CAPTURE(entry.name, option.name);
      REQUIRE(option.range);
      CHECK(option.range->min >= 0);
      for (const int64_t beyond : {int64_t{-1}, option.range->min - 1, option.range->max + 1}) {
        if (option.name == "train.seed" && beyond != -1) continue;  // up to the largest integer
        CHECK_THAT(refusal_of(config, option.name, beyond),
                   containing(text("--set ", option.name, " = ", beyond,
                                   " is not legal; it takes a whole number from ", option.range->min, " to ",
                                   option.range->max)));
      }
      CHECK(refusal_of(config, option.name, option.range->min) == "none");
      config.set(option.name, option.value, "");
    }
  }
}

TEST_CASE("setting ranges: what a program sets is checked against them too") {
  const auto refused = [](const char* task, auto&& change, const char* what) {
    Config config = parse_config(text("task = '", task, "'\ntrain.max_steps = 2\n"), "test.toml");
    change(config);
    CHECK_THROWS_WITH(config.check(), containing(what));
  };
  refused(
      "recall", [](Config& c) { c.model.layers = 0; }, "model.layers = 0. It must be 1 to 10000.");
  refused(
      "recall", [](Config& c) { c.train.keep_checkpoints = 0; },
      "train.keep_checkpoints = 0. It must be 1 to 1000000000.");
  refused(
      "recall", [](Config& c) { c.train.schedule.warmup_steps = -1; }, "train.warmup_steps = -1. It must");
  refused(
      "recall", [](Config& c) { c.decode.beam_size = 1001; },
      "decode.beam_size = 1001. It must be 1 to 1000.");
}

TEST_CASE("setting ranges: help and the page of settings name them") {
  const std::string page = settings_markdown();
  for (const char* words :
       {"blocks in each stack (1 to 10000) [1]", "hypotheses kept; 1: greedy (1 to 1000) [1]",
        "steps of linear warm-up (from 0) [100]", "must divide 28 (1 to 28) [7]"})
    CHECK_THAT(page, containing(words));
}

TEST_CASE("setting ranges: a billion and the largest legal value are refused, or end in an estimate",
          "[slow]") {
  Shell shell;
  shell.before = {"timeout", "-k", "5", "120"};
  for (const TaskEntry& entry : tasks()) {
    Config config = small_config(entry);
    std::vector<std::string> start{"train",    "task.toml", "--dry-run", "--threads",     "2",
                                   "--memory", "256M",      "--set",     "model.layers=1"};
    std::string toml = text("task = '", entry.name, "'\ntrain.max_steps = 2\ntrain.batch_size = 2\n");
    for (const auto& [name, value] : config.task->small_data())
      toml += text("data.", name, " = ", value, "\n");
    io::write(shell.scratch / "task.toml", toml);
    for (const OptionText& option : integers(config)) {
      // Model, training and decoding are the same for all tasks: the first has them all.
      const bool is_data = option.name.starts_with("data.");
      if (!is_data && !batch_sizes.contains(option.name) && &entry != &tasks().front()) continue;
      REQUIRE(option.range);
      std::set<int64_t> values{1'000'000'000};
      if (!volumes.contains(option.name)) values.insert(option.range->max);
      for (const int64_t value : values) {
        CAPTURE(entry.name, option.name, value);
        const Result result = shell.run(with(start, {"--set", text(option.name, "=", value)}));
        CAPTURE(result.out, result.err);
        if (value > option.range->max) {
          CHECK(result.code == static_cast<int>(Fault::usage));
          continue;
        }
        // An estimate, or why there is none: does not go with other settings, takes more than --memory
        // allows.
        if (result.code == 0)
          CHECK((result.out.find("# memory ") != std::string::npos ||
                 result.out.find("# estimate ") != std::string::npos));
        else
          CHECK((result.code == static_cast<int>(Fault::usage) ||
                 result.code == static_cast<int>(Fault::memory)));
      }
    }
  }
}

}  // namespace heed
