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

constexpr int64_t small_width = 16;  // width of layers whose connections and chains are searched
constexpr int64_t max_batch = 32;    // copies of a sequence in one call, each with another input changed
constexpr int64_t counted_length = 256, counted_width = 128;  // sizes of steps whose operations are counted

Tensor random_tensor(const Shape& shape, uint64_t seed) { return normal_tensor(shape, seed, default_device); }

/// Operations of one forward and backward pass of a layer other than attention.
double operations_of_layer(const LayerType& type, int64_t length, int64_t width) {
  const LayerFunction layer = type.make(length, width, 0);
  const Tensor x = leaf(random_tensor(Shape{1, length, width}, 1)), dy = random_tensor(x.shape(), 2);
  Count::reset();
  backward(layer(x), dy);
  return static_cast<double>(Count::flops().load());
}

/// The exponents of a layer's operations, by doubling the length and the width.
Growth counted_growth_of(const LayerType& type) {
  if (!type.attention.empty()) return counted_time(parse_spec(type.attention), type.time);
  const double base = operations_of_layer(type, counted_length, counted_width);
  return {.length = std::log2(operations_of_layer(type, 2 * counted_length, counted_width) / base),
          .width = std::log2(operations_of_layer(type, counted_length, 2 * counted_width) / base)};
}

/// Which outputs of a layer, or of a stack of layers, depend on which inputs.
class Connections {
 public:
  explicit Connections(int64_t length) : length_(length), rows_(static_cast<size_t>(length)) {}
  void set(size_t output, size_t input) { rows_[output].set(input); }
  bool is_complete() const {
    return std::all_of(rows_.begin(), rows_.end(),
                       [&](const Row& row) { return static_cast<int64_t>(row.count()) == length_; });
  }
  /// The connections of a stack: this layer on top of the layers with connections `below`.
  Connections on_top_of(const Connections& below) const {
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

/// `count` copies of a sequence x [length, small_width]; copy i has the numbers of `changed` at position
/// first + i.
Tensor copies_with_changes(const std::vector<float>& x, const std::vector<float>& changed, int64_t first,
                           int64_t count) {
  const auto num_values = static_cast<int64_t>(x.size());
  std::vector<float> copies;
  for (int64_t i = 0; i < count; ++i) {
    copies.insert(copies.end(), x.begin(), x.end());
    const int64_t offset = (first + i) * small_width;
    std::copy_n(changed.begin() + offset, small_width, copies.begin() + i * num_values + offset);
  }
  return Tensor::of<float>(copies, Shape{count, num_values / small_width, small_width});
}

/// Adds the connections that one random sequence shows: outputs whose bits change when an input changes.
void add_connections(const LayerFunction& layer, int64_t length, uint64_t seed, Connections& connections) {
  const std::vector<float> x = random_tensor(Shape{length, small_width}, seed).to_host(),
                           changed = random_tensor(Shape{length, small_width}, seed + 1000).to_host();
  for (int64_t begin = 0; begin < length; begin += max_batch) {
    const int64_t count = std::min(max_batch, length - begin);
    // Rows of one batch are compared, since the place of a row in a matrix product may change its last bit.
    const std::vector<float> original = layer(copies_with_changes(x, x, begin, count)).to_host(),
                             moved = layer(copies_with_changes(x, changed, begin, count)).to_host();
    for (int64_t row = 0; row < count * length; ++row) {
      const auto first = original.begin() + row * small_width;
      const int64_t input = begin + row / length, output = row % length;
      if (!std::equal(first, first + small_width, moved.begin() + row * small_width))
        connections.set(static_cast<size_t>(output), static_cast<size_t>(input));
    }
  }
}

/// The connections that several sequences show: in one of them all ReLUs between two positions may be 0.
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
  const Connections first_layer = connections_of(type.make(length, small_width, 0), length);
  Connections stack = first_layer;
  for (int64_t layers = 1; layers <= length; ++layers) {
    if (stack.is_complete()) return layers;
    const Connections next =
        type.same_at_any_depth
            ? first_layer.on_top_of(stack)
            : connections_of(type.make(length, small_width, layers), length).on_top_of(stack);
    if (next == stack) return 0;
    stack = next;
  }
  return 0;
}

int64_t longest_chain(const LayerType& type, int64_t length) {
  const Tensor x = leaf(random_tensor(Shape{1, length, small_width}, 3));
  const Tensor y = type.make(length, small_width, 0)(x);
  // Nodes are numbered in the order of creation, so inputs precede the nodes computed from them.
  std::map<uint64_t, const Node*> nodes;
  std::vector<const Node*> pending{y.node().get()};
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (node == nullptr || !nodes.emplace(node->order, node).second) continue;
    for (const auto& input : node->inputs) pending.push_back(input.get());
  }
  std::map<const Node*, int64_t> chain_length;
  int64_t max_length = 0;
  for (const auto& [order, node] : nodes) {
    int64_t longest_input = 0;
    for (const auto& input : node->inputs) {
      if (input != nullptr) longest_input = std::max(longest_input, chain_length[input.get()]);
    }
    chain_length[node] = node->inputs.empty() ? 0 : longest_input + 1;
    max_length = std::max(max_length, chain_length[node]);
  }
  return max_length;
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
