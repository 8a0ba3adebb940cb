// An estimate in words.
#include "heed/train/session/dry_run.h"

#include <cstdio>
#include <optional>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/train/config/config.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/loop/run_estimate.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// Of what comes before the run's own training; none where nothing does.
std::optional<Estimate> estimate_before(Config& config) {
  if (config.train.pretrain == Pretrain::none) return std::nullopt;
  const Config before = pretraining_config(config);
  before.task->load(before, {}, [](const std::string&) {});
  return estimate_run(before);
}

}  // namespace

void print_estimate(Config& config, const ParsedArguments& arguments) {
  io::print("\n");
  io::flush_output();
  cap_to_free_memory({.device_given = arguments.has("memory")});
  try {
    config.task->load(config, {}, [](const std::string&) {});
  } catch (const Error& error) {
    io::printf("# estimate     needs the data: %s\n", error.what());
    return;
  }
  io::print("# measuring memory and time of the largest batches\n");
  io::flush_output();
  const int64_t steps = steps_of(config);
  for (const auto& [label, words] : estimate_lines(estimate_run(config), steps))
    io::printf("# %-12s %s\n", label.c_str(), words.c_str());
  const std::optional<Estimate> before = estimate_before(config);
  if (!before) return;
  for (const auto& [label, words] : estimate_lines(*before, config.train.pretrain_steps)) {
    if (label == "time") io::printf("# %-12s before that, %s\n", "pre-training", words.c_str());
  }
}

void print_estimate_json(Config& config, const ParsedArguments& arguments) {
  cap_to_free_memory({.device_given = arguments.has("memory")});
  config.task->load(config, {}, [](const std::string&) {});
  const int64_t steps = steps_of(config);
  Json metadata = estimate_json(estimate_run(config));
  if (const std::optional<Estimate> before = estimate_before(config)) {
    metadata.set("pretraining", estimate_json(*before));
    metadata.set("seconds_of_steps", metadata.at("seconds_of_steps").real() + before->seconds);
    metadata.set("seconds", metadata.at("seconds").real() + before->whole());
  }
  metadata.set("steps", steps);
  io::print_data(metadata.dump() + "\n");
}

}  // namespace heed
