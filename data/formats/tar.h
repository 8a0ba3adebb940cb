// Tar archives in memory: a strict reader for downloads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A file of an archive.
struct TarEntry {
  std::string name;        ///< relative, with forward slashes, without a leading ./
  std::string_view bytes;  ///< within the archive
};

/// What an archive may hold.
struct TarLimits {
  int64_t entries = 200000;
};

/// All files of an archive that is not packed, folders left out: ustar and its forerunner (POSIX 1003.1),
/// long names as GNU and pax write them. Nothing touches the disk, nothing is copied but names. Fault::data
/// that names the entry and the byte for: a name that is absolute, has `..`, a backslash, a control character
/// or occurs twice; a link, a device, or another kind of entry that is no file; a header whose sum does not
/// fit; sizes beyond the archive; no mark at its end, or anything behind it; more than the limits.
std::vector<TarEntry> untar(std::string_view archive, std::string_view name, const TarLimits& limits = {});

}  // namespace heed
