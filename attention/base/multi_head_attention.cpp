// Projections of heads, and helpers that attentions with heads share.
#include "heed/attention/base/multi_head_attention.h"

#include <algorithm>
#include <span>

#include "heed/attention/base/grouped_query.h"
#include "heed/attention/base/head_edits.h"
#include "heed/autograd/autocast.h"
#include "heed/autograd/node.h"
#include "heed/core/constant_table.h"

namespace heed {

Tensor identity(int64_t size, const Tensor& like) {
  const Tensor matrix = Tensor::zeros(Shape{1, 1, size, size}, DType::f32, Device::cpu);
  auto* values = matrix.data<float>();
  for (int64_t i = 0; i < size; ++i) values[i * (size + 1)] = 1;
  return constant_table(matrix, like.device(), like.dtype());
}

Tensor identity_values(const Tensor& x) {
  const int64_t length = x.extent(2);
  return expand(identity(length, x), Shape{x.extent(0), x.extent(1), length, length});
}

Tensor softmax_map(const Tensor& q, const Tensor& k, double scale, const Mask& mask, int64_t first_query) {
  const Tensor scores = matmul(q, transpose(k, 2, 3)) * scale;
  const Tensor bias = mask.dense(scores, first_query);
  return softmax(bias ? scores + bias : scores);
}

kernel::AttentionParams attention_params(const AttentionInput& input, double scale, double dropout) {
  kernel::AttentionParams params{.scale = scale};
  if (input.context.training() && dropout > 0) {
    params.dropout = dropout;
    params.draw = input.context.rng->next();
  }
  return params;
}

kernel::AttentionParams masked_attention_params(const AttentionInput& input, double scale, double dropout,
                                                int64_t first_query) {
  kernel::AttentionParams call = attention_params(input, scale, dropout);
  call.causal = input.mask.is_causal();
  call.first_query = first_query;
  call.key_lengths = input.mask.key_lengths();
  call.bias = input.mask.bias();
  if (input.mask.query_packing()) call.queries = input.mask.query_packing()->sequences;
  if (const auto& packing = input.mask.key_packing()) {
    call.keys = packing->sequences;
    call.key_lengths = packing->key_lengths();
  }
  return call;
}

MultiHeadAttention::MultiHeadAttention(const AttentionConfig& config, Rng& rng, Project project)
    : query(project == Project::v ? Linear()
                                  : Linear(config.d_model, query_width(config), rng,
                                           {.bias = config.query_bias, .init = config.init})),
      key(project == Project::qkv ? Linear(config.d_model, key_value_width(config), rng,
                                           {.bias = config.key_bias, .init = config.init})
                                  : Linear()),
      value(config.d_model, key_value_width(config), rng, {.bias = config.value_bias, .init = config.init}),
      output(config.inner_width(), config.d_model, rng,
             {.bias = config.output_bias, .init = config.init, .gain = config.output_gain}),
      config_(config),
      project_(project),
      modifiers_(config, rng) {
  config_.shared = nullptr;  // only the constructor uses it; do not keep other tensors alive
  const Modifiers& m = config.modifiers;
  if (project == Project::shared_qk && kv_heads() != config.heads)
    fail("attention: keys share the projection of queries, so they have as many heads. Leave kv_heads 0.");
  if (project == Project::shared_qk && m.qk_norm != QkNorm::none)
    fail("attention: keys are the queries here, and already have their norm. Set qk_norm to none.");
  const bool scores_ignore_keys = project == Project::qv || project == Project::v;
  if (scores_ignore_keys && (is_rotary(m.position) || m.qk_norm != QkNorm::none)) {
    fail(
        "attention: this score does not depend on keys, so rope and qk_norm have nothing to act on. Set them "
        "to none.");
  }
}

Tensor MultiHeadAttention::split(const Tensor& x) const {
  return transpose(reshape(x, Shape{x.extent(0), x.extent(1), -1, head_dim()}), 1, 2);
}

Tensor MultiHeadAttention::ignored_queries(const Tensor& x) const {
  if (x.extent(2) == config_.inner_width()) return split(widened(x));
  return Tensor::zeros(Shape{x.extent(0), config_.heads, x.extent(1), head_dim()}, value.weight.dtype(),
                       x.device());
}

namespace {

/// The results of the layers, which read the same x, in the dtype of their weights: on a GPU by one product
/// where all of them have a bias, or none.
std::vector<Tensor> results_of(std::span<const Linear* const> layers, const Tensor& x) {
  std::vector<Tensor> weights, biases, results;
  for (const Linear* layer : layers) {
    weights.push_back(layer->weight);
    biases.push_back(layer->bias);
  }
  const auto num_biases = std::ranges::count_if(biases, [](const Tensor& bias) { return bool(bias); });
  const bool are_alike = num_biases == 0 || num_biases == std::ssize(layers);
  // The CPU gains nothing from the wider product, and its tiles would lie farther apart.
  if (layers.size() == 1 || !are_alike || x.device() == Device::cpu) {
    for (const Linear* layer : layers) results.push_back((*layer)(x, layer->weight.dtype()));
    return results;
  }
  results = linear_each(x, weights, biases, weights[0].dtype());
  for (size_t i = 0; i < layers.size(); ++i) {
    if (results[i].node()) results[i].node()->module = layers[i];  // as if each had computed its own
  }
  return results;
}

}  // namespace

Heads MultiHeadAttention::project(const AttentionInput& input) const {
  const bool is_joint = project_ != Project::v && input.keys_are_queries();
  const bool are_keys_queries = project_ == Project::shared_qk && !config_.cross;
  const bool reads_query_layer = is_joint || (project_ == Project::shared_qk && config_.cross);
  Heads heads;
  if (project_ == Project::v)
    heads.q = ignored_queries(input.queries);
  else if (!is_joint)
    heads.q = projected(query, input.queries);
  if (!input.keys) return heads;
  std::vector<const Linear*> layers;  // those that read input.keys
  if (reads_query_layer) layers.push_back(&query);
  if (project_ == Project::qkv) layers.push_back(&key);
  layers.push_back(&value);
  const std::vector<Tensor> results = results_of(layers, input.keys);
  heads.v = split(results.back());
  if (is_joint) heads.q = split(results.front());
  if (project_ == Project::qv || project_ == Project::v)
    heads.k = heads.v;
  else
    heads.k = are_keys_queries ? heads.q : split(results[results.size() - 2]);
  return heads;
}

Tensor MultiHeadAttention::forward(const AttentionInput& given) {
  const ModuleScope within(this);
  check_call(given, config_);
  const AttentionInput input = with_finite_padding(given, config_.cross);
  if (!input.keys && input.cache == nullptr)
    fail("attention: no keys and no cache. Give keys, or a cache that holds them.");
  Heads heads = normalize_and_rotate(project(input), input);
  const bool keeps_packed =
      attends_packed(input) && input.context.recorder == nullptr && input.context.editor == nullptr;
  Tensor y;
  if (!input.mask.is_packed()) {
    y = on_padded_heads(heads, input);
  } else if (keeps_packed) {
    y = on_heads(std::move(heads), input);
  } else {
    const std::shared_ptr<const Packing>&queries = input.mask.query_packing(),
                                &keys = input.mask.key_packing();
    if (queries) heads.q = queries->padded_heads(heads.q);
    if (keys) heads = {heads.q, keys->padded_heads(heads.k), keys->padded_heads(heads.v)};
    y = on_padded_heads(heads, padded_input(input));
    if (queries) y = queries->packed_heads(y);
  }
  const Tensor joined = transpose(y, 1, 2);  // [B, Tq, H, d]
  return output(reshape(joined, Shape{joined.extent(0), joined.extent(1), -1}), input.queries.dtype());
}

Tensor MultiHeadAttention::on_padded_heads(const Heads& heads, const AttentionInput& input) {
  return input.context.editor == nullptr ? on_heads(heads, input) : on_edited_heads(heads, input);
}

Heads MultiHeadAttention::normalize_and_rotate(Heads heads, const AttentionInput& input) const {
  const int64_t first_key = input.cache != nullptr ? input.cache->length : 0;
  const bool self_attention = heads.k && input.cache == nullptr && !config_.cross;
  const int64_t first_query = self_attention ? heads.k.extent(2) - heads.q.extent(2) : first_key;
  if (project_ != Project::v)
    heads.q = modifiers_.normalize_and_rotate_query(heads.q, first_query, input.mask.query_packing().get());
  if (heads.k && project_ != Project::qv && project_ != Project::v)
    heads.k = modifiers_.normalize_and_rotate_key(heads.k, first_key, input.mask.key_packing().get());
  return heads;
}

Tensor MultiHeadAttention::on_heads(Heads heads, const AttentionInput& input) {
  const int64_t num_queries = heads.q.extent(2), num_heads = heads.q.extent(1);
  if (heads.k) check_key_value_heads(heads.q, heads.k);
  // A KeyValueCache stores key-value heads without repetition; read_cache() repeats them.
  const bool has_key_value_cache = dynamic_cast<KeyValueCache*>(input.cache) != nullptr;
  if (heads.k && !has_key_value_cache && !shares_keys()) {
    heads.k = repeat_heads(heads.k, num_heads);
    heads.v = repeat_heads(heads.v, num_heads);
  }
  const bool records_heads =
      input.context.recorder != nullptr && input.context.recorder->keep_heads && input.cache == nullptr;
  if (records_heads) input.context.recorder->calls.push_back({.module = this, .values = heads.v.detach()});
  Tensor y = attend(std::move(heads), input);
  if (records_heads) {
    MapRecorder::HeadCall& call = input.context.recorder->calls.back();
    call.output = y.detach();
    if (recording()) {
      call.output_grad = leaf(Tensor::zeros(y.shape(), y.dtype(), y.device()));
      y = y + call.output_grad;
    }
  }
  if (input.cache != nullptr) input.cache->queries += num_queries;
  return y;
}

Tensor MultiHeadAttention::on_edited_heads(const Heads& given, const AttentionInput& input) {
  Heads heads = given;
  if (heads.k) {
    heads.k = input.context.editor->edit_keys(*this, heads.k);
    heads.v = input.context.editor->edit_values(*this, heads.v);
  }
  const int64_t num_earlier_queries = input.cache != nullptr ? input.cache->queries : 0;
  const auto product = [&](const Tensor& map) {
    Tensor values = heads.v;
    if (input.cache != nullptr) {
      auto* cache = dynamic_cast<KeyValueCache*>(input.cache);
      if (cache == nullptr || cache->num_evicted > 0 || cache->values.extent(2) < map.extent(3))
        fail(
            "editing a map: the cache of this attention does not hold the values of all keys. Give all keys ",
            "in one call, or edit the outputs of heads.");
      values = slice(cache->values, 2, 0, map.extent(3));
    }
    values = repeat_heads(values, map.extent(1));
    const Tensor y = matmul(map, values);
    const int64_t first_query = config_.cross ? num_earlier_queries : map.extent(3) - map.extent(2);
    const Tensor term = modifiers_.value_vector_term(map, values, first_query);
    return term ? y + term : y;
  };
  const auto attend_in_call = [&](const AttentionInput& call) { return on_heads(heads, call); };
  return edited_heads(*this, input, attend_in_call, product);
}

int64_t MultiHeadAttention::first_query_position(const Heads& heads, const AttentionInput& input) const {
  if (input.cache != nullptr) return config_.cross ? input.cache->queries : input.cache->length;
  return config_.cross ? 0 : heads.k.extent(2) - heads.q.extent(2);
}

int64_t MultiHeadAttention::read_cache(Heads& heads, const AttentionInput& input) const {
  const int64_t first_query = first_query_position(heads, input);
  if (input.cache == nullptr) return first_query;
  cache_of<KeyValueCache>(input)->append_to_cache(heads);
  if (!shares_keys()) {
    heads.k = repeat_heads(heads.k, heads.q.extent(1));
    heads.v = repeat_heads(heads.v, heads.q.extent(1));
  }
  return first_query;
}

void MultiHeadAttention::refuse_bias_and_cache(const char* name, const AttentionInput& input) {
  if (input.mask.bias()) {
    fail("attention '", name,
         "': it has no score for each pair of positions to add a bias to. Leave the bias out, ",
         "or use softmax.");
  }
  if (input.cache != nullptr) {
    fail("attention '", name, "': it looks at all keys at once and has no cache. Give all keys in one call.");
  }
}

void MultiHeadAttention::fields(Fields& f) {
  if (project_ != Project::v) f("query", query);
  if (project_ == Project::qkv) f("key", key);
  f("value", value);
  f("output", output);
  modifiers_.fields(f);
}

}  // namespace heed
