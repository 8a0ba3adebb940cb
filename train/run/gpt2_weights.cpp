// Renames, cuts and transposes the tensors of a GPT-2.
#include "heed/train/run/gpt2_weights.h"

#include <bit>
#include <list>
#include <set>

namespace heed {
namespace {

constexpr int64_t largest_extent = 1 << 24;  // largest extent that a tensor of a model may have

/// Members of config.json, with errors that name them.
class Members {
 public:
  Members(const Json& json, const std::string& name) : json_(json), name_(name) {
    if (!json.is_object()) fail(Fault::data, name, " is no JSON object. A GPT-2 has its settings there.");
  }
  const Json* find(const char* key) const {
    const Json* found = json_.find(key);
    return found == nullptr || found->is_null() ? nullptr : found;
  }
  int64_t count(const char* key, int64_t otherwise = 0) const {
    const Json* found = find(key);
    if (found == nullptr && otherwise > 0) return otherwise;
    if (found == nullptr || !found->is_integer() || found->integer() < 1 || found->integer() > largest_extent)
      refuse(key, found, text("a whole number from 1 to ", largest_extent));
    return found->integer();
  }
  double real(const char* key, double otherwise) const {
    const Json* found = find(key);
    if (found == nullptr) return otherwise;
    if (!found->is_number() || !(found->real() >= 0 && found->real() < 1))
      refuse(key, found, "a number from 0 to less than 1");
    return found->real();
  }
  /// Fails unless the member is absent or has this value.
  void demand(const char* key, const Json& value, const char* why) const {
    const Json* found = find(key);
    if (found != nullptr && found->dump() != value.dump())
      fail(Fault::data, name_, ": ", key, " is ", shown(found->dump(), 80), ", and only ", value.dump(),
           " can be read: ", why, ".");
  }

 private:
  [[noreturn]] void refuse(const char* key, const Json* found, const std::string& legal) const {
    fail(Fault::data, name_, ": ", key,
         found == nullptr ? std::string(" is missing") : text(" is ", shown(found->dump(), 80)),
         ". It must be ", legal, ".");
  }
  const Json& json_;
  const std::string& name_;
};

/// Numbers of a tensor, row-major.
struct Numbers {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// The other way round: [rows, columns] -> [columns, rows].
Numbers transposed(const Numbers& x) {
  const auto rows = static_cast<size_t>(x.shape[0]), columns = static_cast<size_t>(x.shape[1]);
  Numbers out{.shape = {x.shape[1], x.shape[0]}, .values = std::vector<float>(x.values.size())};
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) out.values[j * rows + i] = x.values[i * columns + j];
  }
  return out;
}

/// Rows, or of a vector entries, part * count up to (part + 1) * count.
Numbers part_of(const Numbers& x, int64_t part, int64_t count) {
  const int64_t row = static_cast<int64_t>(x.values.size()) / x.shape[0];
  Numbers out{.shape = x.shape, .values = {}};
  out.shape[0] = count;
  out.values.assign(x.values.begin() + part * count * row, x.values.begin() + (part + 1) * count * row);
  return out;
}

/// Takes tensors out of a file one by one, and puts them into a list under other names.
class Renaming {
 public:
  explicit Renaming(const SafeTensors& file) : file_(file) {
    for (const TensorEntry& entry : file.entries()) {
      if (entry.name.starts_with(prefix_of_some)) prefix_ = prefix_of_some;
      if (!is_mask(entry.name)) left_.insert(entry.name);
    }
  }

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  /// The numbers of a tensor of the model without its head.
  Numbers take(const std::string& name, const std::vector<int64_t>& shape) {
    return take_whole(std::string(prefix_) + name, shape);
  }
  /// Returns the numbers of a tensor like take(), but by its whole name.
  Numbers take_whole(const std::string& name, const std::vector<int64_t>& shape) {
    const TensorEntry& entry = file_.at(name);
    left_.erase(name);
    if (entry.shape != shape)
      fail(Fault::data, file_.name(), ": ", name, " has shape ", Json(list_of(entry.shape)).dump(),
           ", and config.json gives ", Json(list_of(shape)).dump(), ".");
    file_.check_finite(entry);
    const Array array = file_.array(name);
    if (array.dtype == "f32") return {shape, array.values<float>()};
    if (array.dtype != "bf16")
      fail(Fault::data, file_.name(), ": ", name, " is ", array.dtype,
           ". Weights can be f32 or bf16: save the model in one of these.");
    Numbers out{.shape = shape, .values = {}};
    for (const uint16_t high : array.values<uint16_t>())
      out.values.push_back(std::bit_cast<float>(uint32_t{high} << 16));
    return out;
  }
  void put(const std::string& name, Numbers numbers) { made_.emplace_back(name, std::move(numbers)); }
  /// A layer of both programs: weight [in, out] there.
  void linear(const std::string& from, const std::string& to, int64_t in, int64_t out) {
    put(to + ".weight", transposed(take(from + ".weight", {in, out})));
    put(to + ".bias", take(from + ".bias", {out}));
  }
  void norm(const std::string& from, const std::string& to, int64_t width) {
    put(to + ".gain", take(from + ".weight", {width}));
    put(to + ".bias", take(from + ".bias", {width}));
  }
  /// The bytes of what was put. Fails if a tensor was not taken.
  std::string encode() const {
    if (!left_.empty())
      fail(Fault::data, file_.name(), ": ", left_.size(),
           " tensors are none of a GPT-2 of that config.json: ", *left_.begin(),
           left_.size() > 1 ? ", ..." : "", ".");
    std::vector<TensorBytes> list;
    for (const auto& [name, numbers] : made_)
      list.push_back({name, "f32", numbers.shape, std::as_bytes(std::span(numbers.values))});
    return encode_safetensors(list);
  }

 private:
  static constexpr std::string_view prefix_of_some = "transformer.";
  /// The causal mask, and what is written into scores for it: constants that older files hold.
  static bool is_mask(std::string_view name) {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  }
  static Json::List list_of(const std::vector<int64_t>& shape) { return {shape.begin(), shape.end()}; }

  const SafeTensors& file_;
  std::string_view prefix_;
  std::set<std::string> left_;
  std::list<std::pair<std::string, Numbers>> made_;
};

void rename_block(Renaming& all, const Gpt2Config& config, int64_t layer) {
  const std::string from = text("h.", layer, "."), to = text("decoder.blocks.", layer, ".");
  const int64_t width = config.width;
  all.norm(from + "ln_1", to + "attention_norm", width);
  const Numbers weight = transposed(all.take(from + "attn.c_attn.weight", {width, 3 * width}));
  const Numbers bias = all.take(from + "attn.c_attn.bias", {3 * width});
  int64_t part = 0;
  for (const char* name : {"query", "key", "value"}) {
    all.put(to + "attention." + name + ".weight", part_of(weight, part, width));
    all.put(to + "attention." + name + ".bias", part_of(bias, part++, width));
  }
  all.linear(from + "attn.c_proj", to + "attention.output", width, width);
  all.norm(from + "ln_2", to + "forward_norm", width);
  all.linear(from + "mlp.c_fc", to + "feed_forward.up", width, config.hidden);
  all.linear(from + "mlp.c_proj", to + "feed_forward.down", config.hidden, width);
}

}  // namespace

Gpt2Config parse_gpt2_config(const Json& json, const std::string& name) {
  const Members members(json, name);
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
                 .norm_epsilon = members.real("layer_norm_epsilon", 1e-5),
                 .dropout = members.real("resid_pdrop", 0.1),
                 .attention_dropout = members.real("attn_pdrop", 0.1)};
  out.hidden = members.count("n_inner", 4 * out.width);
  return out;
}

Gpt2Weights gpt2_weights(const SafeTensors& file, const Gpt2Config& config) {
  Renaming all(file);
  const std::vector<int64_t> table{config.vocabulary, config.width};
  Numbers tokens = all.take("wte.weight", table);
  Gpt2Weights out;
  if (all.has("lm_head.weight")) {
    Numbers head = all.take_whole("lm_head.weight", table);
    out.tied = head.values == tokens.values;
    if (!out.tied) all.put("output.weight", std::move(head));
  }
  all.put("embedder.tokens.weight", std::move(tokens));
  all.put("embedder.position.table", all.take("wpe.weight", {config.positions, config.width}));
  for (int64_t layer = 0; layer < config.layers; ++layer) rename_block(all, config, layer);
  all.norm("ln_f", "decoder.norm", config.width);
  out.bytes = all.encode();
  return out;
}

}  // namespace heed
