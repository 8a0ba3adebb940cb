// Bytes from base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heed {

/// The bytes of a text in base64 (RFC 4648) with padding and without line ends; none where it is not such a
/// text.
std::optional<std::string> from_base64(std::string_view letters);

}  // namespace heed
