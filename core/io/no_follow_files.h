// Files of a folder that may come from elsewhere: links among them are not followed.
#pragma once

#include <string>
#include <string_view>

#include "heed/core/error.h"

/// A link in such a folder could lead a write to any file of the user, and a pipe would hold the program up:
/// both are refused with Fault::file, whose words say what is there and what to do. Only the last name of a
/// path matters: the folder itself may be a link.
namespace heed::io {

/// Fault::file where the path is not a regular file or a folder itself. Nothing happens when nothing is
/// there.
void check_regular(const Path& path);
void check_directory(const Path& path);  ///< the same for a folder

/// Whether anything has this name: a link too, wherever it leads.
bool is_there(const Path& path);

/// Whether a folder has this name itself, and not a link to one.
bool is_own_directory(const Path& path);

/// io::write(), refusing what is no regular file.
void write_own(const Path& path, std::string_view bytes);

/// Creates the file and syncs it. Fault::file where anything has the name already, be it a link to nowhere.
void write_new(const Path& path, std::string_view bytes);

/// One folder, whose parent is there. What has its name already must be a folder itself.
void make_directory(const Path& path);

/// 16 digits that nobody can foresee, for names that are to be one's own. Fault::file where the system has
/// no random bytes.
std::string random_name();

}  // namespace heed::io
