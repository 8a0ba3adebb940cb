// Checks pairs of inputs and compares logits.
#include "heed/attention/inspect/contrast_pair.h"

#include "heed/autograd/ops.h"

namespace heed {

void check(const ContrastPair& pair, const DecoderOnly& model) {
  const auto length = std::ssize(pair.clean);
  if (std::ssize(pair.corrupted) != length)
    fail("contrast pair: the clean input has ", length, " tokens and the corrupted one ",
         pair.corrupted.size(), ". Give inputs of as many tokens, so that each has a counterpart.");
  if (length == 0 || length > model.max_length())
    fail("contrast pair: inputs of ", length, " tokens, and the model reads 1 to ", model.max_length(),
         ". Give inputs of such a length.");
  if (pair.position < 0 || pair.position >= length)
    fail("contrast pair: position ", pair.position, ". Positions of these inputs are 0 to ", length - 1, ".");
  if (pair.right == pair.wrong)
    fail("contrast pair: the right and the wrong answer are both token ", pair.right,
         ". Give two different tokens.");
  const int64_t vocabulary = model.embedder.tokens.weight.extent(0);
  const auto check_token = [vocabulary](int32_t token) {
    if (token < 0 || token >= vocabulary)
      fail("contrast pair: token ", token, ". Tokens of this model are 0 to ", vocabulary - 1, ".");
  };
  for (const int32_t token : pair.clean) check_token(token);
  for (const int32_t token : pair.corrupted) check_token(token);
  check_token(pair.right);
  check_token(pair.wrong);
}

Tensor logit_difference(const DecoderOnly& model, const Tensor& hidden, const ContrastPair& pair) {
  const Tensor logits = model.logits(select(hidden, 1, pair.position));  // [B, V]
  return select(logits, 1, pair.right) - select(logits, 1, pair.wrong);
}

}  // namespace heed
