// Maps through training: a page with a slider over the steps that a run kept, and an animated SVG.
#pragma once

#include <string>
#include <vector>

#include "heed/train/report/chart.h"
#include "heed/train/run/map_snapshots.h"

namespace heed {

/// What a page or a picture of maps through training shows.
struct TrainingMaps {
  std::string title{};                ///< title of the page: name of the run folder
  std::vector<MapSnapshot> frames{};  ///< by ascending step; all have the same maps with the same heads
  std::vector<Series> loss{};         ///< curves over steps: training and validation
};

/// Reads all maps that the run kept, and its loss. Fails where it kept none, naming train.maps_every, and as
/// check() does.
TrainingMaps read_training_maps(const Path& run);

/// Fault::data where there is no frame, or frames differ in their maps.
void check(const TrainingMaps& training);

/// A self-contained page: loss with a marker, a slider with a play button, all heads at the chosen step, one
/// head with its tokens, and a statistic of each head over steps. The weights are those kept, bit for bit
/// (f32).
std::string training_page(const TrainingMaps& training);

/// Settings of the animated picture.
struct AnimationOptions {
  double seconds = 10;      ///< seconds that one round takes
  int64_t max_frames = 40;  ///< frames at most: of more, evenly chosen ones, the first and the last included
  int64_t max_side = 32;    ///< tokens a side; longer maps are drawn in tiles
};

/// An SVG file that plays all heads of one kind (cross-attention where there is some) from the first frame to
/// the last and begins again, with the loss above: shapes and SMIL animation alone, for slides and browsers.
std::string training_svg(const TrainingMaps& training, const AnimationOptions& options = {});

}  // namespace heed
