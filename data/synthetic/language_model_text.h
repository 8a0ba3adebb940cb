// Synthetic rhymed scenes from a grammar: the default text of the character language model.
#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// Exactly `characters` bytes of ASCII text: scenes with a title, speakers in capitals, and lines of ten
/// syllables with couplet or alternate rhyme; people speak only in their scenes, and each scene repeats the
/// same few things. A pure function of its arguments, on every machine. A usage error when characters is not
/// in 1 .. 1,000,000,000.
std::string verse(int64_t characters, uint64_t seed);

}  // namespace heed
