// Parses and writes specs: name:key=value,key=value.
#include "heed/attention/spec.h"

#include "heed/core/error.h"
#include "heed/core/io/ascii.h"

namespace heed {

Spec parse_spec(std::string_view text) {
  Spec spec;
  const size_t colon = text.find(':');
  spec.name = std::string(without_blanks(text.substr(0, colon)));
  if (spec.name.empty()) fail("attention '", text, "' has no name. Write name or name:key=value,key=value.");
  if (colon == std::string_view::npos) return spec;
  std::string_view unparsed = text.substr(colon + 1);
  while (true) {
    const size_t comma = unparsed.find(',');
    const std::string_view assignment = without_blanks(unparsed.substr(0, comma));
    const size_t equals = assignment.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      fail("attention '", text, "': '", assignment, "' is not key=value. Write name:key=value,key=value.");
    }
    const std::string key(without_blanks(assignment.substr(0, equals)));
    for (const auto& [earlier_key, value] : spec.options) {
      if (earlier_key == key) fail("attention '", text, "': ", key, " is given twice. Give it once.");
    }
    spec.options.emplace_back(key, without_blanks(assignment.substr(equals + 1)));
    if (comma == std::string_view::npos) break;
    unparsed = unparsed.substr(comma + 1);
  }
  return spec;
}

std::string to_string(const Spec& spec) {
  std::string out = spec.name;
  char separator = ':';
  for (const auto& [key, value] : spec.options) {
    out += separator + key + "=" + value;
    separator = ',';
  }
  return out;
}

}  // namespace heed
