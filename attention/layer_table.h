// The table of layer types: complexity, sequential operations and maximum path length of layers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heed/attention/variant.h"

namespace heed {

/// One layer: x [B, n, d] -> [B, n, d].
using LayerFunction = std::function<Tensor(const Tensor& x)>;

/// A type of layer as a row of the table (Vaswani et al. 2017, arXiv 1706.03762, table 1). Costs are those of
/// one layer for a sequence of length n and width d; k is the taps of a convolution, r the keys of a window,
/// c a chunk or block, m the slots, landmarks, samples or features.
struct LayerType {
  std::string name;          ///< "restricted self-attention"
  std::string attention{};   ///< the spec of an attention; empty: another layer
  std::string complexity{};  ///< operations: "r n d"
  std::string sequential{};  ///< operations that must follow each other: "1"
  std::string path{};        ///< layers, or steps of a recurrent layer, between any two positions: "n / r"
  std::string paper{};       ///< authors, year
  Growth time{};             ///< the exponents of `complexity`, to be compared with the counted ones
  /// Creates layer number `depth`, from 0, of a stack of such layers, with random weights.
  std::function<LayerFunction(int64_t length, int64_t width, int64_t depth)> make;
  bool same_at_any_depth = true;  ///< the connected positions do not depend on the place in the stack
};

/// All rows: self-attention, recurrent and convolutional layers, restricted and efficient self-attention.
const std::vector<LayerType>& layer_types();

/// The counted costs of a layer type, at both layer_lengths.
struct LayerCounts {
  Growth time;             ///< exponents of the operations of a training step
  int64_t chain[2] = {};   ///< nodes of the longest chain of recorded operations of one layer
  int64_t layers[2] = {};  ///< layers until every output depends on every input; 0: more than the length
  double sequential = 0;   ///< exponent of `chain` in n: 0 for a constant, 1 for n
  double path = 0;         ///< exponent of layers times chain in n
};

/// The lengths at which chains and layers are counted.
inline constexpr int64_t layer_lengths[2] = {64, 128};

/// Counts a layer type on the CPU; about a second. Attention is counted without its projections
/// (attention/counted_cost.h), other layers with all their operations.
LayerCounts count_layer(const LayerType& type);

/// The number of layers until every output position depends on every input position, found by changing one
/// input position at a time and comparing bits; 0: not within `length` layers.
int64_t layers_to_connect(const LayerType& type, int64_t length);
/// The number of nodes of the longest chain in the history of one layer's output.
int64_t longest_chain(const LayerType& type, int64_t length);

/// Counts every row, in their order; about half a minute.
std::vector<LayerCounts> count_layers();

/// The table as aligned text: with the columns of these counts, or none where they are empty.
std::string layers_text(const std::vector<LayerCounts>& counts);
/// The table as Markdown: with counts, the page docs/reference/layers.md.
std::string layers_markdown(const std::vector<LayerCounts>& counts);
/// The table as a JSON array.
std::string layers_json(const std::vector<LayerCounts>& counts);

}  // namespace heed
