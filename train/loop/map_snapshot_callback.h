// Stores attention maps of one input while a model trains, to see heads form.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/attention/inspect/map_view.h"
#include "heed/train/loop/train_callback.h"
#include "heed/train/run/map_snapshots.h"

namespace heed {

/// A callback that writes the maps of step 0, `every`, 2 `every`, ... into RUN/maps. When there would be more
/// than `max_snapshots`, every second one is removed and `every` doubles, so the folder stays within
/// max_snapshot_bytes. The maps that are stored after a step depend on that step alone, so a resumed run
/// stores those that an uninterrupted one does. The main process alone computes the maps, without dropout and
/// gradients; the weights have the same bits with and without this callback. `heed inspect RUN
/// --through-training` shows them.
class MapSnapshotCallback final : public TrainCallback {
 public:
  /// Computes the maps of the input and sets the caption: "the input -> the model's output". In fit(),
  /// `model` only lists the tensors: the function uses the program's own model.
  using Compute = std::function<std::vector<MapView>(Module& model, std::string& caption)>;

  /// How often maps are stored, and of which input.
  struct Options {
    int64_t every = 1;            ///< steps between maps
    int64_t max_snapshots = 100;  ///< steps whose maps are stored at most, at least 2
    std::string input = {};       ///< names the input: maps of another one in the folder are refused
  };

  /// `run`: the run folder, made where it is missing. Fails for options out of range.
  MapSnapshotCallback(Path run, Options options, Compute compute);

  /// Removes maps of later steps, and stores those of this one where they are due. Fails where the folder has
  /// maps of another input.
  void before_training(const TrainContext& context) override;
  /// Stores the maps of this step where they are due.
  void after_step(const TrainContext& context, const StepResult& result) override;

  int64_t count() const { return count_; }     ///< maps written in this session
  int64_t bytes() const { return bytes_; }     ///< bytes of the last file
  double seconds() const { return seconds_; }  ///< seconds spent on maps in this session

 private:
  void store_if_due(const TrainContext& context);

  Path run_;
  Options options_;
  Compute compute_;
  int64_t count_ = 0, bytes_ = 0;
  double seconds_ = 0;
};

}  // namespace heed
