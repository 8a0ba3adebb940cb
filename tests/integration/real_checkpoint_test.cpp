// A checkpoint of another program: a small GPT-2-like model that sorts letters, with all intermediate results
// for three sequences.
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/io/base64.h"
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/nn/transformer.h"
#include "heed/tests/catch.h"
#include "heed/tests/real_data.h"
#include "heed/train/run/gpt2_huggingface.h"
#include "heed/train/run/mingpt_file.h"

using namespace heed;

namespace {

/// A JSON object of tensors {shape, data: base64 of little-endian f32}.
class Tensors {
 public:
  explicit Tensors(const Path& path) : json_(parse_json(io::read(path), path.string())) {}

  Tensor operator[](const std::string& name) const {
    const Json& entry = json_.at(name);
    Shape shape;
    for (const Json& extent : entry.at("shape").list()) shape.push_back(extent.integer());
    const std::string bytes = from_base64(entry.at("data").text()).value();
    REQUIRE(static_cast<int64_t>(bytes.size()) == shape.size() * 4);
    return Tensor::of<float>({reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4}, shape);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const JsonMember& member : json_.members()) {
      if (member.value.find("shape") != nullptr) out.push_back(member.key);
    }
    return out;
  }
  int64_t number(const std::string& name) const { return json_.at("config").at(name).integer(); }

 private:
  Json json_;
};

TransformerConfig sorter_config(const Tensors& file) {
  return {.d_model = file.number("n_embd"),
          .heads = file.number("n_head"),
          .d_ff = 4 * file.number("n_embd"),
          .layers = file.number("n_layer"),
          .max_length = file.number("block_size"),
          .dropout = 0,
          .attention_dropout = 0,
          .activation = Activation::gelu_tanh,
          .position = PositionKind::learned,
          .scale_embedding = false,
          .attention_bias = true,
          .output_bias = false};
}

/// The model as `heed import` reads it.
DecoderOnly sorter(const Path& path) {
  const ImportedModel read = read_mingpt(io::read(path), path.string());
  Rng rng(1);
  DecoderOnly model(sorter_config(Tensors(path)), read.vocabulary, attention_factory("softmax"), rng);
  load_bytes(model, read.weights);
  return model;
}

/// The largest difference of an element; infinite where what is -inf there is not -inf here.
double distance(const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  const std::vector<double> a = found.to_doubles(), b = expected.to_doubles();
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    worst = std::max(worst, std::isfinite(a[i] - b[i]) ? std::abs(a[i] - b[i]) : HUGE_VAL);
  }
  return worst;
}

}  // namespace

TEST_CASE("real checkpoint: every intermediate of a GPT-2 trained elsewhere, and it sorts") {
  const Path weights = real_data("gpt2/gpt-nano-sort-model.json");
  const Path seen = real_data("gpt2/gpt-nano-sort-t0-partials.json");
  if (weights.empty() || seen.empty()) return;
  const NoGrad no_grad;
  DecoderOnly model = sorter(weights);
  const Tensors partials(seen);
  const auto check = [&](const char* name, const Tensor& found) {
    INFO(name);
    CHECK(distance(found, partials[name]) <= 1e-5);
  };
  const Tensor ids = cast(partials["idx"], DType::i32);
  const int64_t B = ids.extent(0), T = ids.extent(1);
  CHECK(count_parameters(model) == 85728);

  check("tok_emb", model.embedder.tokens(ids));
  const Tensor x = model.embedder(ids, 0, nullptr);
  check("pos_emb", view::slice(x - model.embedder.tokens(ids), 0, 0, 1));
  check("x", x);

  Block& block = *model.decoder.blocks[0];
  auto& heads = dynamic_cast<MultiHeadAttention&>(*block.attention);
  const Tensor h = block.attention_norm(x);
  check("ln1", h);
  const auto split = [&](const Tensor& y) {
    return transpose(reshape(y, Shape{B, T, 3, y.extent(2) / 3}), 1, 2);
  };
  const Tensor q = split(heads.query(h)), k = split(heads.key(h)), v = split(heads.value(h));
  check("q", q);
  check("k", k);
  check("v", v);
  check("qkv", concat(std::vector<Tensor>{heads.query(h), heads.key(h), heads.value(h)}, 2));
  const Tensor scores = matmul(q, transpose(k, 2, 3)) * (1 / std::sqrt(16.0));
  check("att", scores + Mask::causal().dense(scores, 0));
  MapRecorder recorder;
  const Tensor attended =
      heads.forward({.queries = h, .keys = h, .mask = Mask::causal(), .context = {.recorder = &recorder}});
  check("attSm", recorder.maps.at(0).weights);
  check("y", reshape(transpose(matmul(recorder.maps[0].weights, v), 1, 2), h.shape()));
  check("yProj", attended);
  const Tensor after = x + attended;
  check("attnResid", after);
  const Tensor h2 = (*block.forward_norm)(after);
  check("ln2", h2);
  const Tensor up = block.feed_forward->up(h2);
  check("fc", up);
  check("gelu", gelu_tanh(up));
  check("mlp", (*block.feed_forward)(h2, nullptr));
  check("mlpResid", after + (*block.feed_forward)(h2, nullptr));

  Tensor y = x;
  for (size_t i = 0; i < 3; ++i) {
    y = (*model.decoder.blocks[i])(y, Mask::causal(), {}, {}, nullptr, {});
    check(text("block", i).c_str(), y);
  }
  check("ln_f", (*model.decoder.norm)(y));
  check("lm_head", model(ids, {}));
  check("probs", softmax(model(ids, {})));

  // What it was trained for: six letters, and then the same letters in order.
  std::vector<int32_t> letters{2, 1, 0, 1, 2, 0};
  Decoding state = model.start();
  std::vector<int32_t> made;
  std::vector<int32_t> next = letters;
  for (int i = 0; i < 6; ++i) {
    const std::vector<float> logits =
        model.next(Tensor::of<int32_t>(next, Shape{1, static_cast<int64_t>(next.size())}), state).to_host();
    next = {static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin())};
    made.push_back(next[0]);
  }
  CHECK(made == std::vector<int32_t>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("real checkpoint: its logits are those of the file in Hugging Face's form, too") {
  const Path weights = real_data("gpt2/gpt-nano-sort-model.json");
  const Path seen = real_data("gpt2/gpt-nano-sort-t0-partials.json");
  if (weights.empty() || seen.empty()) return;
  const NoGrad no_grad;
  const Tensors file(weights), partials(seen);
  std::vector<std::pair<std::string, Tensor>> kept;
  for (const std::string& name : file.names()) {
    const bool matrix = name.find(".c_") != std::string::npos && name.ends_with("weight");  // [in, out] there
    kept.emplace_back(name, matrix ? contiguous(transpose(file[name], 0, 1)) : file[name]);
  }
  std::vector<TensorBytes> list;
  for (const auto& [name, x] : kept) {
    list.push_back({name, to_string(x.dtype()), std::vector<int64_t>(x.shape().begin(), x.shape().end()),
                    std::span(static_cast<const std::byte*>(x.raw()), static_cast<size_t>(x.bytes()))});
  }
  const TransformerConfig config = sorter_config(file);
  const Gpt2Weights taken = gpt2_weights(SafeTensors::parse(encode_safetensors(list), "sorter"),
                                         {.vocabulary = file.number("vocab_size"),
                                          .positions = config.max_length,
                                          .width = config.d_model,
                                          .layers = config.layers,
                                          .heads = config.heads,
                                          .hidden = config.d_ff});
  CHECK_FALSE(taken.tied);
  Rng rng(7);
  DecoderOnly model(config, file.number("vocab_size"), attention_factory("softmax"), rng);
  load_bytes(model, taken.bytes);
  CHECK(distance(model(cast(partials["idx"], DType::i32), {}), partials["lm_head"]) <= 1e-5);
}
