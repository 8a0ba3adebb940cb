// Finite padding of inputs, and identity projections.
#include "heed/nn/attention.h"

#include "heed/autograd/autocast.h"

namespace heed {

std::shared_ptr<const Packing> ForwardContext::packing(const Tensor& lengths, int64_t padded_length) const {
  if (!may_pack()) return nullptr;
  if (!lengths || !packing_table) return Packing::where_padded(lengths, padded_length);
  return std::make_shared<const Packing>(Packing::of_table(packing_table, lengths.size(), padded_length));
}

std::shared_ptr<const Packing> ForwardContext::target_packing(const Tensor& places, int64_t batch,
                                                              int64_t padded_length) const {
  if (!may_pack()) return nullptr;
  if (!target_packing_table) {
    const auto packing = Packing::of_places(places, batch, padded_length);
    return packing && Packing::where_padded(packing->lengths, padded_length) ? packing : nullptr;
  }
  auto packing =
      std::make_shared<const Packing>(Packing::of_table(target_packing_table, batch, padded_length));
  if (packing->num_tokens() != places.size())
    fail(Fault::internal, "packing: ", places.size(), " places for ", packing->num_tokens(),
         " rows of targets; they must be those of the packing.");
  return packing;
}

bool AttentionInput::keys_are_queries() const {
  return keys && queries.raw() == keys.raw() && queries.shape() == keys.shape() &&
         queries.strides() == keys.strides() && queries.node() == keys.node();
}

AttentionInput with_finite_padding(const AttentionInput& input, bool cross) {
  if (!input.mask.key_lengths() || !input.keys) return input;
  const Tensor &queries = input.queries, &keys = input.keys;
  const int64_t first = input.cache != nullptr ? input.cache->length : 0;
  AttentionInput out = input;
  out.keys = input.mask.finite_padding(keys, first);
  if (cross) return out;
  // The last query belongs to the last key.
  out.queries = input.keys_are_queries()
                    ? out.keys
                    : input.mask.finite_padding(queries, first + keys.extent(1) - queries.extent(1));
  return out;
}

AttentionInput padded_input(const AttentionInput& input) {
  const std::shared_ptr<const Packing>&queries = input.mask.query_packing(), &keys = input.mask.key_packing();
  AttentionInput out = input;
  out.mask = input.mask.of_padded();
  if (queries && input.queries) out.queries = queries->padded(input.queries);
  if (keys && input.keys)
    out.keys = queries == keys && input.keys_are_queries() ? out.queries : keys->padded(input.keys);
  return out;
}

Tensor attend(Attention& attention, const AttentionInput& input) {
  if (input.queries.dtype() == DType::bf16 && !attention.takes_bf16()) {
    AttentionInput wide = input;
    wide.queries = widened(input.queries);
    if (input.keys) wide.keys = input.keys_are_queries() ? wide.queries : widened(input.keys);
    return cast(attend(attention, wide), DType::bf16);
  }
  if (!input.mask.is_packed() || attention.takes_packed(input)) return attention.forward(input);
  const Tensor y = attention.forward(padded_input(input));
  return input.mask.query_packing() ? input.mask.query_packing()->packed(y) : y;
}

void set_identity_projections(Attention& attention) {
  bool found = false;
  for (const Named& one : parameters(attention)) {
    if (one.name != "query.weight" && one.name != "key.weight" && one.name != "value.weight") continue;
    const int64_t rows = one.tensor->extent(0), columns = one.tensor->extent(1);
    if (rows != columns) {
      fail("model.identity_projections = true, but ", one.name, " is ", rows, " x ", columns,
           ". Leave model.kv_heads and model.head_dim at 0, or take it out.");
    }
    std::vector<float> values(static_cast<size_t>(rows * rows), 0.0F);
    for (int64_t i = 0; i < rows; ++i) values[static_cast<size_t>(i * (rows + 1))] = 1;
    *one.tensor = leaf(Tensor::of<float>(values, Shape{rows, rows}));
    found = true;
  }
  if (!found)
    fail("model.identity_projections = true, but the attention has no query, key or value projection.");
}

}  // namespace heed
