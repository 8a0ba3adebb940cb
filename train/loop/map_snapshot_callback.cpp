// Computes and writes the attention maps that a run stores, and removes those that are no longer due.
#include "heed/train/loop/map_snapshot_callback.h"

#include <utility>

#include "heed/autograd/tape.h"
#include "heed/core/io/files.h"
#include "heed/core/settings_in_errors.h"
#include "heed/train/progress/progress.h"

namespace heed {

MapSnapshotCallback::MapSnapshotCallback(Path run, Options options, Compute compute)
    : run_(std::move(run)), options_(std::move(options)), compute_(std::move(compute)) {
  snapshot_interval(0, options_.every, options_.max_snapshots);  // fails for options out of range
}

void MapSnapshotCallback::before_training(const TrainContext& context) {
  if (!context.group.is_main()) return;
  for (const int64_t step : list_map_snapshots(run_)) {
    if (step > context.step) {
      remove_map_snapshot(run_, step);
      continue;
    }
    const std::string input = read_map_snapshot(run_, step).input;
    if (input != options_.input)
      fail("train.maps_of: ", map_snapshots_folder(run_), " has maps of another input, '", shown(input, 200),
           "' and not '", shown(options_.input, 200), "'. Resume with that one (",
           advice("--maps-of", "MapSnapshotCallback::Options::input"), "), or remove the folder.");
  }
  io::make_directories(run_);
  store_if_due(context);
}

void MapSnapshotCallback::after_step(const TrainContext& context, const StepResult&) {
  if (context.group.is_main()) store_if_due(context);
}

void MapSnapshotCallback::store_if_due(const TrainContext& context) {
  const int64_t interval = snapshot_interval(context.step, options_.every, options_.max_snapshots);
  if (context.step % interval != 0) return;
  const double began = seconds_now();
  const NoGrad no_grad;
  std::string caption;
  const std::vector<MapView> maps = compute_(context.model, caption);
  bytes_ = write_map_snapshot(run_, context.step, options_.input, caption, maps, options_.max_snapshots);
  for (const int64_t step : list_map_snapshots(run_)) {
    if (step % interval != 0) remove_map_snapshot(run_, step);
  }
  ++count_;
  seconds_ += seconds_now() - began;
}

}  // namespace heed
