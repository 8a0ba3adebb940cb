// Reads the settings of a GPT-2, and renames, splits and transposes its tensors.
#include "heed/train/run/gpt2_weights.h"

#include <bit>
#include <list>
#include <set>

#include "heed/train/run/model_settings.h"

namespace heed {
namespace {

/// A tensor in memory, row-major.
struct Weights {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// Transposes a matrix: [rows, columns] -> [columns, rows].
Weights transposed(const Weights& x) {
  const auto rows = static_cast<size_t>(x.shape[0]), columns = static_cast<size_t>(x.shape[1]);
  Weights out{.shape = {x.shape[1], x.shape[0]}, .values = std::vector<float>(x.values.size())};
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) out.values[j * rows + i] = x.values[i * columns + j];
  }
  return out;
}

/// Part `index` of a tensor that is split along its first axis into parts of `extent`.
Weights part_of(const Weights& x, int64_t index, int64_t extent) {
  const int64_t part_size = extent * (static_cast<int64_t>(x.values.size()) / x.shape[0]);
  const auto begin = x.values.begin() + index * part_size;
  Weights out{.shape = x.shape, .values = {begin, begin + part_size}};
  out.shape[0] = extent;
  return out;
}

/// Converts the tensors of a file one by one: takes them by their names in GPT-2 and puts them by those in a
/// DecoderOnly.
class Conversion {
 public:
  explicit Conversion(const SafeTensors& file) : file_(file) {
    for (const TensorEntry& entry : file.entries()) {
      if (entry.name.starts_with(optional_prefix)) prefix_ = optional_prefix;
      if (!is_mask(entry.name)) not_taken_.insert(entry.name);
    }
  }

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  /// A tensor of the model without its head, by its name behind the prefix that all of these may have.
  Weights take(const std::string& name, const std::vector<int64_t>& shape) {
    return take_whole(std::string(prefix_) + name, shape);
  }
  /// A tensor by its whole name. Fails where it is missing, or of another shape or dtype.
  Weights take_whole(const std::string& name, const std::vector<int64_t>& shape) {
    const TensorEntry& entry = file_.at(name);
    not_taken_.erase(name);
    if (entry.shape != shape)
      fail(Fault::data, file_.name(), ": ", name, " has shape ", Json(list_of(entry.shape)).dump(),
           ", and config.json gives ", Json(list_of(shape)).dump(), ".");
    file_.check_finite(entry);
    const Array array = file_.array(name);
    if (array.dtype == "f32") return {shape, array.values<float>()};
    if (array.dtype != "bf16")
      fail(Fault::data, file_.name(), ": ", name, " is ", array.dtype,
           ". Weights can be f32 or bf16: save the model in one of these.");
    Weights out{.shape = shape, .values = {}};
    for (const uint16_t bf16_bits : array.values<uint16_t>())
      out.values.push_back(std::bit_cast<float>(uint32_t{bf16_bits} << 16));
    return out;
  }
  void put(const std::string& name, Weights weights) { converted_.emplace_back(name, std::move(weights)); }
  /// Converts weight and bias of a linear layer. GPT-2 stores the weight as [in, out], Heed as [out, in].
  void convert_linear(const std::string& gpt2_name, const std::string& heed_name, int64_t in, int64_t out) {
    put(heed_name + ".weight", transposed(take(gpt2_name + ".weight", {in, out})));
    put(heed_name + ".bias", take(gpt2_name + ".bias", {out}));
  }
  void convert_norm(const std::string& gpt2_name, const std::string& heed_name, int64_t width) {
    put(heed_name + ".gain", take(gpt2_name + ".weight", {width}));
    put(heed_name + ".bias", take(gpt2_name + ".bias", {width}));
  }
  /// The bytes of a safetensors file with all tensors that were put. Fails if a tensor was not taken.
  std::string encode() const {
    if (!not_taken_.empty())
      fail(Fault::data, file_.name(), ": ", not_taken_.size(),
           " tensors are none of a GPT-2 of that config.json: ", *not_taken_.begin(),
           not_taken_.size() > 1 ? ", ..." : "", ".");
    std::vector<TensorBytes> list;
    for (const auto& [name, weights] : converted_)
      list.push_back({name, "f32", weights.shape, std::as_bytes(std::span(weights.values))});
    return encode_safetensors(list);
  }

 private:
  static constexpr std::string_view optional_prefix = "transformer.";
  /// Whether a tensor is the causal mask or the score of masked keys: constants that older files hold.
  static bool is_mask(std::string_view name) {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  }
  static Json::List list_of(const std::vector<int64_t>& shape) { return {shape.begin(), shape.end()}; }

  const SafeTensors& file_;
  std::string_view prefix_;  // optional_prefix where the file's names have it, else empty
  std::set<std::string> not_taken_;
  std::list<std::pair<std::string, Weights>> converted_;
};

/// Converts the tensors of a transformer block: two norms, the attention, whose query, key and value GPT-2
/// stores as one layer, and the feed-forward network.
void convert_block(Conversion& conversion, const Gpt2Config& config, int64_t layer) {
  const std::string gpt2 = text("h.", layer, "."), heed = text("decoder.blocks.", layer, ".");
  const int64_t width = config.width;
  conversion.convert_norm(gpt2 + "ln_1", heed + "attention_norm", width);
  const Weights qkv_weight = transposed(conversion.take(gpt2 + "attn.c_attn.weight", {width, 3 * width}));
  const Weights qkv_bias = conversion.take(gpt2 + "attn.c_attn.bias", {3 * width});
  int64_t index = 0;
  for (const char* projection : {"query", "key", "value"}) {
    conversion.put(heed + "attention." + projection + ".weight", part_of(qkv_weight, index, width));
    conversion.put(heed + "attention." + projection + ".bias", part_of(qkv_bias, index++, width));
  }
  conversion.convert_linear(gpt2 + "attn.c_proj", heed + "attention.output", width, width);
  conversion.convert_norm(gpt2 + "ln_2", heed + "forward_norm", width);
  conversion.convert_linear(gpt2 + "mlp.c_fc", heed + "feed_forward.up", width, config.hidden);
  conversion.convert_linear(gpt2 + "mlp.c_proj", heed + "feed_forward.down", config.hidden, width);
}

}  // namespace

Gpt2Config parse_gpt2_config(const Json& json, const std::string& name) {
  const ModelSettings members(json, name);
  members.demand("model_type", "gpt2", "other models have other parts");
  members.demand("activation_function", "gelu_new", "the GELU by tanh is that of GPT-2");
  members.demand("scale_attn_weights", true, "scores are divided by the root of a head's width");
  members.demand("scale_attn_by_inverse_layer_idx", false, "all layers scale scores alike");
  members.demand("add_cross_attention", false, "a language model has no second input");
  Gpt2Config out{.vocabulary = members.count("vocab_size"),
                 .positions = members.count("n_positions"),
                 .width = members.count("n_embd"),
                 .layers = members.count("n_layer"),
                 .heads = members.count("n_head"),
                 .norm_epsilon = members.fraction("layer_norm_epsilon", 1e-5),
                 .dropout = members.fraction("resid_pdrop", 0.1),
                 .attention_dropout = members.fraction("attn_pdrop", 0.1)};
  out.hidden = members.count("n_inner", 4 * out.width);
  return out;
}

Gpt2Weights gpt2_weights(const SafeTensors& file, const Gpt2Config& config) {
  Conversion conversion(file);
  const std::vector<int64_t> embedding_shape{config.vocabulary, config.width};
  Weights embedding = conversion.take("wte.weight", embedding_shape);
  Gpt2Weights out;
  if (conversion.has("lm_head.weight")) {
    Weights head = conversion.take_whole("lm_head.weight", embedding_shape);
    out.tied = head.values == embedding.values;
    if (!out.tied) conversion.put("output.weight", std::move(head));
  }
  conversion.put("embedder.tokens.weight", std::move(embedding));
  conversion.put("embedder.position.table", conversion.take("wpe.weight", {config.positions, config.width}));
  for (int64_t layer = 0; layer < config.layers; ++layer) convert_block(conversion, config, layer);
  conversion.convert_norm("ln_f", "decoder.norm", config.width);
  out.bytes = conversion.encode();
  return out;
}

}  // namespace heed
