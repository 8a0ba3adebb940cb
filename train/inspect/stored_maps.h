// Attention maps in files: what `heed maps` and `heed inspect` write, and .npy files of other programs.
#pragma once

#include <functional>

#include "heed/attention/inspect/map_view.h"
#include "heed/core/error.h"

namespace heed {

/// Calls `take` with the maps of a file or folder, one after the other, so that few are in memory:
///   FILE.npy          [H, Tq, Tk] or [Tq, Tk], named after the file
///   FILE.safetensors  each tensor [H, Tq, Tk], under its own name
///   FOLDER            what `heed maps` has written: the files that its manifest.json lists, with tokens
/// Maps of files without tokens have empty ones. Fault::data naming the file for one that holds no map and
/// for numbers that are not finite; Fault::file where it cannot be read.
void visit_stored_maps(const Path& path, const std::function<void(const MapView&)>& take);

}  // namespace heed
