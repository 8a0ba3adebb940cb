// Keeps attention maps during training: train.maps_every.
#pragma once

#include <string>

#include "heed/train/config/config.h"
#include "heed/train/loop/map_snapshot_callback.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// Makes the callback that keeps maps of the input train.maps_of. The task must be loaded, and outlive it.
MapSnapshotCallback keep_maps_callback(const Config& config, const RunFolder& folder);

/// Reports how many maps are kept and what they took: "41 steps kept in RUN/maps, ...". `seconds`: the time
/// of the training.
std::string kept_words(const MapSnapshotCallback& maps, const RunFolder& folder, double seconds);

}  // namespace heed
