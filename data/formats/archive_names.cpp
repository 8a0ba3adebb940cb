// Rules for names in archives.
#include "heed/data/formats/archive_names.h"

#include <algorithm>

#include "heed/data/text/text.h"

namespace heed {

std::string fault_of_entry_name(std::string_view name) {
  const auto is_illegal = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == ':' || c == 0x7F;
  };
  if (name.empty() || name.size() > 255 || invalid_utf8(name) != std::string::npos ||
      std::any_of(name.begin(), name.end(), is_illegal)) {
    return "has a name that no file may have.";
  }
  if (name.front() == '/') return "has an absolute path.";
  for (const std::string_view step : split_fields(name.substr(0, name.size() - (name.back() == '/')), '/')) {
    if (step == ".." || step == "." || step.empty()) return "leaves its folder.";
  }
  return {};
}

}  // namespace heed
