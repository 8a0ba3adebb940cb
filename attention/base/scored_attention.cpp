// Attention by a full map: scores, weights, product with the values.
#include "heed/attention/base/scored_attention.h"

#include "heed/attention/base/grouped_query.h"
#include "heed/autograd/comparisons.h"
#include "heed/autograd/pair_formulas.h"
#include "heed/core/minus_infinity.h"

namespace heed {

Tensor ScoredAttention::weigh(const Tensor& scores, const Tensor&, const AttentionInput&) const {
  return softmax(scores);
}

int64_t ScoredAttention::first_position(const Tensor& scores, const AttentionInput& input) const {
  if (config().cross) return input.cache != nullptr ? input.cache->queries : 0;
  return scores.extent(3) - scores.extent(2);
}

Tensor ScoredAttention::weights(const Heads& heads, const AttentionInput& input, int64_t first_query) const {
  Tensor scores = score(heads.q, repeat_heads(heads.k, heads.q.extent(1)), input);
  const PairFormulas own = formulas(input);
  if (own.score) {
    if (modifiers().softcap() > 0)
      fail("attention: model.softcap = ", modifiers().softcap(),
           " beside a formula of scores. Set it to 0, and write the cap into the formula: cap * tanh(score / "
           "cap).");
    scores = apply_formula(scores, own.score, first_query);
  }
  if (modifiers().acts_on_scores()) scores = modifiers().modified_scores(scores, heads.q, first_query);
  if (const Tensor mask = input.mask.dense(scores, first_query)) {
    scores = scores + mask;
    // What the formula says of hidden pairs, which may be NaN, is not used.
    if (own.score) scores = where(greater(mask, minus_infinity<double>), scores, minus_infinity<double>);
  }
  if (own.mask) scores = apply_mask(scores, own.mask, first_query);
  return modifiers().with_sink(weigh(scores, heads.q, input), scores);
}

Tensor ScoredAttention::attend(Heads heads, const AttentionInput& input) {
  const int64_t first_query = read_cache(heads, input);
  return attend_by_map(heads, input, first_query);
}

Tensor ScoredAttention::attend_by_map(const Heads& heads, const AttentionInput& input, int64_t first_query) {
  const Tensor map = weights(heads, input, first_query);
  if (input.context.recorder != nullptr) input.context.recorder->record(*this, map);
  return apply_map(map, heads, input, first_query);
}

Tensor ScoredAttention::apply_map(const Tensor& map, const Heads& heads, const AttentionInput& input,
                                  int64_t first_query) const {
  const Tensor dropped = dropout(map, config().dropout, input.context.rng);
  const Tensor y = matmul(dropped, repeat_heads(heads.v, heads.q.extent(1)));
  const Tensor term = modifiers().value_vector_term(dropped, heads.v, first_query);
  return term ? y + term : y;
}

}  // namespace heed
