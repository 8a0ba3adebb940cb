// ResidualGraph: a language model as a graph of what writes to its residual stream and what reads it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/nn/transformer.h"

namespace heed {

/// What writes to the residual stream.
enum class SenderKind {
  embedding,    ///< tokens and positions
  head,         ///< an attention head, through its part of the output projection
  feed_forward  ///< the feed-forward network of a block
};

/// What reads the residual stream, through a norm.
enum class ReceiverKind {
  query,         ///< the query projection of a head
  key,           ///< the key projection of a head, or of heads that share it
  value,         ///< the value projection of a head, or of heads that share it
  gates,         ///< gates and decays of all heads of a block, where attentions have them
  feed_forward,  ///< the feed-forward network of a block
  logits         ///< the output layer
};

/// A node that writes to the residual stream.
struct EdgeSender {
  SenderKind kind = SenderKind::embedding;  ///< what it is
  int64_t layer = 0;                        ///< its block, from 0; 0 for the embedding
  int64_t head = 0;                         ///< its number in the block, from 0; 0 where it is no head
  /// The branch that adds it: 2 `layer` of attention, 2 `layer` + 1 of a feed-forward network, -1 of the
  /// embedding.
  int64_t branch() const;
  std::string name() const;  ///< "embedding", "head 1.3", "feed-forward 1"
};

/// A node, or one of the inputs of a head, that reads the residual stream.
struct EdgeReceiver {
  ReceiverKind kind = ReceiverKind::logits;  ///< what it is
  int64_t layer = 0;                         ///< its block, from 0; for the logits the number of blocks
  int64_t head = 0;                          ///< its first query head, from 0; 0 where it is no head
  int64_t heads = 1;                         ///< number of query heads that share it
  /// The branch that reads it, counted as that of EdgeSender; 2 `layer` for the logits.
  int64_t branch() const;
  std::string name() const;  ///< "head 1.3 query", "heads 1.0-3 key", "feed-forward 1", "logits"
};

/// An edge of the graph, by the numbers of its ends in ResidualGraph::senders() and receivers().
struct GraphEdge {
  size_t sender = 0;    ///< writes to the residual stream
  size_t receiver = 0;  ///< reads it in a later branch
};

/// What a forward pass of one sequence held.
struct GraphTrace {
  std::vector<Tensor>
      streams{};  ///< the residual stream [1, T, width] that each branch, and the logits, read
  std::vector<Tensor> outputs{};  ///< what each sender wrote, [1, T, width]
  Tensor hidden{};                ///< the input of the output layer, [1, T, width]
};

/// A decoder-only transformer as a graph (Elhage et al. 2021, "A mathematical framework for transformer
/// circuits"): the residual stream is the sum of what embedding, heads and feed-forward networks write, and
/// each receiver reads the sum of all that earlier branches wrote. The norm belongs to the receiver, and so
/// does a short convolution: an edge carries what the sender wrote, before the norm. Biases of output
/// projections belong to no node. Heads that share a key-value head share its key and value receivers.
class ResidualGraph {
 public:
  /// The stream that receiver number `receiver` reads in place of `x` [B, T, width]; empty: x.
  using Reads = std::function<Tensor(size_t receiver, const Tensor& x)>;

  /// Keeps a reference to the model. Fails for norms behind branches, and for an attention without
  /// projections of queries, keys and values.
  explicit ResidualGraph(DecoderOnly& model);
  DecoderOnly& model() const { return model_; }                              ///< the model
  const std::vector<EdgeSender>& senders() const { return senders_; }        ///< by branch, then head
  const std::vector<EdgeReceiver>& receivers() const { return receivers_; }  ///< by branch; logits last
  /// The number of senders before a receiver: it reads the first ones.
  size_t num_senders(size_t receiver) const;
  /// All edges, by receiver, then sender.
  std::vector<GraphEdge> edges() const;
  /// The input of the output layer [B, T, width] where branch number `first` and those after it read the
  /// stream x [B, T, width], changed by `reads` where that is given. `trace` receives streams and outputs;
  /// null: none.
  Tensor hidden(const Tensor& x, int64_t first = 0, const Reads& reads = {},
                GraphTrace* trace = nullptr) const;
  /// Runs the model on tokens, without gradients. Fails where the graph gives something else than the model,
  /// as it does for an attention that reads its input in further ways.
  GraphTrace trace(const std::vector<int32_t>& ids) const;

 private:
  void add_receivers(ReceiverKind kind, int64_t layer, int64_t count, int64_t heads_of_each);
  Tensor attention_branch(int64_t layer, const Tensor& x, const Reads& reads, GraphTrace* trace) const;
  Tensor feed_forward_branch(int64_t layer, const Tensor& x, const Reads& reads, GraphTrace* trace) const;

  DecoderOnly& model_;
  std::vector<EdgeSender> senders_;
  std::vector<EdgeReceiver> receivers_;
  std::vector<size_t> first_receiver_;  // number of the first receiver in each block
};

}  // namespace heed
