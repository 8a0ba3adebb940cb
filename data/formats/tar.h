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

/// Limits of an archive.
struct TarLimits {
  int64_t entries = 200000;  ///< maximum number of files and folders
};

/// Returns all files of an uncompressed archive, without its folders. Reads ustar and its forerunner (POSIX
/// 1003.1), and long names as GNU and pax write them. Touches no disk and copies only names. Throws
/// Fault::data that names the entry and the byte for: a name that is absolute, has `..`, a backslash or a
/// control character, or occurs twice; a link, a device, or another kind of entry that is no file; a header
/// with a wrong sum; sizes beyond the archive; a missing end mark, or anything behind it; more than the
/// limits.
std::vector<TarEntry> untar(std::string_view archive, std::string_view name, const TarLimits& limits = {});

}  // namespace heed
