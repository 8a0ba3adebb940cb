// Little rhymed scenes made by a grammar of ours: the embedded default text of the character language model.
#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// Exactly `characters` bytes of ASCII text: scenes with a title, speakers in capitals, and lines of ten
/// syllables that rhyme in pairs or crosswise; people speak only in scenes they are in, and each scene keeps
/// returning to the same few things. A pure function of its arguments, on every machine. Usage error when
/// characters is not in 1 .. 1,000,000,000.
std::string verse(int64_t characters, uint64_t seed);

}  // namespace heed
