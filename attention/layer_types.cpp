// The rows of the table of layer types.
#include <algorithm>

#include "heed/attention/layer_table.h"
#include "heed/nn/convolution.h"
#include "heed/nn/recurrent.h"

namespace heed {
namespace {

/// Whether the positions that an attention connects depend on the numbers in them, and so differ by layer.
enum class ConnectionRule { fixed, by_contents };

LayerType attention_layer(const std::string& name, const std::string& spec, const std::string& complexity,
                          const std::string& sequential, const std::string& path,
                          ConnectionRule connections = ConnectionRule::fixed) {
  const Variant& variant = variant_named(parse_spec(spec).name);
  return {.name = name,
          .attention = spec,
          .complexity = complexity,
          .sequential = sequential,
          .path = path,
          .paper = variant.traits.paper,
          .time = variant.traits.time,
          .make = [spec](int64_t length, int64_t width, int64_t depth) -> LayerFunction {
            Rng rng(static_cast<uint64_t>(depth + 1));
            const std::shared_ptr<Attention> attention =
                make_attention(spec, {.d_model = width, .max_length = length}, rng);
            return [attention](const Tensor& x) { return attention->forward({.queries = x, .keys = x}); };
          },
          .same_at_any_depth = connections == ConnectionRule::fixed};
}

/// Opens the second gate, which keeps the state (f of an LSTM, z of a GRU): with gates about half open, a
/// float loses an input within some 30 steps, and counting would miss paths that exist.
void open_keeping_gate(RecurrentCell& cell) {
  std::vector<float> bias(static_cast<size_t>(cell.gates() * cell.width()), 0.0f);
  std::fill_n(bias.begin() + cell.width(), cell.width(), 4.0f);  // sigmoid(4) = 0.98
  cell.input.bias = leaf(Tensor::of<float>(bias, Shape{cell.gates() * cell.width()}));
}

/// A bidirectional recurrent layer.
LayerType recurrent_layer(const std::string& name, CellKind cell, const std::string& paper) {
  return {.name = name,
          .complexity = "n d^2",
          .sequential = "n",
          .path = "n",
          .paper = paper,
          .time = {.length = 1, .width = 2},
          .make = [cell](int64_t, int64_t width, int64_t depth) -> LayerFunction {
            Rng rng(static_cast<uint64_t>(depth + 1));
            const auto layer = std::make_shared<Recurrent>(
                width, width, RecurrentOptions{.cell = cell, .bidirectional = true}, rng);
            for (const auto* cells : {&layer->forward, &layer->backward}) {
              for (const auto& each : *cells) open_keeping_gate(*each);
            }
            return [layer](const Tensor& x) { return (*layer)(x, {}, nullptr); };
          }};
}

/// fastmax of degree 1, whose exponents differ from those of the variant's default degree.
LayerType degree_1_polynomial() {
  LayerType type = attention_layer("polynomial of degree 1", "fastmax:p=1", "n d^2", "1", "1");
  type.time = {.length = 1, .width = 2};
  return type;
}

constexpr int64_t taps = 3;  // k of both convolutions

LayerType gated_convolution() {
  return {.name = "convolution, gated",
          .complexity = "k n d^2",
          .sequential = "1",
          .path = "n / k",
          .paper = "ConvS2S, Gehring et al. 2017",
          .time = {.length = 1, .width = 2},
          .make = [](int64_t, int64_t width, int64_t depth) -> LayerFunction {
            Rng rng(static_cast<uint64_t>(depth + 1));
            const auto layer = std::make_shared<GatedConvolution>(width, Taps{.count = taps}, rng);
            return [layer](const Tensor& x) { return (*layer)(x, {}); };
          }};
}

LayerType dilated_convolution() {
  return {.name = "convolution, dilated",
          .complexity = "k n d^2",
          .sequential = "1",
          .path = "log_k n",
          .paper = "ByteNet, Kalchbrenner et al. 2016",
          .time = {.length = 1, .width = 2},
          .make = [](int64_t length, int64_t width, int64_t depth) -> LayerFunction {
            Rng rng(static_cast<uint64_t>(depth + 1));
            Taps dilated{.count = taps};
            for (int64_t i = 0; i < depth; ++i) {
              dilated.dilation *= taps;
              // ByteNet's dilations restart at 1: taps as far apart as the length would see padding only
              if (dilated.dilation >= length) dilated.dilation = 1;
            }
            const auto layer = std::make_shared<DilatedConvolution>(width, dilated, rng);
            return [layer](const Tensor& x) { return (*layer)(x, {}); };
          },
          .same_at_any_depth = false};
}

}  // namespace

const std::vector<LayerType>& layer_types() {
  static const std::vector<LayerType> all{
      attention_layer("self-attention", "softmax", "n^2 d", "1", "1"),
      recurrent_layer("recurrent, LSTM", CellKind::lstm, "Hochreiter and Schmidhuber 1997"),
      recurrent_layer("recurrent, GRU", CellKind::gru, "Cho et al. 2014"),
      gated_convolution(),
      dilated_convolution(),
      attention_layer("restricted self-attention", "window:left=8,right=8", "r n d", "1", "n / r"),
      attention_layer("sparse, strided", "strided", "n sqrt(n) d", "1", "2"),
      attention_layer("sparse, fixed", "fixed", "n sqrt(n) d", "1", "2"),
      attention_layer("window and global tokens", "longformer:window=8", "r n d", "1", "2"),
      attention_layer("window, global and random blocks", "bigbird:block=8", "c n d", "1", "2"),
      attention_layer("hashing", "reformer:chunk=8", "c n d + n log n", "1", "log n",
                      ConnectionRule::by_contents),
      attention_layer("clusters", "routing", "n sqrt(n) d", "1", "log n", ConnectionRule::by_contents),
      attention_layer("sorted blocks", "sinkhorn", "n sqrt(n) d", "1", "log n", ConnectionRule::by_contents),
      attention_layer("projected keys", "linformer", "m n d", "1", "1"),
      attention_layer("landmarks", "nystromformer", "m n d", "1", "1"),
      attention_layer("sampled queries", "informer", "n log n d", "1", "1"),
      attention_layer("hierarchy of blocks", "h_transformer", "c n d", "log n", "1"),
      attention_layer("kernel elu + 1", "linear", "n d^2", "1", "1"),
      attention_layer("random features", "performer", "n m d", "1", "1"),
      degree_1_polynomial(),
      attention_layer("polynomial of degree 2", "fastmax", "n d^3", "1", "1"),
  };
  return all;
}

}  // namespace heed
