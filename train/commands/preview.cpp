// An estimate in words.
#include "train/commands/preview.h"

#include <cstdio>

#include "core/io.h"
#include "core/json.h"
#include "train/estimate.h"
#include "train/task.h"

namespace heed {

void print_estimate(const Config& config) {
  std::puts("");
  try {
    config.task->load(config, {}, [](const std::string&) {});
  } catch (const Error& error) {
    std::printf("# estimate     needs the data: %s\n", error.what());
    return;
  }
  const int64_t steps = steps_of(config);
  for (const auto& [label, words] : words_of(estimate_run(config), steps))
    std::printf("# %-12s %s\n", label.c_str(), words.c_str());
}

void print_estimate_json(const Config& config) {
  config.task->load(config, {}, [](const std::string&) {});
  const int64_t steps = steps_of(config);
  Json facts = estimate_facts(estimate_run(config));
  facts.set("steps", steps);
  io::print(facts.dump() + "\n");
}

}  // namespace heed
