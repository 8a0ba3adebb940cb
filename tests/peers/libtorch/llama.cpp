// tests/example/llama.cpp in libtorch: llama TEXT, a file.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct RmsNormImpl : nn::Module {  // libtorch has none
  explicit RmsNormImpl(int64_t width) { gain = register_parameter("gain", torch::ones({width})); }
  torch::Tensor forward(const torch::Tensor& x) {
    return x * torch::rsqrt(x.square().mean(-1, true) + 1e-5) * gain;
  }
  torch::Tensor gain;
};
TORCH_MODULE(RmsNorm);

struct Cache {
  torch::Tensor keys, values;  // [B, H, T, d]
};

// Rotates [B, H, T, d] by its positions first, first + 1, ...
torch::Tensor rotated(const torch::Tensor& x, int64_t first) {
  const int64_t half = x.size(3) / 2;
  const torch::Tensor rate = torch::pow(10000.0, -torch::arange(half) / double(half));
  const torch::Tensor angle = torch::arange(first, first + x.size(2)).unsqueeze(1) * rate;
  const torch::Tensor a = x.slice(3, 0, half), b = x.slice(3, half), c = torch::cos(angle),
                      s = torch::sin(angle);
  return torch::cat({a * c - b * s, a * s + b * c}, 3);
}

struct RotaryAttentionImpl : nn::Module {  // causal, rotary, with grouped keys, and a cache
  RotaryAttentionImpl(int64_t width, int64_t heads_, int64_t kv_heads_)
      : heads(heads_), kv_heads(kv_heads_), size(width / heads_) {
    const auto layer = [](int64_t in, int64_t out) {
      return nn::Linear(nn::LinearOptions(in, out).bias(false));
    };
    query = register_module("query", layer(width, width));
    key = register_module("key", layer(width, kv_heads * size));
    value = register_module("value", layer(width, kv_heads * size));
    out = register_module("out", layer(width, width));
  }
  torch::Tensor forward(const torch::Tensor& x, Cache* cache) {
    const auto split = [&](const torch::Tensor& y, int64_t count) {
      return y.view({x.size(0), x.size(1), count, size}).transpose(1, 2);
    };
    const int64_t first = cache != nullptr && cache->keys.defined() ? cache->keys.size(2) : 0;
    const torch::Tensor q = rotated(split(query(x), heads), first);
    torch::Tensor k = rotated(split(key(x), kv_heads), first), v = split(value(x), kv_heads);
    if (first > 0) {
      k = torch::cat({cache->keys, k}, 2);
      v = torch::cat({cache->values, v}, 2);
    }
    if (cache != nullptr) *cache = {k, v};
    const auto shared = [&](const torch::Tensor& y) { return y.repeat_interleave(heads / kv_heads, 1); };
    torch::Tensor scores = q.matmul(shared(k).transpose(2, 3)) / std::sqrt(double(size));
    const torch::Tensor later = torch::ones({q.size(2), k.size(2)}, torch::kBool).triu(first + 1);
    const torch::Tensor y = scores.masked_fill(later, -INFINITY).softmax(-1).matmul(shared(v));
    return out(y.transpose(1, 2).flatten(2));
  }
  int64_t heads, kv_heads, size;
  nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, out{nullptr};
};
TORCH_MODULE(RotaryAttention);

struct BlockImpl : nn::Module {
  BlockImpl(int64_t width, int64_t hidden)
      : attention(width, 4, 2),
        attention_norm(width),
        forward_norm(width),
        gate(nn::LinearOptions(width, hidden).bias(false)),
        up(nn::LinearOptions(width, hidden).bias(false)),
        down(nn::LinearOptions(hidden, width).bias(false)) {
    register_module("attention", attention);
    register_module("attention_norm", attention_norm);
    register_module("forward_norm", forward_norm);
    register_module("gate", gate);
    register_module("up", up);
    register_module("down", down);
  }
  torch::Tensor forward(const torch::Tensor& x, Cache* cache) {
    const torch::Tensor y = x + attention(attention_norm(x), cache), n = forward_norm(y);
    return y + down(torch::silu(gate(n)) * up(n));
  }
  RotaryAttention attention;
  RmsNorm attention_norm, forward_norm;
  nn::Linear gate, up, down;
};
TORCH_MODULE(Block);

struct LlamaImpl : nn::Module {
  LlamaImpl(int64_t vocabulary, int64_t width, int64_t hidden, int64_t layers)
      : tokens(vocabulary, width), norm(width), output(nn::LinearOptions(width, vocabulary).bias(false)) {
    register_module("tokens", tokens);
    for (int64_t i = 0; i < layers; ++i) blocks->push_back(Block(width, hidden));
    register_module("blocks", blocks);
    register_module("norm", norm);
    register_module("output", output);
    nn::init::normal_(tokens->weight, 0, 0.02);
    nn::init::normal_(output->weight, 0, 0.02);
  }
  torch::Tensor forward(const torch::Tensor& ids, std::vector<Cache>* caches = nullptr) {
    torch::Tensor x = tokens(ids);
    for (size_t i = 0; i < blocks->size(); ++i)
      x = blocks->at<BlockImpl>(i).forward(x, caches != nullptr ? &(*caches)[i] : nullptr);
    return output(norm(x));
  }
  nn::Embedding tokens;
  nn::ModuleList blocks;
  RmsNorm norm;
  nn::Linear output;
};
TORCH_MODULE(Llama);

// Draws the next token among the k most probable ones, and of these among the fewest with probability top_p.
int64_t draw(const torch::Tensor& logits, double temperature, int64_t top_k, double top_p) {
  const auto [best, ids] = (logits / temperature).topk(std::min(top_k, logits.size(0)));
  const torch::Tensor probability = best.softmax(0);
  const torch::Tensor outside = (probability.cumsum(0) - probability).ge(top_p);
  return ids.gather(0, probability.masked_fill(outside, 0).multinomial(1)).item<int64_t>();
}

int main(int, char** argv) {
  torch::manual_seed(1);
  std::stringstream file;
  file << std::ifstream(argv[1]).rdbuf();
  const std::string text = file.str();
  const std::set<char> characters(text.begin(), text.end());  // bytes: enough for ASCII
  const std::vector<char> letters(characters.begin(), characters.end());
  std::map<char, int64_t> ids;
  for (const char letter : letters) ids.emplace(letter, int64_t(ids.size()));
  std::vector<int64_t> all;
  for (const char letter : text) all.push_back(ids.at(letter));
  const torch::Tensor encoded = torch::tensor(all);

  constexpr int64_t block = 64, steps = 400;
  Llama model(int64_t(letters.size()), 64, 160, 2);
  std::vector<torch::Tensor> matrices, vectors;
  for (const torch::Tensor& p : model->parameters()) (p.dim() > 1 ? matrices : vectors).push_back(p);
  const auto group = [](const std::vector<torch::Tensor>& parameters, double decay) {
    return torch::optim::OptimizerParamGroup(
        parameters, std::make_unique<torch::optim::AdamWOptions>(
                        torch::optim::AdamWOptions(6e-3).weight_decay(decay).betas({0.9, 0.95})));
  };
  torch::optim::AdamW optimizer({group(matrices, 0.1), group(vectors, 0)}, torch::optim::AdamWOptions(6e-3));
  for (int64_t step = 1; step <= steps; ++step) {
    std::vector<torch::Tensor> inputs, targets;
    for (int row = 0; row < 16; ++row) {
      const int64_t at = torch::randint(encoded.size(0) - block, {1}).item<int64_t>();
      inputs.push_back(encoded.slice(0, at, at + block));
      targets.push_back(encoded.slice(0, at + 1, at + block + 1));
    }
    const double done = double(step - 40) / double(steps - 40);
    const double share = step < 40 ? double(step) / 40 : 0.1 + 0.45 * (1 + std::cos(M_PI * done));
    for (auto& one : optimizer.param_groups())
      static_cast<torch::optim::AdamWOptions&>(one.options()).lr(6e-3 * share);
    optimizer.zero_grad();
    const torch::Tensor logits = model(torch::stack(inputs));
    const torch::Tensor loss = F::cross_entropy(logits.flatten(0, 1), torch::stack(targets).flatten());
    loss.backward();
    nn::utils::clip_grad_norm_(model->parameters(), 1);
    optimizer.step();
    if (step % 100 == 0) std::printf("step %d  loss %.3f\n", int(step), loss.item<double>());
  }

  const torch::NoGradGuard no_grad;
  std::string written = "The ";
  std::vector<int64_t> unread;
  for (const char letter : written) unread.push_back(ids.at(letter));
  std::vector<Cache> caches(2);
  for (int i = 0; i < 80; ++i) {
    const torch::Tensor logits = model(torch::tensor(unread).unsqueeze(0), &caches)[0][-1];
    unread = {draw(logits, 0.8, 20, 0.95)};
    written += letters[size_t(unread[0])];
  }
  std::printf("%s\n", written.c_str());
}
