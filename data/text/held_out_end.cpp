// Cuts a text into its beginning and its held-out end.
#include "heed/data/text/held_out_end.h"

namespace heed {

TextSplit hold_out_end(std::string_view text, double train_share, CharacterUnit unit) {
  if (!(train_share > 0.0 && train_share < 1.0))
    fail("text: a share of ", train_share, " for training; it must be between 0 and 1.");
  const bool is_bytes = unit == CharacterUnit::byte;
  const auto num_characters = is_bytes ? static_cast<int64_t>(text.size()) : code_points(text);
  const auto num_training = static_cast<int64_t>(static_cast<double>(num_characters) * train_share);
  size_t cut = is_bytes ? static_cast<size_t>(num_training) : 0;
  if (!is_bytes) {
    for (int64_t i = 0; i < num_training; ++i) next_code_point(text, cut);
  }
  return {.train = text.substr(0, cut), .validation = text.substr(cut)};
}

}  // namespace heed
