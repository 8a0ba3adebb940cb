// Makes the callback of train.maps_every, and describes the snapshots that it stored.
#include "heed/train/session/session_maps.h"

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/byte_text.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {

MapSnapshotCallback make_map_snapshot_callback(const Config& config, const RunFolder& folder) {
  const std::string given = config.train.maps_of;
  const std::string input = given.empty() ? map_provider(*config.task).example_text() : given;
  return MapSnapshotCallback(
      folder.path(),
      {.every = config.train.maps_every, .max_snapshots = config.train.maps_keep, .input = input},
      [task = config.task.get(), input](Module& model, std::string& caption) {
        return map_provider(*task).maps(model, input, caption);
      });
}

std::string describe_snapshots(const MapSnapshotCallback& maps, const RunFolder& folder, double seconds) {
  const double share = seconds > 0 ? 100 * maps.seconds() / seconds : 0;
  return text(list_map_snapshots(folder.path()).size(), " steps kept in ",
              map_snapshots_folder(folder.path()).string(), ", ", bytes_text(maps.bytes()), " each; ",
              maps.count(), " took ", picture::fixed(maps.seconds(), 2), " s, ", picture::fixed(share, 1),
              " % of the training");
}

}  // namespace heed
