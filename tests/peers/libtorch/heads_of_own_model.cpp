// tests/example/heads_of_own_model.cpp in libtorch: heads_of_own_model
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <functional>

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t vocabulary = 32, width = 64, heads = 4, size = width / heads;

// libtorch's modules have no forward hooks in C++, and its attention gives no single head's output, so the
// attention has places for both by hand.
struct Hooks {
  std::vector<torch::Tensor> maps;     // [B, H, T, T] of each layer, where keep is set
  std::vector<torch::Tensor> outputs;  // [B, H, T, size] of each layer, where keep is set
  bool keep = false;
  std::function<torch::Tensor(int64_t layer, const torch::Tensor& outputs)> edit;
};

torch::Tensor rotated(const torch::Tensor& x) {  // [B, H, T, size] by position
  const int64_t half = size / 2;
  const torch::Tensor rate = torch::pow(10000.0, -torch::arange(half) / double(half));
  const torch::Tensor angle = torch::arange(x.size(2)).unsqueeze(1) * rate;
  const torch::Tensor a = x.slice(3, 0, half), b = x.slice(3, half), c = torch::cos(angle),
                      s = torch::sin(angle);
  return torch::cat({a * c - b * s, a * s + b * c}, 3);
}

struct AttentionImpl : nn::Module {
  explicit AttentionImpl(int64_t layer_) : layer(layer_) {
    for (const char* name : {"query", "key", "value", "out"})
      projections.push_back(register_module(name, nn::Linear(nn::LinearOptions(width, width).bias(false))));
  }
  torch::Tensor forward(const torch::Tensor& x, Hooks& hooks) {
    const auto split = [&](const torch::Tensor& y) {
      return y.view({x.size(0), x.size(1), heads, size}).transpose(1, 2);
    };
    const torch::Tensor q = rotated(split(projections[0](x))), k = rotated(split(projections[1](x)));
    const torch::Tensor later = torch::ones({x.size(1), x.size(1)}, torch::kBool).triu(1);
    const torch::Tensor scores = q.matmul(k.transpose(2, 3)) / std::sqrt(double(size));
    const torch::Tensor map = scores.masked_fill(later, -INFINITY).softmax(-1);
    torch::Tensor y = map.matmul(split(projections[2](x)));
    if (hooks.keep) {
      hooks.maps.push_back(map.detach());
      hooks.outputs.push_back(y.detach());
    }
    if (hooks.edit) y = hooks.edit(layer, y);
    return projections[3](y.transpose(1, 2).flatten(2));
  }
  int64_t layer;
  std::vector<nn::Linear> projections;
};
TORCH_MODULE(Attention);

struct TwoLayersImpl : nn::Module {
  TwoLayersImpl() {
    register_module("tokens", tokens);
    register_module("first", first);
    register_module("second", second);
    register_module("output", output);
  }
  torch::Tensor forward(const torch::Tensor& ids, Hooks& hooks) {
    torch::Tensor x = tokens(ids);
    x = x + first(x, hooks);
    return output(x + second(x, hooks));
  }
  nn::Embedding tokens{vocabulary, width};
  Attention first{0}, second{1};
  nn::Linear output{width, vocabulary};
};
TORCH_MODULE(TwoLayers);

torch::Tensor repeated(int64_t period, int64_t batch) {  // [batch, 2 period]
  return torch::randint(vocabulary, {batch, period}).repeat({1, 2});
}

torch::Tensor loss_of(TwoLayers& model, const torch::Tensor& ids,
                      Hooks& hooks) {  // this is the loss of the second half
  const int64_t half = ids.size(1) / 2;
  return F::cross_entropy(model(ids, hooks).slice(1, half - 1, 2 * half - 1).flatten(0, 1),
                          ids.slice(1, half).flatten());
}

int main() {
  torch::manual_seed(1);
  TwoLayers model;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-3));
  for (int64_t step = 0; step < 600; ++step) {
    Hooks none;
    optimizer.zero_grad();
    loss_of(model, repeated(4 + step % 13, 32), none).backward();
    nn::utils::clip_grad_norm_(model->parameters(), 1);
    optimizer.step();
  }
  const torch::NoGradGuard no_grad;
  const int64_t period = 12;
  const torch::Tensor ids = repeated(period, 8), other = torch::randint(vocabulary, {8, period});
  const torch::Tensor not_repeated = torch::cat({other, ids.slice(1, period)}, 1);
  Hooks kept;
  kept.keep = true;
  const double whole = loss_of(model, ids, kept).item<double>();
  std::vector<std::vector<bool>> chosen(2, std::vector<bool>(heads));  // induction heads
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t head = 0; head < heads; ++head) {
      const torch::Tensor map = kept.maps[size_t(layer)].select(1, head);
      // The key behind the earlier occurrence of query t is t - period + 1.
      const double induction = map.diagonal(1 - period, 1, 2).slice(1, 1).mean().item<double>();
      const double previous = map.diagonal(-1, 1, 2).mean().item<double>();
      Hooks without;
      without.edit = [&](int64_t at, const torch::Tensor& outputs) {
        if (at != layer) return outputs;
        torch::Tensor edited = outputs.clone();
        edited.select(1, head).zero_();
        return edited;
      };
      std::printf("layer %d head %d  induction %.2f  previous %.2f  loss without it +%.2f\n", int(layer),
                  int(head), induction, previous, loss_of(model, ids, without).item<double>() - whole);
      chosen[size_t(layer)][size_t(head)] = induction > 0.3;
    }
  }
  const auto edited_heads =
      [&](const std::function<torch::Tensor(int64_t, int64_t, const torch::Tensor&)>& by) {
        Hooks hooks;
        hooks.edit = [&chosen, by](int64_t layer, const torch::Tensor& outputs) {
          torch::Tensor edited = outputs.clone();
          for (int64_t head = 0; head < heads; ++head)
            if (chosen[size_t(layer)][size_t(head)]) edited.select(1, head).copy_(by(layer, head, outputs));
          return edited;
        };
        return hooks;
      };
  Hooks none;
  Hooks ablation = edited_heads([](int64_t, int64_t head, const torch::Tensor& outputs) {
    return outputs.select(1, head).mean(c10::IntArrayRef{0, 1}, true).expand_as(outputs.select(1, head));
  });
  Hooks patch = edited_heads([&](int64_t layer, int64_t head, const torch::Tensor&) {
    return kept.outputs[size_t(layer)].select(1, head);
  });
  std::printf("repeated %.2f\nrepeated, ablated %.2f\n", whole, loss_of(model, ids, ablation).item<double>());
  std::printf("not repeated %.2f\nnot repeated, patched %.2f\n",
              loss_of(model, not_repeated, none).item<double>(),
              loss_of(model, not_repeated, patch).item<double>());
}
