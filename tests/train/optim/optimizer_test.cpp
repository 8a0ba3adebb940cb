// Contiguous parameters and their updates against plain double loops.
#include "heed/train/optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/core/memory/storage.h"
#include "heed/nn/init.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

/// A matrix under two names, a vector, and a matrix that no loss reads.
struct Tiny final : Module {
  Tiny() {
    Rng rng(3);
    bias = normal_parameter(Shape{3}, 1, rng);
    weight = normal_parameter(Shape{2, 3}, 1, rng);
    tied = weight;
    idle = normal_parameter(Shape{2, 2}, 1, rng);
    convert(*this, DType::f64);
  }
  void fields(Fields& f) override {
    f("bias", bias);
    f("weight", weight);
    f("tied", tied);
    f("idle", idle);
  }
  /// Its gradient: weight + 3 for the matrix (1 of it through the tied name), 4 bias for the vector.
  Tensor loss() const {
    return sum(affine(square(weight), 0.5, 0) + affine(tied, 3, 0)) + sum(affine(square(bias), 2, 0));
  }
  Tensor bias, weight, tied, idle;
};

struct Plain {
  std::vector<double> value, first, second;
  bool matrix = false;
  explicit Plain(const Tensor& x, bool decayed)
      : value(x.to_doubles()), first(value.size()), second(value.size()), matrix(decayed) {}
  double gradient(size_t i, bool used) const { return !used ? 0 : matrix ? value[i] + 3 : 4 * value[i]; }
};

void plain_step(std::vector<Plain>& all, const OptimizerOptions& o, double rate, int step) {
  double norm = 0;
  for (size_t p = 0; p < all.size(); ++p) {
    for (size_t i = 0; i < all[p].value.size(); ++i) norm += std::pow(all[p].gradient(i, p < 2), 2);
  }
  norm = std::sqrt(norm);
  const double scale = o.grad_clip > 0 && norm > o.grad_clip ? o.grad_clip / norm : 1;
  for (size_t p = 0; p < all.size(); ++p) {
    Plain& x = all[p];
    const double decay = x.matrix || o.decay_vectors ? o.decay() : 0;
    for (size_t i = 0; i < x.value.size(); ++i) {
      double g = x.gradient(i, p < 2);
      if (o.grad_clip_value > 0) g = std::clamp(g, -o.grad_clip_value, o.grad_clip_value);
      g *= scale;
      if (o.kind == OptimizerKind::sgd) {
        x.first[i] = o.momentum * x.first[i] + g + decay * x.value[i];
        x.value[i] -= rate * x.first[i];
        continue;
      }
      if (o.kind == OptimizerKind::lion) {
        const double mix = o.beta1 * x.first[i] + (1 - o.beta1) * g;
        x.first[i] = o.beta2 * x.first[i] + (1 - o.beta2) * g;
        x.value[i] -= rate * (decay * x.value[i] + (mix > 0 ? 1 : mix < 0 ? -1 : 0));
        continue;
      }
      if (o.kind == OptimizerKind::adam) g += decay * x.value[i];
      x.first[i] = o.beta1 * x.first[i] + (1 - o.beta1) * g;
      x.second[i] = o.beta2 * x.second[i] + (1 - o.beta2) * g * g;
      const double m = x.first[i] / (1 - std::pow(o.beta1, step)),
                   v = x.second[i] / (1 - std::pow(o.beta2, step));
      if (o.kind == OptimizerKind::adamw) x.value[i] -= rate * decay * x.value[i];
      x.value[i] -= rate * m / (std::sqrt(v) + o.epsilon);
    }
  }
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

}  // namespace

TEST_CASE("optimizer: five steps of each kind equal a plain loop in double") {
  for (const OptimizerKind kind :
       {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lion}) {
    for (const double clip : {0.0, 0.5, 1e6}) {
      for (const double decay : {0.0, 0.3}) {
        CAPTURE(static_cast<int>(kind), clip, decay);
        Tiny module;
        std::vector<Plain> plain{Plain(module.weight, true), Plain(module.bias, false),
                                 Plain(module.idle, true)};
        const OptimizerOptions options{.kind = kind,
                                       .beta1 = 0.8,
                                       .beta2 = 0.9,
                                       .epsilon = 1e-3,
                                       .momentum = 0.7,
                                       .weight_decay = decay,
                                       .grad_clip = clip};
        Optimizer optimizer(module, options);
        for (int step = 1; step <= 5; ++step) {
          const double rate = 0.1 / step;
          double norm = 0;
          for (size_t p = 0; p < 2; ++p) {
            for (size_t i = 0; i < plain[p].value.size(); ++i)
              norm += std::pow(plain[p].gradient(i, true), 2);
          }
          backward(module.loss());
          optimizer.step(rate);
          plain_step(plain, options, rate, step);
          CHECK(optimizer.gradient_norm() == Approx(std::sqrt(norm)));
        }
        CHECK(distance(module.weight.to_doubles(), plain[0].value) < 1e-12);
        CHECK(distance(module.tied.to_doubles(), plain[0].value) < 1e-12);
        CHECK(distance(module.bias.to_doubles(), plain[1].value) < 1e-12);
        CHECK(distance(module.idle.to_doubles(), plain[2].value) < 1e-12);
        CHECK(optimizer.steps() == 5);
      }
    }
  }
}

TEST_CASE("optimizer: vectors decay where asked, and a step can have a momentum of its own") {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    CAPTURE(static_cast<int>(kind));
    Tiny module;
    std::vector<Plain> plain{Plain(module.weight, true), Plain(module.bias, false), Plain(module.idle, true)};
    OptimizerOptions options{.kind = kind, .epsilon = 1e-3, .weight_decay = 0.3, .decay_vectors = true};
    Optimizer optimizer(module, options);
    CHECK(optimizer.decayed() == optimizer.size());
    for (int step = 1; step <= 3; ++step) {
      const double momentum = 1 - 0.1 * step;
      backward(module.loss());
      optimizer.begin_step(0.1, momentum);
      optimizer.update();
      optimizer.end_step();
      options.beta1 = options.momentum = momentum;
      plain_step(plain, options, 0.1, step);
    }
    CHECK(distance(module.weight.to_doubles(), plain[0].value) < 1e-12);
    CHECK(distance(module.bias.to_doubles(), plain[1].value) < 1e-12);
    CHECK(distance(module.idle.to_doubles(), plain[2].value) < 1e-12);
  }
}

TEST_CASE("optimizer: the defaults are those of PyTorch") {
  Tiny module;
  std::vector<Plain> plain{Plain(module.weight, true), Plain(module.bias, false), Plain(module.idle, true)};
  const OptimizerOptions written{
      .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01, .grad_clip = 0};
  Optimizer optimizer(module, {});
  for (int step = 1; step <= 3; ++step) {
    backward(module.loss());
    optimizer.step(0.1);
    plain_step(plain, written, 0.1, step);
  }
  CHECK(optimizer.gradient_norm() > 1);
  CHECK(distance(module.weight.to_doubles(), plain[0].value) < 1e-12);
  CHECK(distance(module.bias.to_doubles(), plain[1].value) < 1e-12);
  CHECK(distance(module.idle.to_doubles(), plain[2].value) < 1e-12);
  CHECK(OptimizerOptions{.kind = OptimizerKind::adam}.decay() == 0);
  CHECK(OptimizerOptions{.kind = OptimizerKind::sgd}.decay() == 0);
  CHECK(OptimizerOptions{.kind = OptimizerKind::sgd, .weight_decay = 0.2}.decay() == 0.2);
}

TEST_CASE("optimizer: elements of the gradient are cut to a bound, and what is not finite is still seen") {
  for (const double clip : {0.0, 0.5}) {
    Tiny module;
    std::vector<Plain> plain{Plain(module.weight, true), Plain(module.bias, false), Plain(module.idle, true)};
    const OptimizerOptions options{
        .epsilon = 1e-3, .grad_clip = clip, .grad_clip_value = 2, .on_nan = OnNan::skip};
    Optimizer optimizer(module, options);
    bool cut = false;
    for (int step = 1; step <= 3; ++step) {
      for (size_t i = 0; i < 6; ++i) cut = cut || std::abs(plain[0].gradient(i, true)) > 2;
      backward(module.loss());
      optimizer.step(0.1);
      plain_step(plain, options, 0.1, step);
    }
    CHECK(cut);
    CHECK(distance(module.weight.to_doubles(), plain[0].value) < 1e-12);
    CHECK(distance(module.bias.to_doubles(), plain[1].value) < 1e-12);
    const std::vector<double> before = optimizer.values().to_doubles();
    backward(module.loss() * NAN);
    optimizer.step(0.1);
    CHECK(!std::isfinite(optimizer.gradient_norm()));
    CHECK(optimizer.values().to_doubles() == before);
  }
}

TEST_CASE("optimizer: parameters and gradients live in the arena, each on a line of its own") {
  Tiny module;
  const std::vector<double> before = module.weight.to_doubles();
  Optimizer optimizer(module, {});
  CHECK(module.weight.to_doubles() == before);
  CHECK(module.weight.storage() == optimizer.values().storage());
  CHECK(module.tied.storage() == optimizer.values().storage());
  CHECK(module.tied.offset() == module.weight.offset());
  CHECK(module.bias.storage() == optimizer.values().storage());
  CHECK(module.idle.storage() == optimizer.values().storage());
  CHECK(module.bias.offset() >
        std::max(module.weight.offset(), module.idle.offset()));  // decayed ones come first
  CHECK(module.bias.offset() % 16 == 0);
  CHECK(optimizer.size() == 3 * 16);
  backward(module.loss());
  CHECK(grad_of(module.bias).storage() == optimizer.gradients().storage());
  CHECK(grad_of(module.weight).to_doubles()[0] == Approx(before[0] + 3));
  CHECK(optimizer.value_norm() > 0);
}

TEST_CASE("optimizer: gradients of several sweeps add up, and clear() forgets them") {
  Tiny module;
  Optimizer optimizer(module, {.grad_clip = 0});
  backward(module.loss());
  const std::vector<double> once = grad_of(module.bias).to_doubles();
  backward(module.loss());
  CHECK(grad_of(module.bias).to_doubles()[1] == Approx(2 * once[1]));
  optimizer.clear();
  backward(module.loss());
  CHECK(grad_of(module.bias).to_doubles() == once);
  optimizer.clear();
  optimizer.step(0.1);  // nothing has arrived: the gradient is zero, not an old one
  CHECK(optimizer.gradient_norm() == 0);
}

TEST_CASE("optimizer: saved and loaded, it continues with the same bits") {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::lion}) {
    Tiny one, other;
    Optimizer first(one, {.kind = kind, .weight_decay = 0.1});
    Optimizer second(other, {.kind = kind, .weight_decay = 0.1});
    for (int i = 0; i < 3; ++i) {
      backward(one.loss());
      first.step(0.05);
    }
    load_bytes(other, save_bytes(one));
    second.load(first.save());
    CHECK(second.steps() == 3);
    CHECK(other.weight.storage() == second.values().storage());
    for (int i = 0; i < 2; ++i) {
      backward(one.loss());
      first.step(0.05);
      backward(other.loss());
      second.step(0.05);
    }
    CHECK(one.weight.to_doubles() == other.weight.to_doubles());
    CHECK(one.bias.to_doubles() == other.bias.to_doubles());
    CHECK(first.save() == second.save());
  }
}

TEST_CASE("optimizer: the state of another model is refused, and so is a module without parameters") {
  Tiny tiny;
  Optimizer optimizer(tiny, {});
  struct Other final : Module {
    Tensor weight = constant_parameter(Shape{7, 9}, 1);
    void fields(Fields& f) override { f("weight", weight); }
  } other;
  const std::string bytes = Optimizer(other, {}).save();
  CHECK(fault_of([&] { optimizer.load(bytes); }) == Fault::data);
  CHECK_THROWS_WITH(optimizer.load(bytes), containing("first has 256 bytes, this model needs 384"));
  CHECK(fault_of([&] { optimizer.load(bytes.substr(0, 40)); }) == Fault::data);
  Tiny kin;
  CHECK(fault_of([&] { optimizer.load(Optimizer(kin, {.kind = OptimizerKind::sgd}).save()); }) ==
        Fault::data);
  Tiny plain;
  Optimizer sgd(plain, {.kind = OptimizerKind::sgd});
  CHECK(fault_of([&] { sgd.load(optimizer.save()); }) == Fault::data);
  Tiny similar;
  Optimizer lion(similar, {.kind = OptimizerKind::lion});
  CHECK(fault_of([&] { lion.load(sgd.save()); }) == Fault::data);
  struct Empty final : Module {
    void fields(Fields&) override {}
  } empty;
  CHECK_THROWS_WITH(Optimizer(empty, {}), containing("no parameters"));
}

TEST_CASE("optimizer: steps leave no memory behind") {
  Tiny module;
  Optimizer optimizer(module, {});
  int64_t live = 0;
  for (int i = 0; i < 6; ++i) {
    backward(module.loss());
    optimizer.step(0.01);
    if (i == 1) live = memory_use().live;
  }
  CHECK(memory_use().live == live);
}

TEST_CASE("optimizer: a loss or gradient that is not finite changes nothing") {
  Tiny module;
  Optimizer optimizer(module, {.on_nan = OnNan::skip});
  backward(module.loss());
  optimizer.step(0.1, std::vector<Tensor>{Tensor::full(Shape{}, 2, DType::f64, Device::cpu)});
  CHECK(std::isfinite(optimizer.gradient_norm()));
  const std::vector<double> values = optimizer.values().to_doubles();
  const std::string moments = optimizer.save();
  backward(module.loss());
  optimizer.step(0.1, std::vector<Tensor>{Tensor::full(Shape{}, 1, DType::f64, Device::cpu),
                                          Tensor::full(Shape{}, HUGE_VAL, DType::f32, Device::cpu)});
  CHECK(!std::isfinite(optimizer.gradient_norm()));
  backward(module.loss() * std::nan(""));
  optimizer.step(0.1);
  CHECK(!std::isfinite(optimizer.gradient_norm()));
  optimizer.forget_step();
  optimizer.forget_step();
  CHECK(optimizer.values().to_doubles() == values);
  CHECK((optimizer.save() == moments));
}
