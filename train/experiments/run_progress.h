// How far a training in another process has come, by the files of its run folder.
#pragma once

#include <string>

#include "heed/core/io/files.h"
#include "heed/train/progress/progress.h"

namespace heed {

/// The progress of a training.
struct RunProgress {
  Progress::Now steps{};    ///< step 0: none is logged yet; seconds_left is of this run, with its test
  double seconds = 0;       ///< expected seconds of the whole run; 0: unknown
  double test_seconds = 0;  ///< expected seconds of scoring the test; 0: unknown
  bool is_testing = false;  ///< whether all steps are taken and the test is being scored
};

/// Reads the progress of a run. A run that `has_ended` is at its last step and not testing.
RunProgress read_progress(const Path& run, bool has_ended);

/// The progress of scoring the test, which began at the second `began`.
Progress::Work test_progress(const RunProgress& progress, double began);

/// A line about one of several runs, shorter than `columns`: its name, which is cut where it is long, and its
/// progress. `test_began`: the second at which the test began, where the run is testing.
std::string run_line(const std::string& name, const RunProgress& progress, double test_began,
                     int64_t columns);

}  // namespace heed
