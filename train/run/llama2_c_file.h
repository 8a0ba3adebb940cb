// LLaMA models in the checkpoints of the program llama2.c: https://github.com/karpathy/llama2.c, export.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heed/core/error.h"
#include "heed/train/run/imported_model.h"

namespace heed {

/// The first integer of a llama2.c checkpoint of version 1 or later: "ak42". Version 0 has no mark.
inline constexpr int32_t llama2_c_magic = 0x616b3432;

/// Whether the bytes may be a checkpoint of version 0: seven sizes, of which vocab_size may be negative.
bool is_llama2_c_without_mark(std::string_view bytes);

/// Reads version 0 (a header of 7 integers; a negative vocab_size means that the output layer has a table of
/// its own) or version 1 (f32 behind 256 bytes). Neighbouring numbers of a head are rotated together, norms
/// add 1e-5, and the base of positions is 10000. `path` names the file in errors; a tokenizer.bin beside it
/// is its tokenizer. Fault::data that names the file and the byte for everything else, such as version 2,
/// whose weights are int8.
ImportedModel read_llama2_c(std::string_view bytes, const Path& path);

}  // namespace heed
