// tests/example/own_op.cpp in libtorch: own_op
#include <torch/torch.h>

#include <cmath>
#include <cstdio>

namespace nn = torch::nn;
namespace F = torch::nn::functional;

// y_t = a_t y_(t-1) + x_t along axis 1; backwards with a_(t+1) in place of a_t.
template <class T>
void scan(const T* a, const T* x, T* y, at::IntArrayRef shape, bool reverse) {
  const int64_t steps = shape[1], channels = shape[2];
  at::parallel_for(0, shape[0], 1, [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row) {
      const int64_t begin = row * steps * channels;
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t t = reverse ? steps - 1 - i : i;
        const int64_t before = reverse ? t + 1 : t - 1, gate = reverse ? t + 1 : t;
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t at = begin + t * channels + c;
          y[at] = x[at] + (i == 0 ? T(0) : a[begin + gate * channels + c] * y[begin + before * channels + c]);
        }
      }
    }
  });
}

torch::Tensor scanned(const torch::Tensor& a, const torch::Tensor& x, bool reverse) {
  torch::Tensor y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scan", [&] {
    scan(a.data_ptr<scalar_t>(), x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.sizes(), reverse);
  });
  return y;
}

struct LinearRecurrence : torch::autograd::Function<LinearRecurrence> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& a,
                               const torch::Tensor& x) {
    TORCH_CHECK(a.sizes() == x.sizes() && x.dim() == 3, "linear_recurrence: a and x must be [B, T, C].");
    const torch::Tensor gate = a.contiguous(), y = scanned(gate, x.contiguous(), false);
    context->save_for_backward({gate, y});
    return y;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list dy) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor g = scanned(saved[0], dy[0].contiguous(), true);
    const torch::Tensor before = F::pad(saved[1].slice(1, 0, -1), F::PadFuncOptions({0, 0, 1, 0}));
    return {g * before, g};
  }
};

// gradcheck is in Python alone: central differences of a random combination of the results.
bool gradients_agree(torch::Tensor a, torch::Tensor x) {
  const torch::Tensor weights = torch::randn_like(x);
  const auto value = [&] { return (LinearRecurrence::apply(a, x) * weights).sum(); };
  a.requires_grad_();
  x.requires_grad_();
  value().backward();
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& tensor : std::vector<torch::Tensor>{a, x}) {
    const torch::Tensor flat = tensor.view(-1), gradient = tensor.grad().view(-1);
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const double old = flat[i].item<double>(), step = 1e-6;
      flat[i] = old + step;
      const double above = value().item<double>();
      flat[i] = old - step;
      const double below = value().item<double>();
      flat[i] = old;
      const double numeric = (above - below) / (2 * step);
      if (std::abs(numeric - gradient[i].item<double>()) > 1e-6 * std::max(1.0, std::abs(numeric)))
        return false;
    }
  }
  return true;
}

struct MinGruImpl : nn::Module {
  MinGruImpl(int64_t symbols, int64_t width)
      : update(symbols, width), candidate(symbols, width), classes(width, symbols) {
    register_module("update", update);
    register_module("candidate", candidate);
    register_module("classes", classes);
  }
  torch::Tensor forward(const torch::Tensor& ids) {
    const torch::Tensor z = torch::sigmoid(update(ids));
    return classes(LinearRecurrence::apply(1 - z, z * torch::tanh(candidate(ids))).select(1, -1));
  }
  nn::Embedding update, candidate;
  nn::Linear classes;
};
TORCH_MODULE(MinGru);

int main() {
  torch::manual_seed(1);
  const bool agree =
      gradients_agree(torch::rand({2, 5, 3}, torch::kFloat64), torch::randn({2, 5, 3}, torch::kFloat64));
  std::printf("gradcheck: %s\n", agree ? "passed" : "failed");
  MinGru model(16, 32);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2));
  for (int step = 1; step <= 300; ++step) {
    const torch::Tensor ids = torch::randint(8, {32, 30}), place = torch::randint(30, {32, 1});
    const torch::Tensor marked = ids.gather(1, place);
    ids.scatter_(1, place, marked + 8);
    optimizer.zero_grad();
    const torch::Tensor loss = F::cross_entropy(model(ids), marked.squeeze(1));
    loss.backward();
    nn::utils::clip_grad_norm_(model->parameters(), 1);
    optimizer.step();
    if (step % 100 == 0) std::printf("step %d  loss %.3f\n", step, loss.item<double>());
  }
}
