// The forward pass of a decoder-only transformer in which every receiver reads a stream of its own.
#include "heed/attention/inspect/residual_graph.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/base/decay_attention.h"
#include "heed/autograd/autocast.h"

namespace heed {
namespace {

/// The attention of a block. ResidualGraph has checked its class.
MultiHeadAttention& heads_of_block(const Block& block) {
  return dynamic_cast<MultiHeadAttention&>(*block.attention);
}

/// What self-attention of the block reads of the stream x: norm and short convolution, [B, T, width].
Tensor attention_input(const Block& block, const Tensor& x) {
  const Tensor h = block.attention_norm(x);
  return block.short_convolution ? (*block.short_convolution)(h, Mask::causal()) : h;
}

/// [B, T, count d] -> [B, count, T, d].
Tensor split_heads(const Tensor& x, int64_t count) {
  return transpose(reshape(x, Shape{x.extent(0), x.extent(1), count, -1}), 1, 2);
}

/// The rows of a layer that give output `index` of `count` equal parts, applied to x: [B, T, out / count].
Tensor part_of_linear(const Linear& layer, int64_t index, int64_t count, const Tensor& x) {
  const int64_t rows = layer.weight.extent(0) / count, begin = index * rows;
  const Tensor bias = layer.bias ? slice(layer.bias, 0, begin, begin + rows) : Tensor();
  return linear(x, slice(layer.weight, 0, begin, begin + rows), bias);
}

/// What each head of y [B, H, T, d] adds to the stream through the output projection: H of [B, T, width].
std::vector<Tensor> written_by_heads(const Linear& output, const Tensor& y) {
  std::vector<Tensor> out;
  const int64_t d = y.extent(3);
  for (int64_t head = 0; head < y.extent(1); ++head)
    out.push_back(linear(select(y, 1, head), slice(output.weight, 1, head * d, (head + 1) * d), {}));
  return out;
}

/// The largest |a - b|, as a share of the largest |b|.
double relative_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> one = a.to_doubles(), other = b.to_doubles();
  double difference = 0, largest = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference = std::max(difference, std::abs(one[i] - other[i]));
    largest = std::max(largest, std::abs(other[i]));
  }
  return difference / std::max(largest, 1e-30);
}

}  // namespace

int64_t EdgeSender::branch() const {
  switch (kind) {
    case SenderKind::embedding:
      return -1;
    case SenderKind::head:
      return 2 * layer;
    case SenderKind::feed_forward:
      return 2 * layer + 1;
  }
  return -1;
}

std::string EdgeSender::name() const {
  switch (kind) {
    case SenderKind::embedding:
      return "embedding";
    case SenderKind::head:
      return text("head ", layer, ".", head);
    case SenderKind::feed_forward:
      return text("feed-forward ", layer);
  }
  return "";
}

int64_t EdgeReceiver::branch() const { return 2 * layer + (kind == ReceiverKind::feed_forward ? 1 : 0); }

std::string EdgeReceiver::name() const {
  const std::string place =
      heads > 1 ? text("heads ", layer, ".", head, "-", head + heads - 1) : text("head ", layer, ".", head);
  switch (kind) {
    case ReceiverKind::query:
      return place + " query";
    case ReceiverKind::key:
      return place + " key";
    case ReceiverKind::value:
      return place + " value";
    case ReceiverKind::gates:
      return place + " gates";
    case ReceiverKind::feed_forward:
      return text("feed-forward ", layer);
    case ReceiverKind::logits:
      return "logits";
  }
  return "";
}

ResidualGraph::ResidualGraph(DecoderOnly& model) : model_(model) {
  if (!model.decoder.norm)
    fail(
        "edges of a model: its norms stand behind each sum (norm = post), so its residual stream is no sum "
        "of what heads write. Train a model with --norm pre.");
  senders_.push_back({.kind = SenderKind::embedding});
  const auto layers = std::ssize(model.decoder.blocks);
  for (int64_t layer = 0; layer < layers; ++layer) {
    const Block& block = *model.decoder.blocks[static_cast<size_t>(layer)];
    const auto* attention = dynamic_cast<const MultiHeadAttention*>(block.attention.get());
    if (attention == nullptr || !attention->query.weight || !attention->key.weight)
      fail("edges of a model: the attention of block ", layer,
           " has no projections of queries, keys and values of its own, by which its heads read the ",
           "residual stream. Take a model whose attentions have them, such as softmax or linear.");
    const int64_t heads = attention->config().heads, kv_heads = attention->kv_heads();
    first_receiver_.push_back(receivers_.size());
    add_receivers(ReceiverKind::query, layer, heads, 1);
    add_receivers(ReceiverKind::key, layer, kv_heads, heads / kv_heads);
    add_receivers(ReceiverKind::value, layer, kv_heads, heads / kv_heads);
    if (dynamic_cast<const DecayAttention*>(attention) != nullptr)
      add_receivers(ReceiverKind::gates, layer, 1, heads);
    for (int64_t head = 0; head < heads; ++head)
      senders_.push_back({.kind = SenderKind::head, .layer = layer, .head = head});
    if (!block.feed_forward) continue;
    add_receivers(ReceiverKind::feed_forward, layer, 1, 1);
    senders_.push_back({.kind = SenderKind::feed_forward, .layer = layer});
  }
  add_receivers(ReceiverKind::logits, layers, 1, 1);
}

void ResidualGraph::add_receivers(ReceiverKind kind, int64_t layer, int64_t count, int64_t heads_of_each) {
  for (int64_t i = 0; i < count; ++i)
    receivers_.push_back({.kind = kind, .layer = layer, .head = i * heads_of_each, .heads = heads_of_each});
}

size_t ResidualGraph::num_senders(size_t receiver) const {
  const int64_t branch = receivers_.at(receiver).branch();
  return static_cast<size_t>(std::ranges::count_if(
      senders_, [branch](const EdgeSender& sender) { return sender.branch() < branch; }));
}

std::vector<GraphEdge> ResidualGraph::edges() const {
  std::vector<GraphEdge> out;
  for (size_t receiver = 0; receiver < receivers_.size(); ++receiver)
    for (size_t sender = 0; sender < num_senders(receiver); ++sender) out.push_back({sender, receiver});
  return out;
}

Tensor ResidualGraph::hidden(const Tensor& x, int64_t first, const Reads& reads, GraphTrace* trace) const {
  Tensor stream = x;
  const int64_t branches = 2 * std::ssize(model_.decoder.blocks);
  for (int64_t branch = first; branch < branches; ++branch) {
    const int64_t layer = branch / 2;
    if (trace != nullptr) trace->streams.push_back(stream);
    if (branch % 2 == 0)
      stream = stream + attention_branch(layer, stream, reads, trace);
    else if (model_.decoder.blocks[static_cast<size_t>(layer)]->feed_forward)
      stream = stream + feed_forward_branch(layer, stream, reads, trace);
  }
  if (trace != nullptr) trace->streams.push_back(stream);
  const Tensor own = reads ? reads(receivers_.size() - 1, stream) : Tensor();
  return (*model_.decoder.norm)(own ? own : stream);
}

Tensor ResidualGraph::attention_branch(int64_t layer, const Tensor& x, const Reads& reads,
                                       GraphTrace* trace) const {
  const Block& block = *model_.decoder.blocks[static_cast<size_t>(layer)];
  MultiHeadAttention& attention = heads_of_block(block);
  const Tensor common = attention_input(block, x);
  size_t receiver = first_receiver_[static_cast<size_t>(layer)];
  // The heads [B, count, T, d] of a projection, each of what it reads.
  const auto projected = [&](const Linear& projection, int64_t count) {
    const Tensor heads = split_heads(projection(common), count);
    if (!reads) return heads;
    std::vector<Tensor> each;
    for (int64_t head = 0; head < count; ++head) {
      const Tensor own = reads(receiver++, x);
      each.push_back(
          own ? split_heads(part_of_linear(projection, head, count, attention_input(block, own)), 1)
              : slice(heads, 1, head, head + 1));
    }
    return concat(each, 1);
  };
  Heads heads;
  heads.q = projected(attention.query, attention.config().heads);
  heads.k = projected(attention.key, attention.kv_heads());
  heads.v = projected(attention.value, attention.kv_heads());
  AttentionInput input{.mask = Mask::causal()};
  if (dynamic_cast<DecayAttention*>(&attention) != nullptr) {
    const Tensor own = reads ? reads(receiver, x) : Tensor();
    input.queries = input.keys = own ? attention_input(block, own) : common;
  }
  const Tensor y = attention.on_heads(attention.normalize_and_rotate(std::move(heads), input), input);
  if (trace != nullptr)
    for (Tensor& one : written_by_heads(attention.output, y)) trace->outputs.push_back(std::move(one));
  const Tensor joined = transpose(y, 1, 2);  // [B, T, H, d]
  return attention.output(reshape(joined, Shape{joined.extent(0), joined.extent(1), -1}));
}

Tensor ResidualGraph::feed_forward_branch(int64_t layer, const Tensor& x, const Reads& reads,
                                          GraphTrace* trace) const {
  const auto index = static_cast<size_t>(layer);
  const Block& block = *model_.decoder.blocks[index];
  const size_t next = index + 1 < first_receiver_.size() ? first_receiver_[index + 1] : receivers_.size() - 1;
  const Tensor own = reads ? reads(next - 1, x) : Tensor();
  const Tensor y = (*block.feed_forward)((*block.forward_norm)(own ? own : x), nullptr);
  if (trace != nullptr) trace->outputs.push_back(y);
  return y;
}

GraphTrace ResidualGraph::trace(const std::vector<int32_t>& ids) const {
  const NoGrad no_grad;
  constexpr double tolerance = 1e-3;  // sums of floats in another order differ less
  const Tensor tokens = Tensor::of<int32_t>(ids, Shape{1, std::ssize(ids)});
  GraphTrace out;
  const Tensor embedded = model_.embedder(tokens, 0, nullptr);
  out.outputs.push_back(embedded);
  out.hidden = hidden(embedded, 0, {}, &out);
  const double difference = relative_difference(out.hidden, widened(model_.hidden(tokens, {})));
  if (!(difference <= tolerance))
    fail("edges of a model: its graph gives hidden states that differ from the model's by ", difference,
         " of the largest, so one of its attentions reads its input in further ways. Take a model whose ",
         "attentions read queries, keys and values alone, such as softmax or linear.");
  return out;
}

}  // namespace heed
