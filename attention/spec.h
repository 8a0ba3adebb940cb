// Spec: the name of an attention and its options, written name:key=value,key=value.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// The name of an attention and its options: "linear:epsilon=1e-5".
struct Spec {
  std::string name;                                          ///< the variant's name, without options
  std::vector<std::pair<std::string, std::string>> options;  ///< in the order written
};

/// Parses name:key=value,... and leaves out blanks around words. Fails on any other text and on a key given
/// twice.
Spec parse_spec(std::string_view text);
/// The text of a spec, the inverse of parse_spec().
std::string to_string(const Spec& spec);

}  // namespace heed
