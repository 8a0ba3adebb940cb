// Synthetic rhymed scenes from a grammar: the default text of the character language model.
#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// Exactly `num_characters` bytes of ASCII text: scenes with a title, speakers in capitals, and lines of ten
/// syllables with couplet or alternate rhyme. People speak only in their scenes, and a scene has nouns of its
/// own that it repeats. Equal arguments give equal texts, on every machine. Fault::usage unless
/// num_characters is in 1 .. 1,000,000,000.
std::string verse(int64_t num_characters, uint64_t seed);

}  // namespace heed
