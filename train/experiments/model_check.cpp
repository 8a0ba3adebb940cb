// Builds the models of planned runs before any of them trains.
#include <set>

#include "heed/core/device.h"
#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/data/text/text.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/loop/progress.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// All settings but those of attentions, and the seed: what they leave the same reads the same data.
std::string data_settings(Config& config) {
  std::string out = config.task_name + "\n";
  for (const OptionText& option : options_of(config)) {
    if (!option.name.starts_with("attention.") && option.name != "train.seed")
      out += option.name + "=" + option.value + "\n";
  }
  return out;
}

/// The plans whose models could be built, as an earlier call left them that was stopped before it had built
/// all.
class CheckedPlans {
 public:
  explicit CheckedPlans(const Path& folder) : file_(folder / "checked-models.txt") {
    if (!io::exists(file_)) return;
    const std::string content = io::read_text(file_);
    for (const std::string_view line : split_lines(content)) digests_.emplace(line);
  }
  bool contains(const PlannedRun& plan) const { return digests_.contains(sha256_hex(plan.plan)); }
  void add(const PlannedRun& plan) { digests_.insert(sha256_hex(plan.plan)); }
  void save() const {
    if (digests_.empty()) return;
    io::make_directories(file_.parent_path());
    std::string content;
    for (const std::string& digest : digests_) content += digest + "\n";
    io::write(file_, content);
  }

 private:
  Path file_;
  std::set<std::string> digests_;
};

}  // namespace

void ModelCheck::operator()(const PlannedRun& plan) {
  const DefaultDevice on_cpu(Device::cpu);  // a GPU is left to the trainings
  Config config = read_config(plan.plan, plan.name);
  config.check();
  if (const std::string settings = data_settings(config); settings != data_) {
    data_.clear();  // until they are read
    loaded_ = std::move(config);
    loaded_.task->load(loaded_, {}, [](const std::string&) {});
    data_ = settings;
    config = read_config(plan.plan, plan.name);
  }
  Rng rng(static_cast<uint64_t>(plan.seed));
  loaded_.task->model(config, rng);
}

void build_models(const std::vector<const PlannedRun*>& plans, const ComparisonOptions& place,
                  Progress& progress, const std::function<void(size_t, const Error&)>& failed) {
  if (plans.size() < 2) return;  // its training says it as soon
  CheckedPlans checked(place.folder);
  ModelCheck check;
  const double began = seconds_now();
  for (size_t i = 0; i < plans.size(); ++i) {
    if (checked.contains(*plans[i])) continue;
    try {
      stop_if_asked(place.budget);
    } catch (const Stopped&) {
      progress.erase();
      checked.save();
      throw;
    }
    progress.work({.label = text("check ", i + 1, " of ", plans.size()),
                   .share = static_cast<double>(i) / static_cast<double>(plans.size()),
                   .seconds_left = -1,
                   .began = began});
    try {
      check(*plans[i]);
      checked.add(*plans[i]);
    } catch (const Error& error) {
      progress.erase();
      failed(i, error);
    }
  }
  progress.erase();
}

void check_models(const std::vector<PlannedRun>& plans, const ComparisonOptions& place) {
  std::set<std::string> labels;
  std::vector<const PlannedRun*> first;
  for (const PlannedRun& plan : plans) {
    const bool has_begun = io::exists(folder_of(plan, place.folder) / "config.toml");
    if (!has_begun && labels.insert(plan.label).second) first.push_back(&plan);
  }
  Progress progress;
  progress.quiet = place.quiet;
  build_models(first, place, progress, [&](size_t i, const Error& error) {
    throw Error(error.fault(),
                text("compare: ", first[i]->label, " cannot be trained, so nothing was: ", error.what()));
  });
}

}  // namespace heed
