// Map snapshots: attention maps of one input that a run stores while it trains, in files named
// RUN/maps/step_000400.safetensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/attention/inspect/map_view.h"
#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/core/error.h"

namespace heed {

/// Maximum bytes of all map snapshots of a run together, and so of a page of them. Larger maps are pooled.
inline constexpr int64_t max_snapshot_bytes = int64_t{16} << 20;

/// Statistics of a head at one step, computed from the map before pooling.
struct HeadSnapshot {
  double entropy = 0;          ///< mean over rows, in nats
  double uniform_entropy = 0;  ///< mean entropy over rows for equal weights
  double confidence = 0;       ///< mean largest weight
  double diagonal = 0;         ///< mean weight of key i for query i
  double previous = 0;         ///< mean weight of key i - 1
  double next = 0;             ///< mean weight of key i + 1
  double induction = 0;        ///< induction_score(); NaN where no token occurs twice
};

/// The maps of one step.
struct MapSnapshot {
  int64_t step = 0;       ///< steps taken; 0: the untrained model
  std::string input{};    ///< the input, in the form that MapProvider::maps() takes
  std::string caption{};  ///< caption by MapProvider::maps(); it may hold the model's output of this step
  std::vector<MapView> maps{};                   ///< all maps of the model; long ones are pooled
  std::vector<std::vector<HeadSnapshot>> heads;  ///< [maps][heads]
};

/// Mean weight on the token behind the latest earlier occurrence of the query's token, over the queries whose
/// token occurred before (Olsson et al. 2022, arXiv 2209.11895). NaN where no token occurs twice, and for a
/// map that is not of self-attention.
double induction_score(const MapView& map, int64_t head);

/// Number of steps between the snapshots that a run keeps at `step`: `every`, doubled until steps 0 to `step`
/// have at most `max_snapshots`.
int64_t snapshot_interval(int64_t step, int64_t every, int64_t max_snapshots);

/// RUN/maps.
Path map_snapshots_folder(const Path& run);
/// The steps with a snapshot, ascending.
std::vector<int64_t> list_map_snapshots(const Path& run);
/// Writes the maps of a step, pooled into max_snapshot_bytes / `max_snapshots` bytes, with the statistics of
/// the maps before pooling. Returns the bytes of the file. Fault::file where RUN/maps is no folder.
int64_t write_map_snapshot(const Path& run, int64_t step, const std::string& input,
                           const std::string& caption, const std::vector<MapView>& maps,
                           int64_t max_snapshots);
/// Reads the maps of a step; Fault::data where the file is damaged, Fault::file where there is none.
MapSnapshot read_map_snapshot(const Path& run, int64_t step);
/// Removes the maps of a step; nothing happens when there are none.
void remove_map_snapshot(const Path& run, int64_t step);

}  // namespace heed
