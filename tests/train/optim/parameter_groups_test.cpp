// Tests groups of parameters, frozen parameters, and the moving average of weights.
#include "heed/train/optim/parameter_groups.h"

#include <cmath>

#include "heed/autograd/in_place.h"
#include "heed/autograd/ops.h"
#include "heed/nn/linear.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/train/optim/optimizer.h"

namespace heed {
namespace {

using Doubles = std::vector<double>;

/// Two layers, in f64.
struct TwoLayers final : Module {
  TwoLayers() : rng(3), first(3, 4, rng, {.init = Init::fan_in}), second(4, 2, rng, {.init = Init::fan_in}) {
    convert(*this, DType::f64);
  }
  void fields(Fields& f) override {
    f("first", first);
    f("second", second);
  }
  Tensor loss() const {
    Rng own(5);
    const Tensor x(Shape{6, 3}, DType::f64);
    fill_normal(x, 0, 1, own);
    return sum(square(second(tanh(first(x)))));
  }
  Rng rng;
  Linear first, second;
};

void train(TwoLayers& model, Optimizer& optimizer, int steps, double rate = 0.01) {
  for (int i = 0; i < steps; ++i) {
    backward(model.loss());
    optimizer.step(rate);
  }
}

TEST_CASE("parameter groups: their text is read and written, and what is wrong with it is named") {
  const std::string words =
      "*.bias: weight_decay=0; first.*: weight_decay=0.2, rate=0.5; second.*: frozen=true; x: rate=1";
  const std::vector<ParameterGroup> groups = parse_groups(words, "");
  REQUIRE(groups.size() == 4);
  CHECK((groups[1].match == "first.*" && groups[1].rate == 0.5 && groups[1].weight_decay == 0.2));
  CHECK((groups[2].frozen && !groups[0].frozen && !groups[3].weight_decay));
  CHECK(to_string(groups) == words);
  CHECK(parse_groups(" ", "").empty());
  CHECK_THROWS_WITH(parse_groups("rate=2", "file: "), containing("file: 'rate=2' is no group"));
  CHECK_THROWS_WITH(parse_groups("a: rate", ""), containing("'rate' of the group a is not key=value"));
  CHECK_THROWS_WITH(parse_groups("a: rat=1", ""), containing("Did you mean 'rate'?"));
  CHECK_THROWS_WITH(parse_groups("a: rate=x", ""), containing("rate = x is not legal"));
  for (const char* nothing : {"a:", "a: ,", "b: rate=1; a: "})
    CHECK_THROWS_WITH(parse_groups(nothing, "file: "),
                      containing("file: the group a has no options. Give one"));
  CHECK(parse_groups(to_string({{.match = "a"}}), "")[0].match == "a");
  CHECK_THROWS_WITH(check_groups({{.match = "a", .rate = -1}}), containing("rate = -1"));
  CHECK_THROWS_WITH(check_groups({{.match = "a;b"}}), containing("contains ';'"));
  const Tensor x = Tensor::zeros(Shape{2});
  CHECK(group_of(groups, "first.weight", x) == 1);
  CHECK(group_of(groups, "first.bias", x) == 0);
  CHECK(group_of(groups, "third", x) == -1);
  CHECK(group_of({{.match = "a?c*d"}}, "abcxxd", x) == 0);
  CHECK(group_of({{.match = "a?c*d"}}, "abcxxde", x) == -1);
}

TEST_CASE("parameter groups: each has its own decay and rate, as an optimizer alone with these would") {
  const DefaultDevice device(any_device());
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd}) {
    CAPTURE(static_cast<int>(kind));
    TwoLayers model, at_rate, at_half;
    OptimizerOptions options{.kind = kind, .weight_decay = 0.1};
    OptimizerOptions grouped = options, half = options;
    grouped.groups = {{.match = "second.*", .weight_decay = 0.3, .rate = 0.5}};
    half.weight_decay = 0.3;
    half.decay_vectors = true;
    Optimizer optimizer(model, grouped), whole(at_rate, options), other(at_half, half);
    train(model, optimizer, 1, 0.02);
    train(at_rate, whole, 1, 0.02);
    train(at_half, other, 1, 0.01);
    CHECK(model.first.weight.to_doubles() == at_rate.first.weight.to_doubles());
    CHECK(model.first.bias.to_doubles() == at_rate.first.bias.to_doubles());
    CHECK(model.second.weight.to_doubles() == at_half.second.weight.to_doubles());
    CHECK(model.second.bias.to_doubles() == at_half.second.bias.to_doubles());
  }
}

TEST_CASE("parameter groups: the gradient is clipped over all of them") {
  TwoLayers model, plain;
  OptimizerOptions options{.kind = OptimizerKind::sgd, .momentum = 0, .grad_clip = 0.01};
  Optimizer without(plain, options);
  options.groups = {{.match = "*weight", .rate = 2}};
  Optimizer with(model, options);
  const Doubles start = model.first.weight.to_doubles();
  train(model, with, 1);
  train(plain, without, 1);
  CHECK(with.gradient_norm() == Approx(without.gradient_norm()).epsilon(1e-12));
  const Doubles moved = model.first.weight.to_doubles(), once = plain.first.weight.to_doubles();
  for (size_t i = 0; i < start.size(); ++i)
    CHECK(moved[i] - start[i] == Approx(2 * (once[i] - start[i])).epsilon(1e-9));
}

TEST_CASE("parameter groups: frozen parameters stay, and are saved") {
  TwoLayers model;
  const Doubles weight = model.first.weight.to_doubles();
  Optimizer optimizer(model, {.groups = {{.match = "first.*", .frozen = true}}});
  train(model, optimizer, 3);
  CHECK(model.first.weight.to_doubles() == weight);
  CHECK_FALSE(grad_of(model.second.weight));
  CHECK(parameters(model).size() == 2);
  CHECK(tensors(model).size() == 4);
  unfreeze(model, [](const std::string& name, const Tensor&) { return name == "first.bias"; });
  CHECK(parameters(model).size() == 3);
  TwoLayers all;
  freeze(all);
  CHECK(parameters(all).empty());
}

TEST_CASE(
    "parameter groups: a predicate chooses by name and shape, and a group without a parameter is refused") {
  TwoLayers model;
  const ParameterGroup wide{.match = "wide",
                            .predicate = [](const std::string&, const Tensor& x) { return x.size() > 4; },
                            .frozen = true};
  { const Optimizer optimizer(model, {.groups = {wide}}); }
  CHECK(parameters(model).size() == 2);
  CHECK_THROWS_WITH(Optimizer(model, {.groups = {{.match = "third.*", .rate = 2}}}),
                    containing("the group third.* chooses no parameter"));
  CHECK_THROWS_WITH(Optimizer(model, {.groups = {{.match = "secnd.?ias", .rate = 2}}}),
                    containing("Near it are: second.bias, "));
}

TEST_CASE("parameter groups: a wildcard and a predicate must both hold") {
  const auto is_vector = [](const std::string&, const Tensor& x) { return x.rank() < 2; };
  const std::vector<ParameterGroup> groups{{.match = "first.*", .predicate = is_vector},
                                           {.match = "vectors", .predicate = is_vector}};
  const Tensor vector = Tensor::zeros(Shape{2}), matrix = Tensor::zeros(Shape{2, 2});
  CHECK(group_of(groups, "first.bias", vector) == 0);
  CHECK(group_of(groups, "first.weight", matrix) == -1);
  CHECK(group_of(groups, "second.bias", vector) == 1);  // without a wildcard, `match` is a name alone
  TwoLayers model;
  const ParameterGroup none{.match = "third.*", .predicate = is_vector, .rate = 2};
  CHECK_THROWS_WITH(Optimizer(model, {.groups = {none}}), containing("the group third.* chooses no"));
}

TEST_CASE("freeze: a choice of no tensor is refused, and one of tensors that are frozen is not") {
  TwoLayers model;
  const auto called = [](const char* wanted) {
    return [wanted](const std::string& name, const Tensor&) { return name == wanted; };
  };
  const char* places = "chooses none of the module's 4 tensors, which are first.weight to second.bias";
  CHECK_THROWS_WITH(freeze(model, called("third")), containing(text("freeze: the choice ", places)));
  CHECK_THROWS_WITH(unfreeze(model, called("third")), containing(text("unfreeze: the choice ", places)));
  freeze(model, called("first.bias"));
  freeze(model, called("first.bias"));
  CHECK(parameters(model).size() == 3);
}

TEST_CASE("parameter groups: moments are resumed with the same groups only") {
  const OptimizerOptions options{.groups = {{.match = "*.bias", .rate = 0.5}}};
  TwoLayers model, resumed;
  Optimizer optimizer(model, options), again(resumed, options);
  train(model, optimizer, 3);
  load_bytes(resumed, save_bytes(model));
  again.load(optimizer.save());
  train(model, optimizer, 2);
  train(resumed, again, 2);
  CHECK(save_bytes(model) == save_bytes(resumed));
  TwoLayers plain;
  Optimizer other(plain, {});
  CHECK_THROWS_WITH(other.load(optimizer.save()), containing("groups of parameters are not those"));
  CHECK_THROWS_WITH(optimizer.load(other.save()), containing("groups of parameters are not those"));
}

TEST_CASE("optimizer: a second one on the same parameters is refused while the first lives") {
  TwoLayers model;
  {
    Optimizer optimizer(model, {});
    CHECK_THROWS_WITH(Optimizer(model.second, {}), containing("weight belongs to another optimizer"));
    train(model, optimizer, 1);
  }
  Optimizer next(model, {});
  const Doubles before = model.first.weight.to_doubles();
  train(model, next, 1);
  CHECK(model.first.weight.to_doubles() != before);
}

TEST_CASE("optimizer: a parameter replaced after it was made is found") {
  TwoLayers model;
  Optimizer optimizer(model, {});
  optimizer.check_updates(model);
  copy_(model.first.bias, Tensor::zeros(Shape{4}, DType::f64));
  optimizer.check_updates(model);
  model.first.bias = leaf(Tensor::zeros(Shape{4}, DType::f64));
  CHECK_THROWS_WITH(optimizer.check_updates(model), containing("first.bias was replaced"));
}

TEST_CASE("moving average: a copy after the first step, then a mix, kept for the model while it is scored") {
  const DefaultDevice device(any_device());
  TwoLayers model;
  Optimizer optimizer(model, {.ema = 0.9, .on_nan = OnNan::skip});
  copy_(model.first.weight,
        model.first.weight.detach() * 2);  // weights may come after the optimizer was made
  {
    const Doubles weights = optimizer.values().to_doubles();
    const AveragedWeights scope(optimizer);  // there is no average yet
    CHECK(optimizer.values().to_doubles() == weights);
  }
  Doubles expected;
  for (int step = 0; step < 4; ++step) {
    train(model, optimizer, 1);
    const Doubles now = optimizer.values().to_doubles();
    for (size_t i = 0; i < now.size(); ++i)
      if (step == 0)
        expected.push_back(now[i]);
      else
        expected[i] = 0.9 * expected[i] + 0.1 * now[i];
  }
  const Doubles average = optimizer.average().to_doubles(), weights = optimizer.values().to_doubles();
  for (size_t i = 0; i < average.size(); ++i) CHECK(average[i] == Approx(expected[i]).margin(1e-14));
  {
    const AveragedWeights scope(optimizer);
    CHECK(optimizer.values().to_doubles() == average);
  }
  CHECK(optimizer.values().to_doubles() == weights);
  backward(model.loss() * std::nan(""));
  optimizer.step(0.01);
  CHECK(optimizer.average().to_doubles() == average);
}

TEST_CASE(
    "moving average: the model's file has it, the optimizer's file the weights, and both go on exactly") {
  TwoLayers model, resumed, plain;
  Optimizer optimizer(model, {.ema = 0.5}), again(resumed, {.ema = 0.5}), without(plain, {});
  train(model, optimizer, 3);
  {
    const AveragedWeights scope(optimizer);
    load_bytes(resumed, save_bytes(model));
  }
  again.load(optimizer.save());
  train(model, optimizer, 2);
  train(resumed, again, 2);
  CHECK(again.values().to_doubles() == optimizer.values().to_doubles());
  CHECK(again.average().to_doubles() == optimizer.average().to_doubles());
  CHECK_THROWS_WITH(without.load(optimizer.save()), containing("with a moving average"));
  CHECK_THROWS_WITH(optimizer.load(without.save()), containing("without a moving average"));
}

}  // namespace
}  // namespace heed
