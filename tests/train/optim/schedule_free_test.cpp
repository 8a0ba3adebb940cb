// Schedule-free AdamW against plain loops in double, its average in the model, and its checkpoints.
#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/nn/linear.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/config/config.h"
#include "heed/train/optim/optimizer.h"

using namespace heed;

namespace {

using Doubles = std::vector<double>;

/// A layer whose parameters w have the gradient w + 3.
struct Layer final : Module {
  explicit Layer(DType dtype = DType::f64) { convert(*this, dtype); }
  void fields(Fields& f) override { f("linear", linear); }
  Tensor loss() const {
    const auto part = [](const Tensor& x) { return sum(affine(square(x), 0.5, 0) + affine(x, 3, 0)); };
    return part(linear.weight) + part(linear.bias);
  }
  Rng rng{4};
  Linear linear{5, 3, rng};
};

void train(Layer& layer, Optimizer& optimizer, int steps, double rate = 0.1) {
  for (int i = 0; i < steps; ++i) {
    backward(layer.loss());
    optimizer.step(rate);
  }
}

const OptimizerOptions options{.kind = OptimizerKind::schedule_free};

}  // namespace

TEST_CASE("schedule-free: steps with a warm-up equal plain loops, and the model can get the average") {
  const DefaultDevice device(any_device());
  Layer layer;
  Optimizer optimizer(layer, {.kind = OptimizerKind::schedule_free,
                              .beta1 = 0.8,
                              .beta2 = 0.95,
                              .weight_decay = 0.2,
                              .groups = {{.match = "*.bias", .rate = 0.5}}});
  struct Sequences {
    Doubles y, z, x, v;
    double decay, factor;
  };
  const auto begin = [](const Tensor& w, double decay, double factor) {
    const Doubles y = w.to_doubles();
    return Sequences{y, y, y, Doubles(y.size()), decay, factor};
  };
  Sequences all[] = {begin(layer.linear.weight, 0.2, 1), begin(layer.linear.bias, 0, 0.5)};
  double weight_sum = 0, largest = 0;
  int step = 0;
  for (const double rate : {0.02, 0.04, 0.06, 0.06, 0.03}) {
    ++step;
    train(layer, optimizer, 1, rate);
    largest = std::max(largest, rate);
    weight_sum += largest * largest;
    const double share = largest * largest / weight_sum;
    for (auto& [y, z, x, v, decay, factor] : all) {
      for (size_t i = 0; i < y.size(); ++i) {
        const double g = y[i] + 3;
        v[i] = 0.95 * v[i] + 0.05 * g * g;
        z[i] -= rate * factor * (decay * y[i] + g / (std::sqrt(v[i] / (1 - std::pow(0.95, step))) + 1e-8));
        x[i] = (1 - share) * x[i] + share * z[i];
        y[i] = 0.8 * x[i] + 0.2 * z[i];
      }
    }
  }
  const auto check = [&](const Tensor& w, const Doubles& expected) {
    const Doubles found = w.to_doubles();
    for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-11));
  };
  check(layer.linear.weight, all[0].y);
  check(layer.linear.bias, all[1].y);
  {
    const AveragedWeights averaged(optimizer);
    check(layer.linear.weight, all[0].x);
    check(layer.linear.bias, all[1].x);
    CHECK_THROWS_WITH(optimizer.step(0.1), containing("while an AveragedWeights lives"));
  }
  check(layer.linear.weight, all[0].y);
}

TEST_CASE("schedule-free: the model's file has the average, and both files continue with the same bits") {
  Layer one(DType::f32), other(DType::f32), plain(DType::f32);
  Optimizer first(one, options), second(other, options), adamw(plain, {});
  train(one, first, 3);
  {
    const AveragedWeights averaged(first);
    load_bytes(other, save_bytes(one));
  }
  second.load(first.save());
  train(one, first, 3);
  train(other, second, 3);
  CHECK((save_bytes(one) == save_bytes(other)));
  CHECK((first.save() == second.save()));
  CHECK(fault_of([&] { adamw.load(first.save()); }) == Fault::data);
  CHECK(fault_of([&] { first.load(adamw.save()); }) == Fault::data);
}

TEST_CASE("schedule-free: a step with rate 0, a skipped one and reset() leave the sequences as they were") {
  const DefaultDevice device(any_device());
  Layer layer(DType::f32), same(DType::f32);
  Optimizer optimizer(layer, {.kind = OptimizerKind::schedule_free, .on_nan = OnNan::skip});
  Optimizer other(same, {.kind = OptimizerKind::schedule_free});
  {
    const AveragedWeights averaged(optimizer);  // there is none yet
    CHECK(optimizer.values().to_doubles() == other.values().to_doubles());
  }
  train(layer, optimizer, 2, 0);
  CHECK(optimizer.values().to_doubles() == other.values().to_doubles());
  train(layer, optimizer, 2, 0.5);
  load_bytes(layer, save_bytes(same));
  optimizer.reset();
  backward(layer.loss() * NAN);
  optimizer.step(0.1);
  optimizer.forget_step();
  train(layer, optimizer, 3);
  backward(layer.loss() * NAN);
  optimizer.step(0.2);
  optimizer.forget_step();
  train(layer, optimizer, 2);
  train(same, other, 5);
  CHECK((optimizer.save() == other.save()));
}

TEST_CASE("schedule-free: a moving average beside its own is refused") {
  Layer layer;
  CHECK_THROWS_WITH(Optimizer(layer, {.kind = OptimizerKind::schedule_free, .ema = 0.9}),
                    containing("ema = 0.9 with schedule_free, which averages the weights by itself"));
}

TEST_CASE("schedule-free: settings that let the rate fall are refused, and so is a moving average") {
  Config config = preset_config("shakespeare");
  config.set("train.optimizer", "schedule_free", "");
  CHECK_THROWS_WITH(config.check(), containing("train.schedule lets the learning rate fall"));
  config.set("train.schedule", "constant", "");
  config.check();
  config.set("train.ema", "0.9", "");
  CHECK_THROWS_WITH(config.check(), containing("train.ema = 0.9, but schedule_free averages"));
  config.set("train.ema", "0", "");
  config.set("train.decay_share", "0", "");
  CHECK_THROWS_WITH(config.check(), containing("train.decay_share = 0. It must be above 0 and at most 1"));
}
