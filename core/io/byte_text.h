// Sizes of memory as text for people.
#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// "64 bytes", "6.6 kB", "231 MB", "1.5 GB": in powers of a thousand, as memory is sold.
std::string bytes_text(int64_t bytes);

}  // namespace heed
