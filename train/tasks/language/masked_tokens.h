// Inputs of masked language models: texts between their special tokens, with some tokens hidden.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/data/batching/text_windows.h"
#include "heed/data/tokenizers/tokenizer.h"
#include "heed/train/tasks/lra/token_prediction.h"

namespace heed {

/// The id of a hidden token: the tokenizer's mask, or where it has none the id behind its last.
int32_t mask_of(const Tokenizer& tokenizer);
/// The number of ids that a model reads: those of the tokenizer and mask_of().
int64_t masked_vocabulary(const Tokenizer& tokenizer);
/// The ids between start and end, where the tokenizer has a mask; cut so that all are `max_length` at most.
std::vector<int32_t> between_ends(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                                  int64_t max_length);

/// Inputs of which some tokens are hidden.
struct MaskedRows {
  std::vector<int32_t> ids;  ///< [rows, columns]
  int64_t columns = 0;       ///< tokens of a row, start and end included
  AskedTokens asked;         ///< the chosen tokens: their places in `ids`, and what they were
};

/// Chooses tokens as hide_tokens() does; start and end are never chosen. Of the chosen tokens 80 % become the
/// mask, 10 % a random token and 10 % stay (Devlin et al. 2019, section 3.1). `windows` are rows of equal
/// length without start and end; `names` as in TokenRows; hiding.hidden is not read. A pure function of
/// (hiding, name, row).
MaskedRows masked_rows(const Tokenizer& tokenizer, const Rows& windows, std::vector<int64_t> names,
                       const Hiding& hiding);

}  // namespace heed
