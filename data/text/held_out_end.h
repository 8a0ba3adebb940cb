// Holds the end of a text out of training, for validation.
#pragma once

#include <string_view>

#include "heed/data/text/text.h"

namespace heed {

/// A text cut in two, in its order. Both parts refer to the text that was cut.
struct TextSplit {
  std::string_view train;       ///< the beginning
  std::string_view validation;  ///< the held-out end
};

/// Cuts a text: the first `train_share` of its characters, rounded down, is for training, the end for
/// validation. A byte that is not UTF-8 counts as one character. Fault::usage unless the share is between 0
/// and 1.
TextSplit hold_out_end(std::string_view text, double train_share = 0.9,
                       CharacterUnit unit = CharacterUnit::code_point);

}  // namespace heed
