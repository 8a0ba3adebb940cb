// Estimates what a run would take.
#include "heed/train/session/dry_run.h"

#include <optional>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/table_text.h"
#include "heed/train/loop/machine_memory.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/loop/run_estimate.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// The estimate of pre-training; none where the run has none.
std::optional<Estimate> estimate_before(Config& config) {
  if (config.train.pretrain == Pretrain::none) return std::nullopt;
  const Config before = pretraining_config(config);
  before.task->load(before, {}, [](const std::string&) {});
  return estimate_run(before);
}

/// Prints a comment of TOML, each line of which begins with '#'.
void print_comment(const std::string& label, const std::string& words) {
  const std::string begin = "# " + label + std::string(label.size() < 12 ? 12 - label.size() : 0, ' ');
  io::print(folded(begin + " " + words, output_columns(), "#" + std::string(begin.size(), ' ')));
}

}  // namespace

void print_estimate(Config& config, const ParsedArguments& arguments) {
  io::print("\n");
  io::flush_output();
  cap_to_free_memory({.device_given = arguments.has("memory")});
  try {
    config.task->load(config, {}, [](const std::string&) {});
  } catch (const Error& error) {
    print_comment("estimate", text("needs the data: ", error.what()));
    return;
  }
  io::print("# measuring memory and time of the largest batches\n");
  io::flush_output();
  const int64_t steps = steps_of(config);
  for (const auto& [label, words] : estimate_lines(estimate_run(config), steps)) print_comment(label, words);
  const std::optional<Estimate> before = estimate_before(config);
  if (!before) return;
  for (const auto& [label, words] : estimate_lines(*before, config.train.pretrain_steps)) {
    if (label == "time") print_comment("pre-training", "before that, " + words);
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
