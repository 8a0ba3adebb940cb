// The maps that a session of `heed train` or `heed resume` keeps on the way: train.maps_every.
#pragma once

#include <string>

#include "heed/train/config/config.h"
#include "heed/train/loop/map_snapshot_callback.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// The callback that keeps maps of train.maps_of as the task computes them. The task is loaded, and outlives
/// it.
MapSnapshotCallback maps_on_the_way(const Config& config, const RunFolder& folder);

/// How many are kept and what they took: "41 steps kept in RUN/maps, ...". `seconds`: of the training.
std::string kept_words(const MapSnapshotCallback& maps, const RunFolder& folder, double seconds);

}  // namespace heed
