// Atomic replacement of a file: after a crash it has its old or its new content, nothing between.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "heed/core/io/file_descriptor.h"

namespace heed::io {

/// Replaces `path`, or the link of that name, by a file with these bytes: writes a temporary file beside it,
/// syncs it, renames it and syncs the folder. The mode of a replaced regular file is kept.
void replace_file(const Path& path, std::string_view bytes);

/// Creates a file that does not exist yet, with the permissions `mode` if given, and syncs it.
void create_synced(const Path& path, std::string_view bytes, std::optional<mode_t> mode = std::nullopt);

/// Writes all bytes at the file's position, in as many calls as the system needs.
void write_all(const Descriptor& file, std::string_view bytes);
/// Forces what was written to the disk.
void sync(const Descriptor& file);
/// The folder that `path` is in; "." for a bare name.
Path folder_of(const Path& path);

}  // namespace heed::io
