// Which names of archive entries may become files.
#pragma once

#include <string>
#include <string_view>

namespace heed {

/// Why an entry's name is illegal, as the end of a sentence; empty for a relative path of plain UTF-8 that
/// stays in its folder. A folder's name may end with a slash.
std::string fault_of_entry_name(std::string_view name);

}  // namespace heed
