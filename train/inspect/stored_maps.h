// Attention maps in files: what `heed maps` and `heed inspect` write, and .npy files of other programs.
#pragma once

#include <functional>

#include "heed/attention/inspect/map_view.h"
#include "heed/core/error.h"

namespace heed {

/// Calls `take` with the maps of a file or folder, one after the other, so that few are in memory:
///   FILE.npy          a map [H, Tq, Tk] or [Tq, Tk], named after the file
///   FILE.safetensors  maps [H, Tq, Tk], named after their tensors
///   FOLDER            the maps, with tokens, in the files that the manifest.json of `heed maps` lists
/// The maps of single files have empty tokens. Fault::data that names the file where it holds no map or a
/// number that is not finite; Fault::file where it cannot be read.
void visit_stored_maps(const Path& path, const std::function<void(const MapView&)>& take);

}  // namespace heed
