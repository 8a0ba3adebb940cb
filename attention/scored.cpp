// Scores, weights, and their product with the values.
#include "attention/scored.h"

namespace heed {

Tensor ScoredAttention::weigh(const Tensor& scores, const Tensor&, const Attend&) const {
  return softmax(scores);
}

Tensor ScoredAttention::weights(const Heads& heads, const Attend& call, int64_t first_query) const {
  Tensor scores = score(heads.q, heads.k, call);
  if (const Tensor mask = call.mask.dense(scores, first_query)) scores = scores + mask;
  return weigh(scores, heads.q, call);
}

Tensor ScoredAttention::attend(Heads heads, const Attend& call) {
  const int64_t first_query = recall(heads, call);
  const Tensor map = weights(heads, call, first_query);
  if (call.pass.probe != nullptr) call.pass.probe->see(*this, map);
  return matmul(dropout(map, config().dropout, call.pass.noise), heads.v);
}

}  // namespace heed
