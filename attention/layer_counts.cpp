// Counts operations, chains and connections of layers, which the table of layer types declares.
#include <algorithm>
#include <bitset>
#include <cmath>
#include <map>

#include "heed/attention/counted_cost.h"
#include "heed/attention/layer_table.h"
#include "heed/autograd/node.h"
#include "heed/core/operation_count.h"

namespace heed {
namespace {

constexpr int64_t narrow = 16;                       // width at which connections are searched
constexpr int64_t changed_at_once = 32;              // input positions, each in a copy of the sequence
constexpr int64_t long_side = 256, wide_side = 128;  // shape of a step whose operations are counted

Tensor drawn(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape, DType::f32);
  fill_normal(x, 0, 1, rng);
  return x;
}

/// Operations of one forward and backward pass of a layer other than attention.
double operations_of_layer(const LayerType& type, int64_t length, int64_t width) {
  const LayerFunction layer = type.make(length, width, 0);
  const Tensor x = leaf(drawn(Shape{1, length, width}, 1)), dy = drawn(x.shape(), 2);
  Count::reset();
  backward(layer(x), dy);
  return static_cast<double>(Count::flops().load());
}

Growth counted_growth_of(const LayerType& type) {
  if (!type.attention.empty()) return counted_time(parse_spec(type.attention), type.time);
  const double base = operations_of_layer(type, long_side, wide_side);
  return {.length = std::log2(operations_of_layer(type, 2 * long_side, wide_side) / base),
          .width = std::log2(operations_of_layer(type, long_side, 2 * wide_side) / base)};
}

/// The dependence of each output of a layer on each input.
class Connections {
 public:
  explicit Connections(int64_t length) : length_(length), rows_(static_cast<size_t>(length)) {}
  void set(size_t output, size_t input) { rows_[output].set(input); }
  bool complete() const {
    return std::all_of(rows_.begin(), rows_.end(),
                       [&](const Row& row) { return static_cast<int64_t>(row.count()) == length_; });
  }
  /// The connections of this layer on top of `below`.
  Connections over(const Connections& below) const {
    Connections out(length_);
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (size_t middle = 0; middle < rows_.size(); ++middle) {
        if (rows_[i].test(middle)) out.rows_[i] |= below.rows_[middle];
      }
    }
    return out;
  }
  bool operator==(const Connections& other) const { return rows_ == other.rows_; }

 private:
  using Row = std::bitset<layer_lengths[1]>;
  int64_t length_;
  std::vector<Row> rows_;  // a row for each output, with a bit for each input
};

/// Copies of a sequence x [n narrow]; copy i has the numbers of `changed` at position first + i.
Tensor copies_of(const std::vector<float>& x, const std::vector<float>& changed, int64_t first,
                 int64_t count) {
  const auto row = static_cast<std::ptrdiff_t>(narrow), sequence = static_cast<std::ptrdiff_t>(x.size());
  std::vector<float> all;
  for (int64_t i = 0; i < count; ++i) {
    all.insert(all.end(), x.begin(), x.end());
    const std::ptrdiff_t at = (first + i) * row;
    std::copy_n(changed.begin() + at, row, all.begin() + i * sequence + at);
  }
  return Tensor::of<float>(all, Shape{count, sequence / row, row});
}

/// Adds the connections of one random sequence: outputs whose bits change with an input.
void add_connections(const LayerFunction& layer, int64_t length, uint64_t seed, Connections& out) {
  const std::vector<float> x = drawn(Shape{length, narrow}, seed).to_host(),
                           changed = drawn(Shape{length, narrow}, seed + 1000).to_host();
  for (int64_t begin = 0; begin < length; begin += changed_at_once) {
    const int64_t count = std::min(changed_at_once, length - begin);
    // Rows of one batch are compared, since the place of a row in a matrix product may change its last bit.
    const std::vector<float> before = layer(copies_of(x, x, begin, count)).to_host(),
                             after = layer(copies_of(x, changed, begin, count)).to_host();
    for (int64_t row = 0; row < count * length; ++row) {
      const auto at = static_cast<std::ptrdiff_t>(row * narrow);
      if (!std::equal(before.begin() + at, before.begin() + at + narrow, after.begin() + at))
        out.set(static_cast<size_t>(row % length), static_cast<size_t>(begin + row / length));
    }
  }
}

/// The connections of several sequences, since all ReLUs between two positions may be 0 in one of them.
Connections connections_of(const LayerFunction& layer, int64_t length) {
  const NoGrad no_grad;
  Connections out(length);
  for (uint64_t seed = 3; seed < 7; ++seed) add_connections(layer, length, seed, out);
  return out;
}

}  // namespace

int64_t layers_to_connect(const LayerType& type, int64_t length) {
  if (length < 1 || length > layer_lengths[1])
    fail("layers_to_connect: a length of ", length, ". It must be 1 to ", layer_lengths[1], ".");
  const Connections first = connections_of(type.make(length, narrow, 0), length);
  Connections all = first;
  for (int64_t layers = 1; layers <= length; ++layers) {
    if (all.complete()) return layers;
    const Connections more = type.same_at_any_depth
                                 ? first.over(all)
                                 : connections_of(type.make(length, narrow, layers), length).over(all);
    if (more == all) return 0;
    all = more;
  }
  return 0;
}

int64_t longest_chain(const LayerType& type, int64_t length) {
  const Tensor x = leaf(drawn(Shape{1, length, narrow}, 3));
  const Tensor y = type.make(length, narrow, 0)(x);
  // Nodes are numbered in the order of creation, so inputs precede the nodes computed from them.
  std::map<uint64_t, const Node*> nodes;
  std::vector<const Node*> pending{y.node().get()};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (node == nullptr || !nodes.emplace(node->order, node).second) continue;
    for (const auto& input : node->inputs) pending.push_back(input.get());
  }
  std::map<const Node*, int64_t> depth;
  int64_t longest = 0;
  for (const auto& [order, node] : nodes) {
    int64_t before = 0;
    for (const auto& input : node->inputs) {
      if (input != nullptr) before = std::max(before, depth[input.get()]);
    }
    depth[node] = node->inputs.empty() ? 0 : before + 1;
    longest = std::max(longest, depth[node]);
  }
  return longest;
}

LayerCounts count_layer(const LayerType& type) {
  LayerCounts out{.time = counted_growth_of(type)};
  for (const int i : {0, 1}) {
    out.chain[i] = longest_chain(type, layer_lengths[i]);
    out.layers[i] = layers_to_connect(type, layer_lengths[i]);
  }
  const auto exponent = [](const int64_t counts[2]) {
    return std::log2(static_cast<double>(counts[1]) / static_cast<double>(counts[0]));
  };
  out.sequential = exponent(out.chain);
  out.path = out.layers[0] > 0 && out.layers[1] > 0 ? exponent(out.layers) + out.sequential : NAN;
  return out;
}

std::vector<LayerCounts> count_layers() {
  std::vector<LayerCounts> out;
  for (const LayerType& type : layer_types()) out.push_back(count_layer(type));
  return out;
}

}  // namespace heed
