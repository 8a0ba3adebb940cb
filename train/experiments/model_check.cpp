// Builds the models of planned runs before any of them trains.
#include <set>

#include "heed/core/device.h"
#include "heed/core/io/files.h"
#include "heed/train/config/config.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/progress/progress.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// All settings except attentions and seed: configs in which these settings agree read the same data.
std::string data_settings(Config& config) {
  std::string out = config.task_name + "\n";
  for (const OptionText& option : options_of(config)) {
    if (!option.name.starts_with("attention.") && option.name != "train.seed")
      out += option.name + "=" + option.value + "\n";
  }
  return out;
}

}  // namespace

void ModelCheck::operator()(const PlannedRun& plan) {
  const DefaultDevice on_cpu(Device::cpu);  // a GPU is left to the trainings
  Config config = read_config(plan.plan, plan.name);
  config.check();
  if (const std::string settings = data_settings(config); settings != data_settings_) {
    data_settings_.clear();  // if loading fails, no data is read
    loaded_ = std::move(config);
    loaded_.task->load(loaded_, {}, [](const std::string&) {});
    data_settings_ = settings;
    config = read_config(plan.plan, plan.name);
  }
  Rng rng(static_cast<uint64_t>(plan.seed));
  loaded_.task->model(config, rng);
}

void build_models(const std::vector<const PlannedRun*>& plans, const ComparisonOptions& options,
                  Progress& progress, const std::function<void(size_t, const Error&)>& failed) {
  if (plans.size() < 2) return;  // a single training fails as early by itself
  const TimeBudget budget = options.budget.part(0.5);
  ModelCheck check;
  const double began = seconds_now();
  for (size_t i = 0; i < plans.size() && !budget.spent(); ++i) {
    stop_if_asked({});
    progress.work({.label = text("check ", i + 1, " of ", plans.size()),
                   .share = static_cast<double>(i) / static_cast<double>(plans.size()),
                   .seconds_left = -1,
                   .began = began});
    try {
      check(*plans[i]);
    } catch (const Error& error) {
      progress.erase();
      failed(i, error);
    }
  }
  progress.erase();
}

void check_models(const std::vector<PlannedRun>& plans, const ComparisonOptions& options) {
  std::set<std::string> labels;
  std::vector<const PlannedRun*> unchecked;
  for (const PlannedRun& plan : plans) {
    if (!has_begun(plan, options.folder) && labels.insert(plan.label).second) unchecked.push_back(&plan);
  }
  Progress progress;
  progress.quiet = options.quiet;
  build_models(unchecked, options, progress, [&](size_t i, const Error& error) {
    throw Error(error.fault(),
                text("compare: ", unchecked[i]->label, " cannot be trained, so nothing was: ", error.what()));
  });
}

}  // namespace heed
