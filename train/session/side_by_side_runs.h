// Computes the maps of several runs for one input, to be compared side by side.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/inspect/side_by_side_page.h"
#include "heed/train/experiments/comparison.h"

namespace heed {

/// Loads each run and computes its maps of `input`, as inspect takes it; empty: the first validation example
/// of the first run, with its reference. `which`: the checkpoints, as load_run() takes them. Fails where the
/// runs are of several tasks, or split the input into other tokens, with the reason.
SideBySide side_by_side(const std::vector<Path>& runs, const std::string& input, const std::string& which);

/// Writes FOLDER/maps.html, the first run of each label side by side, and links it from the comparison's
/// page; where the runs cannot be compared, that page says why.
void write_compared_maps(Comparison& comparison, const Path& folder);

}  // namespace heed
