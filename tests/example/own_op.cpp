// An op with a kernel and a gradient of its own, its check, and a model that uses it: minGRU (Feng et al.
// 2024, arXiv 2410.01201).
#include <heed/autograd/gradcheck.h>
#include <heed/heed.h>

#include <cstdio>

using namespace heed;

/// y_t = a_t y_(t-1) + x_t with y_(-1) = 0, for each sequence and channel; a, x, y [B, T, C].
template <class T>
void scan_forward(const T* a, const T* x, T* y, const Shape& shape) {
  const int64_t channels = shape[2], size = shape[1] * channels;
  parallel_for(shape[0], [&](int64_t row) {  // a sequence each: the same bits for any number of threads
    const int64_t begin = row * size, second = begin + channels;
    for (int64_t i = begin; i < begin + size; ++i) y[i] = x[i] + (i < second ? T(0) : a[i] * y[i - channels]);
  });
}

/// g_t = dy_t + a_(t+1) g_(t+1) with g_T = 0: the gradient of x.
template <class T>
void scan_backward(const T* a, const T* dy, T* g, const Shape& shape) {
  const int64_t channels = shape[2], size = shape[1] * channels;
  parallel_for(shape[0], [&](int64_t row) {
    const int64_t begin = row * size, last = begin + size - channels;
    for (int64_t i = begin + size - 1; i >= begin; --i)
      g[i] = dy[i] + (i >= last ? T(0) : a[i + channels] * g[i + channels]);
  });
}

/// The op: a, x [B, T, C] -> y [B, T, C], f32 or f64. dx_t = g_t, da_t = g_t y_(t-1).
Tensor linear_recurrence(const Tensor& a, const Tensor& x) {
  if (a.shape() != x.shape() || x.rank() != 3 || x.device() != Device::cpu)
    fail("linear_recurrence: a ", a.shape(), " and x ", x.shape(), " must be [B, T, C] on the CPU.");
  const Tensor gate = contiguous(a).detach(), input = contiguous(x).detach(), y = empty_like(input);
  const bool exact = x.dtype() == DType::f64;  // gradients are checked in f64
  exact ? scan_forward(gate.data<double>(), input.data<double>(), y.data<double>(), y.shape())
        : scan_forward(gate.data<float>(), input.data<float>(), y.data<float>(), y.shape());
  return record("linear_recurrence", y, {&a, &x}, [gate, y, exact](const Tensor& gradient) -> Gradients {
    const Tensor dy = contiguous(gradient), g = empty_like(dy);
    exact ? scan_backward(gate.data<double>(), dy.data<double>(), g.data<double>(), y.shape())
          : scan_backward(gate.data<float>(), dy.data<float>(), g.data<float>(), y.shape());
    const Tensor none = Tensor::zeros(Shape{y.extent(0), 1, y.extent(2)}, y.dtype());
    return {g * concat({none, slice(y, 1, 0, y.extent(1) - 1)}, 1), g};
  });
}

/// h_t = (1 - z_t) h_(t-1) + z_t tanh(candidate_t); z and candidate are linear in the token.
struct MinGru final : Module {
  MinGru(int64_t symbols, int64_t width, Rng& rng)
      : update(symbols, width, Init::xavier, rng),
        candidate(symbols, width, Init::xavier, rng),
        classes(width, symbols, rng) {}
  Tensor operator()(const Tensor& ids) const {  // i32 [B, T] -> logits [B, symbols]
    const Tensor z = sigmoid(update(ids));
    return classes(select(linear_recurrence(1 - z, z * tanh(candidate(ids))), 1, -1));
  }
  void fields(Fields& f) override {
    f("update", update);
    f("candidate", candidate);
    f("classes", classes);
  }
  Embedding update, candidate;
  Linear classes;
};

int main() {
  Rng rng(1);
  Tensor a(Shape{2, 5, 3}), x(Shape{2, 5, 3});
  fill_uniform(a, 0, 1, rng);
  fill_normal(x, 0, 1, rng);
  const auto op = [](auto inputs) { return linear_recurrence(inputs[0], inputs[1]); };
  std::printf("%s\n", to_string(gradcheck(op, {a, x})).c_str());

  // Which of 8 digits is marked? Ids 8 to 15 are marked digits: one of each 30 tokens.
  MinGru model(16, 32, rng);
  Optimizer optimizer(model, {.grad_clip = 1});
  for (int step = 1; step <= 300; ++step) {
    std::vector<int32_t> ids, marked;
    for (int row = 0; row < 32; ++row) {
      const size_t first = ids.size();
      for (int t = 0; t < 30; ++t) ids.push_back(static_cast<int32_t>(rng.uniform() * 8));
      int32_t& one = ids[first + static_cast<size_t>(rng.uniform() * 30)];
      marked.push_back(one);
      one += 8;
    }
    const Tensor logits = model(Tensor::of<int32_t>(ids, Shape{32, 30}));
    const Tensor loss = cross_entropy(logits, Tensor::of<int32_t>(marked, Shape{32}));
    backward(loss);
    optimizer.step(1e-2);
    if (step % 100 == 0) std::printf("step %d  loss %.3f\n", step, loss.item());
  }
}
