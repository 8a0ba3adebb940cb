// ContrastPair: two inputs of a language model with different answers, and the difference of their logits.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/nn/transformer.h"

namespace heed {

/// A clean and a corrupted input of one length, as in activation patching (Wang et al. 2022, arXiv
/// 2211.00593).
struct ContrastPair {
  std::vector<int32_t> clean{};      ///< [T]: tokens whose answer is `right`
  std::vector<int32_t> corrupted{};  ///< [T]: tokens whose answer is `wrong`
  int64_t position = 0;              ///< place of the token whose logits are compared, from 0
  int32_t right = 0;                 ///< answer to the clean tokens
  int32_t wrong = 0;                 ///< answer to the corrupted tokens
};

/// Fails unless the inputs are of one length that the model reads, tokens and answers are in its vocabulary,
/// the answers differ, and the position is one of theirs.
void check(const ContrastPair& pair, const DecoderOnly& model);

/// The logit of `right` minus that of `wrong` at the position, [B], of hidden states [B, T, width], the input
/// of the output layer.
Tensor logit_difference(const DecoderOnly& model, const Tensor& hidden, const ContrastPair& pair);

}  // namespace heed
