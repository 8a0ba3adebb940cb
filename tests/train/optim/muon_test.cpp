// Muon against plain loops in double: orthogonal steps, the split of parameters, and what it shares with
// AdamW.
#include "heed/train/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/variant.h"
#include "heed/autograd/ops.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/memory/storage.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/nn/embedding.h"
#include "heed/nn/encoder_models.h"
#include "heed/nn/linear.h"
#include "heed/nn/transformer.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/optim/optimizer.h"

using namespace heed;

namespace {

using Doubles = std::vector<double>;

/// A matrix in double, row by row.
struct Matrix {
  int64_t rows, columns;
  Doubles x;
  double& at(int64_t i, int64_t j) { return x[static_cast<size_t>(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return x[static_cast<size_t>(i * columns + j)]; }
};

Matrix times(const Matrix& a, const Matrix& b) {
  Matrix out{a.rows, b.columns, Doubles(static_cast<size_t>(a.rows * b.columns))};
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < b.columns; ++j)
      for (int64_t k = 0; k < a.columns; ++k) out.at(i, j) += a.at(i, k) * b.at(k, j);
  return out;
}

Matrix turned(const Matrix& a) {
  Matrix out{a.columns, a.rows, Doubles(a.x.size())};
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) out.at(j, i) = a.at(i, j);
  return out;
}

/// The iteration of newton_schulz by its formula; (X X^T) X = X (X^T X), so no matrix is turned.
Matrix plain_newton_schulz(Matrix x, int64_t steps) {
  double squares = 0;
  for (const double value : x.x) squares += value * value;
  for (double& value : x.x) value /= std::max(std::sqrt(squares), 1e-7);
  for (int64_t step = 0; step < steps; ++step) {
    const Matrix cubic = times(times(x, turned(x)), x), quintic = times(times(x, turned(x)), cubic);
    for (size_t i = 0; i < x.x.size(); ++i)
      x.x[i] = 3.4445 * x.x[i] - 4.7750 * cubic.x[i] + 2.0315 * quintic.x[i];
  }
  return x;
}

/// newton_schulz of `count` matrices of one shape, on any device.
std::vector<Matrix> orthogonal(const std::vector<Matrix>& matrices, DType dtype, int64_t steps = 5) {
  const Matrix& first = matrices[0];
  const auto count = static_cast<int64_t>(matrices.size()), size = first.rows * first.columns;
  const MatrixRun run{
      .begin = 0, .rows = first.rows, .columns = first.columns, .stride = size + 3, .count = count};
  const NewtonSchulz newton_schulz({run}, dtype, default_device);
  const Tensor input = newton_schulz.input(run);
  for (int64_t i = 0; i < count; ++i)
    launch<kernel::Copy>(
        default_device,
        Tensor::of<double>(matrices[static_cast<size_t>(i)].x, Shape{1, size}).to(default_device),
        view::slice(view::slice(input, 0, i, i + 1), 1, 0, size));
  const Doubles all = newton_schulz.run(run, steps).to_doubles();
  std::vector<Matrix> out;
  for (int64_t i = 0; i < count; ++i) {
    const auto begin = all.begin() + i * run.stride;
    out.push_back({first.rows, first.columns, Doubles(begin, begin + size)});
  }
  return out;
}

Matrix random_matrix(int64_t rows, int64_t columns, Rng& rng) {
  Matrix out{rows, columns, Doubles(static_cast<size_t>(rows * columns))};
  for (double& value : out.x) value = rng.uniform() - 0.5;
  return out;
}

double distance(const Doubles& a, const Doubles& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

/// An embedding, two hidden layers of one shape, a wide and a tall one, and an output layer with a bias.
struct Net final : Module {
  explicit Net(DType dtype = DType::f64) { convert(*this, dtype); }
  void fields(Fields& f) override {
    f("embedding", embedding);
    f("first", first);
    f("second", second);
    f("wide", wide);
    f("tall", tall);
    f.boundary("output", output);
  }
  /// Each parameter w has the gradient w + 3.
  Tensor loss() {
    Tensor all;
    for (const Named& one : parameters(*this)) {
      const Tensor part = sum(affine(square(*one.tensor), 0.5, 0) + affine(*one.tensor, 3, 0));
      all = all ? all + part : part;
    }
    return all;
  }
  Rng rng{3};
  Embedding embedding{7, 4, Init::normal, rng, 1};
  Linear first{4, 4, rng}, second{4, 4, rng}, wide{4, 6, rng}, tall{6, 4, rng}, output{4, 3, rng};
};

bool is_hidden(const std::string& name) {
  return name.ends_with("weight") && name != "embedding.weight" && name != "output.weight";
}

/// A parameter and its moments in plain doubles.
struct Plain {
  std::string name;
  Matrix value;
  Doubles mean, square;
};

std::vector<Plain> plain_of(Module& module) {
  std::vector<Plain> out;
  for (const Named& one : parameters(module)) {
    const Doubles x = one.tensor->to_doubles();
    const int64_t columns = one.tensor->rank() < 2 ? 1 : one.tensor->extent(1);
    out.push_back({one.name, {one.tensor->extent(0), columns, x}, Doubles(x.size()), Doubles(x.size())});
  }
  return out;
}

/// One step of Muon and AdamW; `rate` of each parameter is that of its group times `rate`.
void plain_step(std::vector<Plain>& all, const OptimizerOptions& o, double rate, int step,
                const std::function<bool(const std::string&)>& by_muon = is_hidden) {
  double norm = 0;
  const auto gradient = [&](double w) {
    return o.grad_clip_value > 0 ? std::clamp(w + 3, -o.grad_clip_value, o.grad_clip_value) : w + 3;
  };
  for (const Plain& one : all)
    for (const double w : one.value.x) norm += (w + 3) * (w + 3);
  const double scale = o.grad_clip > 0 ? std::min(1.0, o.grad_clip / std::sqrt(norm)) : 1;
  for (Plain& one : all) {
    const double decay = one.value.columns > 1 ? o.decay() : 0;
    Matrix direction = one.value;
    for (size_t i = 0; i < one.value.x.size(); ++i) {
      const double g = scale * gradient(one.value.x[i]);
      const double beta = by_muon(one.name) ? o.muon.momentum : o.beta1;
      one.mean[i] = beta * one.mean[i] + (1 - beta) * g;
      one.square[i] = o.beta2 * one.square[i] + (1 - o.beta2) * g * g;
      direction.x[i] = by_muon(one.name)
                           ? beta * one.mean[i] + (1 - beta) * g
                           : one.mean[i] / (1 - std::pow(o.beta1, step)) /
                                 (std::sqrt(one.square[i] / (1 - std::pow(o.beta2, step))) + o.epsilon);
    }
    double own = rate;
    if (by_muon(one.name)) {
      direction = plain_newton_schulz(direction, o.muon.newton_schulz_steps);
      own *= o.hidden_rate;
    }
    const double factor =
        by_muon(one.name) ? muon_scale(o.muon.scaling, one.value.rows, one.value.columns) : 1;
    for (size_t i = 0; i < one.value.x.size(); ++i)
      one.value.x[i] -= own * (decay * one.value.x[i] + factor * direction.x[i]);
  }
}

}  // namespace

TEST_CASE("muon: newton_schulz makes singular values near 1, and is its formula for every shape") {
  const DefaultDevice device(any_device());
  const DType dtype = GENERATE(DType::f32, DType::f64);
  // A diagonal matrix has its singular values on the diagonal, and keeps that form.
  Matrix diagonal{5, 8, Doubles(40)};
  const double values[] = {3, 1, 0.3, 0.1, 0.02};
  for (int64_t i = 0; i < 5; ++i) diagonal.at(i, i) = values[i];
  for (const Matrix& x : {diagonal, turned(diagonal)}) {
    const Matrix y = orthogonal({x}, dtype)[0];
    for (int64_t i = 0; i < y.rows; ++i)
      for (int64_t j = 0; j < y.columns; ++j) {
        CAPTURE(i, j, y.at(i, j));
        if (i == j) CHECK((y.at(i, j) > 0.68 && y.at(i, j) < 1.21));
        if (i != j) CHECK(std::abs(y.at(i, j)) < 1e-6);
      }
  }
  Rng rng(5);
  for (const auto& [rows, columns] : {std::pair{6, 6}, {3, 9}, {9, 3}, {1, 5}, {33, 40}}) {
    CAPTURE(rows, columns);
    const std::vector<Matrix> x{random_matrix(rows, columns, rng), random_matrix(rows, columns, rng)};
    const std::vector<Matrix> y = orthogonal(x, dtype, 3);
    for (size_t i = 0; i < 2; ++i)
      CHECK(distance(y[i].x, plain_newton_schulz(x[i], 3).x) < (dtype == DType::f64 ? 1e-12 : 1e-5));
  }
  const Matrix zeros{2, 3, Doubles(6)};
  CHECK(orthogonal({zeros}, dtype)[0].x == zeros.x);
}

TEST_CASE("muon: several steps equal plain loops in double, clipped or not, in both scalings") {
  const DefaultDevice device(any_device());
  for (const double clip : {0.0, 0.5}) {
    for (const MuonScaling scaling : {MuonScaling::match_rms_adamw, MuonScaling::original}) {
      CAPTURE(clip, static_cast<int>(scaling));
      Net net;
      const OptimizerOptions options{.kind = OptimizerKind::muon,
                                     .epsilon = 1e-3,
                                     .muon = {.momentum = 0.8, .newton_schulz_steps = 4, .scaling = scaling},
                                     .hidden_rate = 3,
                                     .weight_decay = 0.2,
                                     .grad_clip = clip,
                                     .grad_clip_value = clip == 0 ? 2.5 : 0};
      std::vector<Plain> plain = plain_of(net);
      Optimizer optimizer(net, options);
      for (int step = 1; step <= 4; ++step) {
        backward(net.loss());
        optimizer.step(0.02 / step);
        plain_step(plain, options, 0.02 / step, step);
      }
      const std::vector<Named> now = parameters(net);
      for (size_t i = 0; i < plain.size(); ++i) {
        CAPTURE(plain[i].name);
        CHECK(distance(now[i].tensor->to_doubles(), plain[i].value.x) < 1e-11);
      }
    }
  }
}

TEST_CASE("muon: the factor of a step by the shape of its matrix") {
  CHECK(muon_scale(MuonScaling::original, 8, 2) == 2);
  CHECK(muon_scale(MuonScaling::original, 2, 8) == 1);
  CHECK(muon_scale(MuonScaling::match_rms_adamw, 25, 100) == Approx(2));
  CHECK(muon_scale(MuonScaling::match_rms_adamw, 100, 25) == Approx(2));
}

TEST_CASE("muon: hidden matrices of models are those of blocks, not embeddings, positions, outputs") {
  Rng rng(1);
  TransformerConfig config;
  config.d_model = 8;
  config.heads = 2;
  config.d_ff = 12;
  config.layers = 1;
  config.max_length = 6;
  config.position = PositionKind::learned;
  const auto names = [](Module& module) {
    std::vector<std::string> out;
    for (const Named& one : hidden_matrices(module)) out.push_back(one.name);
    return out;
  };
  const std::vector<std::string> of_block{"attention.query.weight", "attention.key.weight",
                                          "attention.value.weight", "attention.output.weight",
                                          "feed_forward.up.weight", "feed_forward.down.weight"};
  const auto in = [&](const std::string& prefix) {
    std::vector<std::string> out;
    for (const std::string& name : of_block) out.push_back(prefix + name);
    return out;
  };
  for (const Tie tie : {Tie::none, Tie::output}) {
    config.tie_embeddings = tie;
    DecoderOnly decoder(config, 11, attention_factory("softmax"), rng);
    CHECK(names(decoder) == in("decoder.blocks.0."));
  }
  Classifier classifier(config, {.vocabulary = 11, .classes = 3, .head_hidden = 5},
                        attention_factory("softmax"), rng);
  std::vector<std::string> expected = in("encoder.blocks.0.");
  expected.insert(expected.begin(), "hidden.weight");
  std::vector<std::string> found = names(classifier);
  std::ranges::sort(found);
  std::ranges::sort(expected);
  CHECK(found == expected);
}

TEST_CASE("muon: groups choose another rule, rate and decay, and freeze") {
  const DefaultDevice device(any_device());
  Net net;
  const OptimizerOptions options{.kind = OptimizerKind::muon, .weight_decay = 0.2};
  OptimizerOptions grouped = options;
  grouped.groups = {{.match = "tall.weight", .update = GroupUpdate::adamw},
                    {.match = "output.weight", .update = GroupUpdate::muon},
                    {.match = "wide.*", .frozen = true}};
  const Doubles frozen = net.wide.weight.to_doubles();
  Optimizer optimizer(net, grouped);
  std::vector<Plain> plain = plain_of(net);
  const auto by_muon = [](const std::string& name) {
    return name == "first.weight" || name == "second.weight" || name == "output.weight";
  };
  for (int step = 1; step <= 3; ++step) {
    backward(net.loss());
    optimizer.step(0.01);
    plain_step(plain, options, 0.01, step, by_muon);
  }
  const std::vector<Named> now = parameters(net);
  for (size_t i = 0; i < plain.size(); ++i) {
    CAPTURE(plain[i].name);
    CHECK(distance(now[i].tensor->to_doubles(), plain[i].value.x) < 1e-11);
  }
  CHECK(net.wide.weight.to_doubles() == frozen);
  CHECK(optimizer.orthogonalized() == 16 + 16 + 16);
  // Half the rate of a group is half the rate of a step, in the part of Muon, too.
  Net one, other;
  Optimizer half(one, {.kind = OptimizerKind::muon, .groups = {{.match = "*", .rate = 0.5}}});
  Optimizer whole(other, {.kind = OptimizerKind::muon});
  backward(one.loss());
  half.step(0.02);
  backward(other.loss());
  whole.step(0.01);
  CHECK(one.first.weight.to_doubles() == other.first.weight.to_doubles());
  CHECK(one.embedding.weight.to_doubles() == other.embedding.weight.to_doubles());
}

TEST_CASE("muon: what cannot be is refused by name") {
  Net net;
  const auto refused = [&](const OptimizerOptions& options, const char* words) {
    CHECK_THROWS_WITH(Optimizer(net, options), containing(words));
  };
  refused({.kind = OptimizerKind::muon, .groups = {{.match = "tall.bias", .update = GroupUpdate::muon}}},
          "the group tall.bias gives tall.bias [4] to muon, which updates matrices");
  refused({.groups = {{.match = "tall.*", .update = GroupUpdate::adamw}}},
          "the group tall.* has update=adamw, which is for optimizer = muon, and this is adamw");
  refused({.kind = OptimizerKind::muon, .muon = {.momentum = 1}}, "muon_momentum = 1");
  refused({.kind = OptimizerKind::muon, .hidden_rate = -1}, "hidden_rate = -1");
  refused({.kind = OptimizerKind::muon, .muon = {.newton_schulz_steps = 0}}, "newton_schulz_steps = 0");
  Rng rng(1);
  Embedding table(3, 4, Init::normal, rng);
  CHECK_THROWS_WITH(Optimizer(table, {.kind = OptimizerKind::muon}),
                    containing("muon is for matrices between hidden states, and the module has none"));
}

TEST_CASE("muon: saved and loaded with a moving average it continues with the same bits, on any threads") {
  const int before = threads();
  const OptimizerOptions options{.kind = OptimizerKind::muon, .ema = 0.9};
  Net one(DType::f32), other(DType::f32);
  Optimizer first(one, options), second(other, options);
  const auto train = [](Net& net, Optimizer& optimizer, int steps) {
    for (int i = 0; i < steps; ++i) {
      backward(net.loss());
      optimizer.step(0.05);
    }
  };
  train(one, first, 3);
  {
    const AveragedWeights averaged(first);
    load_bytes(other, save_bytes(one));
  }
  second.load(first.save());
  set_threads(before == 3 ? 2 : 3);
  train(one, first, 2);
  set_threads(1);
  train(other, second, 2);
  set_threads(before);
  CHECK((save_bytes(one) == save_bytes(other)));
  CHECK((first.save() == second.save()));
  Net plain(DType::f32);
  Optimizer adamw(plain, {.ema = 0.9});
  CHECK(fault_of([&] { adamw.load(first.save()); }) == Fault::data);
  CHECK(fault_of([&] { first.load(adamw.save()); }) == Fault::data);
}

TEST_CASE("muon: steps leave no memory behind, and one that is not finite changes nothing") {
  const DefaultDevice device(any_device());
  Net net;
  Optimizer optimizer(net, {.kind = OptimizerKind::muon, .on_nan = OnNan::skip});
  int64_t live = 0;
  for (int i = 0; i < 4; ++i) {
    backward(net.loss());
    optimizer.step(0.01);
    if (i == 1) live = memory_use(default_device).live;
  }
  CHECK(memory_use(default_device).live == live);
  const Doubles values = optimizer.values().to_doubles();
  const std::string state = optimizer.save();
  backward(net.loss() * std::nan(""));
  optimizer.step(0.1);
  optimizer.forget_step();
  CHECK(optimizer.values().to_doubles() == values);
  CHECK((optimizer.save() == state));
  // A learning rate of 0, by which a step is timed, leaves all weights as they are.
  backward(net.loss());
  optimizer.step(0);
  CHECK(optimizer.values().to_doubles() == values);
}

TEST_CASE("muon: tensors with three axes are left to AdamW, and the state of another rule is refused") {
  struct Stacked final : Module {
    Rng rng{2};
    Tensor matrix = normal_parameter(Shape{4, 4}, 1, rng), stack = normal_parameter(Shape{2, 4, 4}, 1, rng);
    void fields(Fields& f) override {
      f.matrix("matrix", matrix);
      f.matrix("stack", stack);
    }
  } stacked;
  CHECK(Optimizer(stacked, {.kind = OptimizerKind::muon}).orthogonalized() == 16);
  Rng rng(1);
  Linear one(4, 4, rng, {.bias = false}), other(4, 4, rng, {.bias = false});
  Optimizer muon(one, {.kind = OptimizerKind::muon}), lion(other, {.kind = OptimizerKind::lion});
  CHECK(fault_of([&] { lion.load(muon.save()); }) == Fault::data);  // both have one mean and no square
}
