// Which sources the program was built from.
#pragma once

#include <string_view>

namespace heed {

/// The first 12 hexadecimal digits of the SHA-256 of all sources and build files: two builds with one hash
/// compute alike where compiler and options are the same. train/program_source.cmake makes it.
extern const std::string_view source_hash;
/// What git calls the commit, such as "v0.1.0-3-g9a35fa4", with "-dirty" behind it where files differ from
/// it; "unknown" where the sources are no checkout.
extern const std::string_view source_commit;

}  // namespace heed
