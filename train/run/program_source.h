// Hash and commit of the sources that this program was built from.
#pragma once

#include <string_view>

namespace heed {

/// The first 12 hexadecimal digits of the SHA-256 of all sources and build files. Builds with the same hash,
/// compiler and options compute the same bits. train/run/program_source.cmake computes it.
extern const std::string_view source_hash;
/// `git describe` of the commit, such as "v0.1.0-3-g9a35fa4", with "-dirty" when files differ from it;
/// "unknown" when the sources are no checkout.
extern const std::string_view source_commit;

}  // namespace heed
