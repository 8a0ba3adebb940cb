// A tokenizer for models whose own tokenizer is not at hand: its texts are ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// A tokenizer whose texts are ids in decimal with white space between, such as "464 8848 318". It decodes to
/// ids with one blank between. Fault::usage for a size outside 1 .. 2^24. Its encode() names the first word
/// that is no id.
std::unique_ptr<Tokenizer> make_id_tokenizer(int64_t size);

namespace detail {
/// Makes a tokenizer from the bytes of save().
std::unique_ptr<Tokenizer> load_id_tokenizer(std::string_view bytes, std::string_view name);
}  // namespace detail

}  // namespace heed
