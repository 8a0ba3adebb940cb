// Values and gradients of ops, losses, optimizer groups and moving averages as .npy files, for ops_torch.py.
// Usage: ops_judge FOLDER SEED
#include <heed/heed.h>

#include <filesystem>

using namespace heed;

namespace {

/// Writes inputs, result and gradients of cases into folders named after them.
class Judge {
 public:
  Judge(Path folder, uint64_t seed) : folder_(std::move(folder)), rng_(seed) {}

  Path new_folder(const std::string& name) const {
    std::filesystem::create_directories(folder_ / name);
    return folder_ / name;
  }
  int64_t extent(int64_t max_extent = 7) { return 1 + rng_.below(max_extent); }
  Tensor normal(const Shape& shape) {
    const Tensor x(shape, DType::f64);
    fill_normal(x, 0, 1, rng_);
    return x;
  }
  Tensor ids(const Shape& shape, int64_t count) {
    std::vector<int32_t> all(static_cast<size_t>(shape.size()));
    for (int32_t& id : all) id = static_cast<int32_t>(rng_.below(count));
    return Tensor::of<int32_t>(all, shape);
  }
  /// The result of f and, where it is differentiable, the gradients of sum(result * direction).
  template <class F>
  void add(const std::string& name, std::vector<Tensor> inputs, F f) {
    const Path folder = new_folder(name);
    for (size_t i = 0; i < inputs.size(); ++i) {
      write_npy(folder / text("x", i, ".npy"), inputs[i]);
      if (is_float(inputs[i].dtype())) inputs[i] = leaf(inputs[i]);
    }
    const Tensor y = f(inputs);
    write_npy(folder / "y.npy", y.detach());
    if (!y.node()) return;
    const Tensor direction = normal(y.shape());
    write_npy(folder / "direction.npy", direction);
    backward(y, direction);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].node() && grad_of(inputs[i]))
        write_npy(folder / text("g", i, ".npy"), grad_of(inputs[i]));
  }

 private:
  Path folder_;
  Rng rng_;
};

void judge_ops(Judge& judge) {
  const int64_t a = judge.extent(), b = judge.extent(), c = judge.extent();
  const Tensor x = judge.normal({a, b, c}), row = judge.normal({c}), other = judge.normal({a, b, c});
  using In = const std::vector<Tensor>&;
  judge.add("where", {x, row}, [](In in) { return where(less(in[0], in[1]), in[0], in[1]); });
  judge.add("pow", {square(x) + 0.1}, [](In in) { return pow(in[0], 1.7); });
  judge.add("rdiv", {square(x) + 0.1}, [](In in) { return 2.0 / in[0] + (1.0 - in[0]); });
  judge.add("logsumexp", {x}, [](In in) { return log_sum_exp(in[0], 1); });
  judge.add("amin", {x}, [](In in) { return min(in[0], 0); });
  judge.add("cumsum", {x}, [](In in) { return cumulative_sum(in[0], 1); });
  judge.add("gather", {x, judge.ids({a, 3, c}, b)}, [](In in) { return gather(in[0], 1, in[1]); });
  judge.add("select", {x}, [](In in) { return in[0][-1] * 2.0; });
  judge.add("stack", {x, other}, [](In in) { return stack(in, 2); });
  judge.add("cat", {x, other}, [](In in) { return concat({in[0], in[1]}, 1); });
  judge.add("argmax", {x}, [](In in) { return argmax(in[0], 1); });
  judge.add("topk", {x}, [&](In in) { return top_k(in[0], std::min<int64_t>(c, 3)).values; });
  judge.add("topk_indices", {x}, [&](In in) { return top_k(in[0], std::min<int64_t>(c, 3)).indices; });
  judge.add("one_hot", {judge.ids({a, b}, c)}, [&](In in) { return one_hot(in[0], c, DType::f64); });
  judge.add("greater_equal", {x, row}, [](In in) { return greater_equal(in[0], in[1]); });
}

void judge_losses(Judge& judge) {
  const int64_t rows = judge.extent(), classes = 1 + judge.extent();
  const Tensor x = judge.normal({rows, classes}), y = judge.normal({rows, classes});
  using In = const std::vector<Tensor>&;
  judge.add("mse", {x, y}, [](In in) { return mse_loss(in[0], in[1]); });
  judge.add("bce", {x, sigmoid(y)},
            [](In in) { return binary_cross_entropy_with_logits(in[0], in[1], Reduction::sum, 1.5); });
  judge.add("kl", {log_softmax(x), softmax(y)}, [](In in) { return kl_divergence(in[0], in[1]); });
  judge.add("cross_entropy", {x, judge.ids({rows}, classes)},
            [](In in) { return cross_entropy_of_each(in[0], in[1], 0.1, 0); });
}

void judge_images(Judge& judge) {
  const int64_t in = judge.extent(3), out = judge.extent(3), height = 4 + judge.extent(),
                width = 4 + judge.extent();
  const Tensor x = judge.normal({2, height, width, in});
  const Window2d window{.size = 3, .stride = 2, .padding = 1, .dilation = 1};
  judge.add("conv2d", {x, judge.normal({out, 9 * in}), judge.normal({out})},
            [&](const std::vector<Tensor>& all) {
              Rng rng(1);
              Convolution2d layer(in, out, window, rng);
              layer.linear.weight = all[1];
              layer.linear.bias = all[2];
              return layer(all[0]);
            });
  judge.add("max_pool2d", {x}, [&](const std::vector<Tensor>& all) { return max_pool_2d(all[0], window); });
  judge.add("avg_pool2d", {x}, [&](const std::vector<Tensor>& all) { return mean_pool_2d(all[0], window); });
}

void judge_blocks(Judge& judge) {
  const int64_t length = judge.extent(), width = judge.extent(), taps = judge.extent(4);
  const Tensor x = judge.normal({2, length, width});
  using In = const std::vector<Tensor>&;
  judge.add("rms_norm", {x, judge.normal({width})}, [](In in) { return rms_norm(in[0], in[1]); });
  for (const bool causal : {true, false})
    judge.add(causal ? "conv1d_causal" : "conv1d_same", {x, judge.normal({width, taps})},
              [causal](In in) { return depthwise_convolution(in[0], in[1], causal); });
  for (const Activation activation : {Activation::swiglu, Activation::geglu})
    judge.add(activation == Activation::swiglu ? "swiglu" : "geglu",
              {x, judge.normal({7, width}), judge.normal({7, width}), judge.normal({width, 7})}, [&](In in) {
                Rng rng(1);
                FeedForward layer(width, 7, {.activation = activation, .bias = false}, rng);
                layer.gate.weight = in[1];
                layer.up.weight = in[2];
                layer.down.weight = in[3];
                return layer(in[0], nullptr);
              });
}

struct Regression final : Module {
  Tensor tall, wide, bias;
  void fields(Fields& f) override {
    f.matrix("tall", tall);
    f.matrix("wide", wide);
    f("bias", bias);
  }
};

/// Six clipped steps of two groups, with a moving average: start, data and end as files.
void judge_optimizer(Judge& judge, OptimizerOptions options, const std::string& name) {
  Regression model;
  model.tall = leaf(judge.normal({6, 4}));
  model.wide = leaf(judge.normal({3, 6}));
  model.bias = leaf(judge.normal({3}));
  const Tensor x = judge.normal({8, 4}), target = judge.normal({8, 3});
  const Path folder = judge.new_folder(name);
  write_npy(folder / "x.npy", x);
  write_npy(folder / "target.npy", target);
  const auto write = [&](const std::string& prefix) {
    for (const Named& one : parameters(model))
      write_npy(folder / (prefix + one.name + ".npy"), one.tensor->detach());
  };
  write("");
  options.weight_decay = 0.1;
  options.grad_clip = 0.7;
  options.ema = options.kind == OptimizerKind::schedule_free ? 0 : 0.8;
  options.groups = {{.match = "bias", .weight_decay = 0.3, .rate = 0.5}};
  Optimizer optimizer(model, options);
  for (int step = 1; step <= 6; ++step) {
    backward(mse_loss(linear(tanh(linear(x, model.tall, {})), model.wide, model.bias), target));
    optimizer.step(0.1 / step);
  }
  write("end_");
  const AveragedWeights averaged(optimizer);
  write("mean_");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const uint64_t seed = std::stoull(arguments[2]);
  Judge judge(Path(arguments[1]), seed);
  judge_ops(judge);
  judge_losses(judge);
  judge_images(judge);
  judge_blocks(judge);
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd,
                             OptimizerKind::lion, OptimizerKind::schedule_free})
    judge_optimizer(judge, {.kind = kind}, choice_of(kind).word());
  for (const MuonScaling scaling : {MuonScaling::match_rms_adamw, MuonScaling::original})
    judge_optimizer(judge, {.kind = OptimizerKind::muon, .muon = {.scaling = scaling}, .hidden_rate = 2},
                    scaling == MuonScaling::original ? "muon_original" : "muon");
}
