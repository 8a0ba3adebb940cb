// Reordering of caches, padding of inputs, and auxiliary losses.
#include "heed/nn/attention.h"

#include <algorithm>

#include "heed/core/kernels/norm/cross_entropy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

class Reorder final : public Fields {
 public:
  explicit Reorder(const Tensor& order) : order_(order) {}

 private:
  void on(const char*, Tensor& tensor) override {
    Shape shape = tensor.shape();
    shape[0] = order_.size();
    const Tensor rows = reshape(tensor, Shape{tensor.extent(0), -1});
    tensor = reshape(embedding(rows, order_.to(tensor.device())), shape);
  }
  Tensor order_;
};

/// The likelihood of concatenated sequences: logits [N, V], targets [N]; `rows` holds the length of each.
Likelihood likelihood_of(const Tensor& logits, const Tensor& targets, std::span<const int64_t> rows,
                         int32_t ignore) {
  const auto batch = static_cast<int64_t>(rows.size());
  const Tensor all = contiguous(logits.detach()), wanted = contiguous(targets.detach());
  const Tensor mean = Tensor::zeros(Shape{batch}, all.dtype(), all.device()),
               count = Tensor::zeros(Shape{batch}, all.dtype(), all.device());
  const Tensor lse = empty_like(all, Shape{all.extent(0)});
  int64_t at = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t end = at + rows[static_cast<size_t>(b)];
    if (end == at) continue;  // a sequence without targets
    launch<kernel::CrossEntropy>(all.device(), view::slice(all, 0, at, end), view::slice(wanted, 0, at, end),
                                 0.0, ignore, view::slice(lse, 0, at, end), view::slice(mean, 0, b, b + 1),
                                 view::slice(count, 0, b, b + 1));
    at = end;
  }
  return {-(mean * count), sum(count), minimum(count, 1)};
}

}  // namespace

void AuxiliaryLosses::resolve(const Likelihood& likelihood) {
  for (const auto& [name, make] : waiting) list.emplace_back(name, make(likelihood));
  waiting.clear();
}

Tensor AuxiliaryLosses::sum() const {
  if (!waiting.empty()) {
    fail("loss: the term '", waiting.front().first,
         "' of an attention waits for the likelihood of each sequence, which this task does not tell. Call "
         "resolve_auxiliary_losses() beside its cross entropy.");
  }
  Tensor total;
  for (const auto& [name, term] : list) total = total ? total + term : term;
  return total;
}

void resolve_auxiliary_losses(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                              std::span<const int64_t> rows, int32_t ignore) {
  if (losses == nullptr || losses->waiting.empty()) return;
  Likelihood likelihood;
  {
    const NoGrad no_grad;
    likelihood = likelihood_of(logits, targets, rows, ignore);
  }
  losses->resolve(likelihood);
}

void resolve_auxiliary_losses(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                              int32_t ignore) {
  if (losses == nullptr || losses->waiting.empty()) return;
  const int64_t batch = targets.extent(0);
  const std::vector<int64_t> rows(static_cast<size_t>(batch), targets.size() / std::max<int64_t>(batch, 1));
  resolve_auxiliary_losses(losses, reshape(logits.detach(), Shape{-1, logits.extent(-1)}),
                           reshape(targets.detach(), Shape{-1}), rows, ignore);
}

void resolve_auxiliary_losses_of_parts(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                                       int64_t parts) {
  if (losses == nullptr || losses->waiting.empty()) return;
  Likelihood likelihood;
  {
    const NoGrad no_grad;
    const std::vector<int64_t> rows(static_cast<size_t>(targets.extent(0)), 1);
    likelihood = likelihood_of(logits.detach(), targets.detach(), rows, -1);
    for (Tensor* each : {&likelihood.of_sequences, &likelihood.real})
      *each = concat(std::vector<Tensor>(static_cast<size_t>(parts), *each), 0);
  }
  losses->resolve(likelihood);
}

AttentionInput with_finite_padding(const AttentionInput& input, bool cross) {
  if (!input.mask.key_lengths() || !input.keys) return input;
  const Tensor &queries = input.queries, &keys = input.keys;
  const int64_t first = input.cache != nullptr ? input.cache->length : 0;
  AttentionInput out = input;
  out.keys = input.mask.finite_padding(keys, first);
  if (cross) return out;
  const bool same = queries.raw() == keys.raw() && queries.shape() == keys.shape() &&
                    queries.strides() == keys.strides() && queries.node() == keys.node();
  // The last query belongs to the last key.
  out.queries =
      same ? out.keys : input.mask.finite_padding(queries, first + keys.extent(1) - queries.extent(1));
  return out;
}

void reorder(AttentionCache& cache, const Tensor& order) {
  if (order.dtype() != DType::i32 || order.rank() != 1) {
    fail("reorder: the order is ", order.dtype(), " ", order.shape(),
         "; it must be i32 [B], one row a hypothesis.");
  }
  Reorder visitor(order);
  cache.fields(visitor);
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
