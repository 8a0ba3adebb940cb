// Checks names of archive entries before they become names of files.
#pragma once

#include <string>
#include <string_view>

namespace heed {

/// The reason why an entry's name is refused, written as the end of a sentence; empty for a relative path of
/// plain UTF-8 that stays in its folder. A folder's name may end with a slash.
std::string fault_of_entry_name(std::string_view name);

}  // namespace heed
