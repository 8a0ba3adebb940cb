// Files in folders that may come from other people: links among them are not followed.
#pragma once

#include <string>
#include <string_view>

#include "heed/core/error.h"

/// A link in such a folder could lead a write to any file of the user, and a pipe would block the program.
/// Both are refused with Fault::file, which names the kind of the file and what to do. Only the last name of
/// a path is checked: the folder itself may be a link.
namespace heed::io {

/// Fault::file where the path exists and is no regular file.
void check_regular(const Path& path);
/// Fault::file where the path exists and is no folder.
void check_directory(const Path& path);

/// Whether the path exists, be it a link to a missing file.
bool is_there(const Path& path);

/// Whether the path is a folder and no link to one.
bool is_own_directory(const Path& path);

/// io::write() that refuses to replace anything but a regular file.
void write_own(const Path& path, std::string_view bytes);

/// Creates the file and syncs it. Fault::file where the path exists, be it a link to a missing file.
void write_new(const Path& path, std::string_view bytes);

/// Creates a folder in an existing one, unless it exists. Fault::file where the path is something else.
void make_directory(const Path& path);

/// 16 random hexadecimal digits of the system, for names that nothing else has. Fault::file where the system
/// has no random bytes.
std::string random_name();

}  // namespace heed::io
