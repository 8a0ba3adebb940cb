// Widths of query and key-value heads, and key-value heads repeated for the query heads that share them.
#include "heed/attention/base/grouped_query.h"

#include "heed/nn/legal_values.h"

namespace heed {

int64_t query_width(const AttentionConfig& config) {
  at_least_one("attention: d_model", config.d_model);
  legal_dropout("attention: dropout", config.dropout);
  if (config.heads < 1 || (config.head_dim == 0 && config.d_model % config.heads != 0)) {
    fail("attention: ", config.heads, " heads do not divide the width ", config.d_model,
         ". Use a divisor of it.");
  }
  if (config.head_dim < 0)
    fail("attention: heads of width ", config.head_dim, ". It must be at least 1, or 0 for width / heads.");
  return config.inner_width();
}

int64_t key_value_width(const AttentionConfig& config) {
  const int64_t width = query_width(config);
  if (config.kv_heads == 0) return width;
  if (config.kv_heads < 0 || config.heads % config.kv_heads != 0) {
    fail("attention: ", config.kv_heads, " key heads do not divide ", config.heads,
         " heads. Use a divisor of them, or 0 for as many.");
  }
  return config.width_of_head() * config.kv_heads;
}

void check_key_value_heads(const Tensor& q, const Tensor& k) {
  if (k.extent(1) < 1 || q.extent(1) % k.extent(1) != 0)
    fail("attention: q ", q.shape(), " and k ", k.shape(), ". Heads of k must divide those of q.");
}

Tensor repeat_heads(const Tensor& x, int64_t heads) {
  const int64_t kv_heads = x.extent(1);
  const Shape shape{x.extent(0), heads, x.extent(2), x.extent(3)};
  if (kv_heads == heads) return x;
  if (kv_heads == 1) return expand(x, shape);
  const Shape one_per_group{x.extent(0), kv_heads, 1, x.extent(2), x.extent(3)};
  const Shape groups{x.extent(0), kv_heads, heads / kv_heads, x.extent(2), x.extent(3)};
  return reshape(expand(reshape(x, one_per_group), groups), shape);
}

}  // namespace heed
