// Zip archives in memory: a strict reader for files of others, and a writer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A file of an archive, unpacked.
struct ZipEntry {
  std::string name;   ///< relative, with forward slashes
  std::string bytes;  ///< unpacked
};

/// A file of an archive that is stored as it is.
struct StoredEntry {
  std::string name;        ///< relative, with forward slashes
  std::string_view bytes;  ///< within the archive
};

/// Limits of an archive.
struct ZipLimits {
  int64_t entries = 1000;            ///< maximum number of files
  int64_t bytes = int64_t{1} << 30;  ///< maximum bytes of all files together, unpacked
};

/// Returns all files of an archive, without its folders. Reads stored and deflated entries only (PKWARE
/// APPNOTE 6.3). Touches no disk. Throws Fault::data that names the entry for: a name that is absolute, has
/// `..`, a backslash or a control character, or occurs twice; a link; encryption; another compression method;
/// sizes, offsets or CRC-32 that do not agree; more than the limits.
std::vector<ZipEntry> unzip(std::string_view archive, std::string_view name, const ZipLimits& limits = {});

/// The files of an archive in place, without copies; unzip() says what is refused, and so are entries that
/// are not stored. The archive may have the records of zip64, as PyTorch writes them, with entries below 4
/// GiB.
std::vector<StoredEntry> stored_entries(std::string_view archive, std::string_view name,
                                        const ZipLimits& limits = {});

/// An archive with these files, stored, in their order, without times. Their bytes must have less than 4 GiB
/// together, and their number must be below 65535: Fault::usage. Names are those that unzip() accepts.
std::string stored_zip(const std::vector<StoredEntry>& entries);

}  // namespace heed
