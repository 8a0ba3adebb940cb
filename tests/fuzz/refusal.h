// The words with which a file is refused.
#pragma once

#include <string>
#include <string_view>

namespace heed::law {

/// What is wrong with a refusal; empty when nothing is. It must name the file and a place in it (a byte or a
/// line), be UTF-8 without control characters, and be no longer than 4,000 bytes.
std::string fault_of_refusal(std::string_view name, std::string_view message);

}  // namespace heed::law
