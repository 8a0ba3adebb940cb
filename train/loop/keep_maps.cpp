// Computes, thins out and writes the maps that a run keeps.
#include "heed/train/loop/keep_maps.h"

#include <utility>

#include "heed/autograd/tape.h"
#include "heed/core/io/files.h"
#include "heed/train/loop/progress.h"

namespace heed {

KeepMaps::KeepMaps(Path run, Options options, Compute compute)
    : run_(std::move(run)), options_(std::move(options)), compute_(std::move(compute)) {
  kept_interval(0, options_.every, options_.most);  // refuses what is out of range
}

void KeepMaps::before_training(const TrainContext& context) {
  if (!context.group.is_main()) return;
  for (const int64_t step : list_kept_maps(run_)) {
    if (step > context.step) {
      drop_kept_maps(run_, step);
      continue;
    }
    const std::string input = read_kept_maps(run_, step).input;
    if (input != options_.input) {
      fail("train.maps_of: ", kept_maps_folder(run_), " has maps of another input, '", shown(input, 200),
           "' and not '", shown(options_.input, 200),
           "'. Resume with that one (--maps-of), or remove the folder.");
    }
  }
  io::make_directories(run_);
  keep(context);
}

void KeepMaps::after_step(const TrainContext& context, const StepResult&) {
  if (context.group.is_main()) keep(context);
}

void KeepMaps::keep(const TrainContext& context) {
  const int64_t interval = kept_interval(context.step, options_.every, options_.most);
  if (context.step % interval != 0) return;
  const double began = seconds_now();
  const NoGrad no_grad;
  std::string caption;
  const std::vector<MapView> maps = compute_(context.model, caption);
  bytes_ = write_kept_maps(run_, context.step, options_.input, caption, maps, options_.most);
  for (const int64_t step : list_kept_maps(run_)) {
    if (step % interval != 0) drop_kept_maps(run_, step);
  }
  ++count_;
  seconds_ += seconds_now() - began;
}

}  // namespace heed
