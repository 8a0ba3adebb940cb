// Gzip files in memory, with a bound on what they may inflate to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Whether the bytes begin as a gzip file does (RFC 1952: 1f 8b 08).
bool is_gzip(std::string_view bytes);

/// Inflates a gzip file of one or more members. Fault::data when it is damaged, cut short, or inflates to
/// more than `cap` bytes; `name` stands in the error.
std::string inflate(std::string_view bytes, int64_t cap, std::string_view name = "gzip data");

/// inflate() for text, which packs to about a fifth: Fault::data also as soon as the result exceeds both 1
/// MiB and a hundred times the packed bytes read, long before it fills the memory.
std::string inflate_text(std::string_view bytes, int64_t cap, std::string_view name = "gzip data");

/// Inflates the first `count` bytes of the file, or all where it has fewer.
std::string inflate_start(std::string_view bytes, size_t count, std::string_view name = "gzip data");

}  // namespace heed
