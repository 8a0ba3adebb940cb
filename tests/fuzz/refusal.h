// Checks the error message of a rejected file.
#pragma once

#include <string>
#include <string_view>

namespace heed::law {

/// What is wrong with a message; empty when it is right. It must name the file and a position (byte or line;
/// where `has_parts` is true a tensor or a setting may stand for it, which is not checked), be UTF-8 without
/// control characters, and have at most 4,000 bytes.
std::string fault_of_refusal(std::string_view name, std::string_view message, bool has_parts = false);

}  // namespace heed::law
