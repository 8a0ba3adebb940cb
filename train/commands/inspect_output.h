// What `heed inspect` writes and prints of the maps of one input.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/inspect/map_view.h"
#include "heed/core/io/files.h"
#include "heed/train/program.h"

namespace heed {

/// Writes into a folder that is there: the page, a picture of each head and of all, the matrices as .npy and
/// in one .safetensors; attributions and rollouts where the maps have them; with `paper` the figures for
/// print. No link in the folder is followed.
void write_map_files(const Path& out, const std::vector<MapView>& maps, const std::string& title,
                     const std::string& caption, bool paper);

/// Prints a map as map_text() gives it, in lines that fit the terminal; in colours the heading alone is
/// folded.
void print_map(const std::string& map);

/// The map that --kind, --layer, --head and --show choose, as text; without --head the sharpest one, of
/// cross-attention where there is any. A usage error names what there is where nothing is chosen.
std::string chosen_map_text(const std::vector<MapView>& maps, const ParsedArguments& arguments);

}  // namespace heed
