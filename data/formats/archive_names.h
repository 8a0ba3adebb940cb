// Names of entries in archives: which of them may become files.
#pragma once

#include <string>
#include <string_view>

namespace heed {

/// What is wrong with the name of an entry, as the end of a sentence; empty for a relative path of plain
/// UTF-8 that stays in its folder. A folder's name may end with a slash.
std::string fault_of_entry_name(std::string_view name);

}  // namespace heed
