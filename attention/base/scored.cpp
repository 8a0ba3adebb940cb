// Scores, weights, and their product with the values.
#include "attention/scored.h"

namespace heed {

Tensor ScoredAttention::weigh(const Tensor& scores, const Tensor&, const Attend&) const {
  return softmax(scores);
}

int64_t ScoredAttention::first_position(const Tensor& scores, const Attend& call) const {
  if (config().cross) return call.memory != nullptr ? call.memory->queries : 0;
  return scores.extent(3) - scores.extent(2);
}

Tensor ScoredAttention::weights(const Heads& heads, const Attend& call, int64_t first_query) const {
  Tensor scores = score(heads.q, repeated(heads.k, heads.q.extent(1)), call);
  if (modifiers().on_scores()) scores = modifiers().scores(scores, heads.q, first_query);
  if (const Tensor mask = call.mask.dense(scores, first_query)) scores = scores + mask;
  return modifiers().shared_with_sink(weigh(scores, heads.q, call), scores);
}

Tensor ScoredAttention::attend(Heads heads, const Attend& call) {
  const int64_t first_query = recall(heads, call);
  return attend_by_map(heads, call, first_query);
}

Tensor ScoredAttention::attend_by_map(const Heads& heads, const Attend& call, int64_t first_query) {
  const Tensor map = weights(heads, call, first_query);
  if (call.pass.probe != nullptr) call.pass.probe->see(*this, map);
  return applied(map, heads, call, first_query);
}

Tensor ScoredAttention::applied(const Tensor& map, const Heads& heads, const Attend& call,
                                int64_t first_query) const {
  const Tensor dropped = dropout(map, config().dropout, call.pass.noise);
  const Tensor y = matmul(dropped, repeated(heads.v, heads.q.extent(1)));
  const Tensor more = modifiers().of_value_vectors(dropped, heads.v, first_query);
  return more ? y + more : y;
}

}  // namespace heed
