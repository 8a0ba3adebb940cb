// Map snapshots during training: train.maps_every.
#pragma once

#include <string>

#include "heed/train/config/config.h"
#include "heed/train/loop/map_snapshot_callback.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// Makes the callback that stores maps of the input train.maps_of. The task must be loaded, and outlive it.
MapSnapshotCallback make_map_snapshot_callback(const Config& config, const RunFolder& folder);

/// Describes the stored snapshots, their bytes and the time that they took: "41 steps kept in RUN/maps, ...".
/// `seconds`: the time of the training.
std::string describe_snapshots(const MapSnapshotCallback& maps, const RunFolder& folder, double seconds);

}  // namespace heed
