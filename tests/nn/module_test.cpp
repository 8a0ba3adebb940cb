// tests nn/module.h, nn/options.h
#include "heed/nn/module.h"

#include <cmath>
#include <type_traits>

#include "heed/autograd/node.h"
#include "heed/core/io/safetensors.h"
#include "heed/nn/linear.h"
#include "heed/nn/norm.h"
#include "heed/nn/weight_transfer.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

namespace heed {
namespace {

/// A module with a child, a list of children, one that may be absent, a parameter and a buffer of its own.
struct Tree final : Module {
  explicit Tree(Rng& rng)
      : first(3, 4, rng),
        gain(constant_parameter(Shape{2}, 1)),
        waves(Tensor::from({1, 2, 3})),
        norm(std::make_unique<LayerNorm>(4, LayerNorm::Options{})) {
    for (int i = 0; i < 2; ++i)
      layers.push_back(std::make_unique<Linear>(4, 4, rng, LinearOptions{.bias = i == 0}));
  }
  Tensor operator()(const Tensor& x) const {
    return sum((*norm)((*layers[1])((*layers[0])(first(x))))) * sum(gain) + sum(waves);
  }
  void fields(Fields& f) override {
    f("first", first);
    f("layers", layers);
    f("norm", norm);
    f("absent", absent);
    f("gain", gain);
    f("waves", waves);
  }
  Linear first;
  std::vector<std::unique_ptr<Linear>> layers;
  Tensor gain, waves;
  std::unique_ptr<LayerNorm> norm;
  std::unique_ptr<Linear> absent;
};

std::vector<std::string> names(const std::vector<Named>& list) {
  std::vector<std::string> out;
  for (const Named& named : list) out.push_back(named.name);
  return out;
}

using Names = std::vector<std::string>;

// Modules move but do not copy: a copy would tie all its weights unseen.
static_assert(!std::is_copy_constructible_v<Linear> && !std::is_copy_assignable_v<Linear>);
static_assert(!std::is_copy_constructible_v<Module> && !std::is_copy_assignable_v<Tree>);
static_assert(std::is_move_constructible_v<Linear> && std::is_move_assignable_v<Linear>);

}  // namespace

TEST_CASE("module: names are dotted, in the order of fields(), and buffers are no parameters") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Tree tree(rng);
  const Names trained{"first.weight",    "first.bias", "layers.0.weight", "layers.0.bias",
                      "layers.1.weight", "norm.gain",  "norm.bias",       "gain"};
  CHECK(names(parameters(tree)) == trained);
  Names all = trained;
  all.push_back("waves");
  CHECK(names(tensors(tree)) == all);
  CHECK(count_parameters(tree) == 12 + 4 + 16 + 4 + 16 + 4 + 4 + 2);
}

TEST_CASE("module: assigning a parameter changes what parameters() finds") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Tree tree(rng);
  const Tensor other = leaf(Tensor::full(Shape{4, 3}, 7));
  tree.first.weight = other;
  CHECK(parameters(tree)[0].tensor->node() == other.node());
  tree.first.bias = Tensor();
  CHECK(parameters(tree)[1].name == "layers.0.weight");
  tree.layers.pop_back();
  CHECK(parameters(tree).size() == 6);
}

TEST_CASE("module: a tied parameter is reported once, under its first name, and trained once") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Tree tree(rng);
  tree.layers[1]->weight = tree.layers[0]->weight;
  const Names found = names(parameters(tree));
  CHECK(std::count(found.begin(), found.end(), "layers.0.weight") == 1);
  CHECK(std::count(found.begin(), found.end(), "layers.1.weight") == 0);
  CHECK(count_parameters(tree) == 62 - 16);
  int visits = 0;
  visit_tensors(tree, [&](const std::string&, Tensor&) { ++visits; });
  CHECK(visits == 9);

  // Both uses reach the one gradient.
  Rng again(1);
  Tree apart(again);
  apart.layers[1]->weight = leaf(apart.layers[0]->weight);
  const Tensor x = Tensor::from({0.3f, -1, 2});
  backward(square(tree(x)));
  backward(square(apart(x)));
  const auto both = grad_of(tree.layers[0]->weight).to_host();
  const auto one = grad_of(apart.layers[0]->weight).to_host(),
             two = grad_of(apart.layers[1]->weight).to_host();
  for (size_t i = 0; i < both.size(); ++i) CHECK(both[i] == Approx(one[i] + two[i]).margin(1e-5));
}

TEST_CASE("module: converting keeps ties, buffers and numbers") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Tree tree(rng);
  tree.layers[1]->weight = tree.layers[0]->weight;
  const auto before = tree.first.weight.to_host();
  convert(tree, DType::f64);
  for (const Named& named : tensors(tree)) CHECK(named.tensor->dtype() == DType::f64);
  CHECK(tree.layers[1]->weight.node() == tree.layers[0]->weight.node());
  CHECK(tree.layers[1]->weight.storage() == tree.layers[0]->weight.storage());
  CHECK(tree.first.weight.to_host() == before);
  CHECK(tree.first.weight.node()->leaf);
  CHECK_FALSE(tree.waves.node());
  CHECK(parameters(tree).size() == 7);
  move_to(tree, Device::cpu);
  CHECK(tree.layers[1]->weight.node() == tree.layers[0]->weight.node());
}

TEST_CASE("module: saved and loaded, ties and buffers included") {
  const DefaultDevice device(any_device());
  Rng one(1), two(2);
  Tree from(one), to(two);
  fill_normal(from.waves, 0, 1, one);
  const std::string bytes = save_bytes(from);
  const Tensor held = to.first.weight;
  load_bytes(to, bytes);
  CHECK(to.first.weight.to_host() == from.first.weight.to_host());
  CHECK(to.norm->bias.to_host() == from.norm->bias.to_host());
  CHECK(to.waves.to_host() == from.waves.to_host());
  CHECK(held.to_host() == from.first.weight.to_host());  // into the same leaf: optimizers keep theirs
  CHECK(save_bytes(to) == bytes);
  const SafeTensors file = SafeTensors::parse(bytes, "saved");
  CHECK(file.entries().size() == 9);
  CHECK(file.at("layers.1.weight").shape == std::vector<int64_t>{4, 4});
}

TEST_CASE("module: a parameter that lies turned in memory is saved and loaded as it reads") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Linear from(2, 3, rng, {.bias = false}), to(2, 3, rng, {.bias = false});
  to.weight = leaf(view::transpose(Tensor::zeros(Shape{2, 3}), 0, 1));
  load_bytes(to, save_bytes(from));
  CHECK(to.weight.to_host() == from.weight.to_host());
  CHECK(save_bytes(to) == save_bytes(from));
}

TEST_CASE("module: a file that does not fit is refused by tensor, and nothing is loaded of it") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Linear small(2, 3, rng), wide(2, 4, rng), bare(2, 3, rng, {.bias = false});
  const auto before = small.weight.to_host();
  CHECK_THROWS_WITH(load_bytes(small, save_bytes(wide)),
                    containing("weight is f32 [4, 2] in the file, f32 [3, 2] in the model"));
  CHECK_THROWS_WITH(load_bytes(small, save_bytes(bare)),
                    containing("tensor bias [3] is missing in the file"));
  CHECK_THROWS_WITH(load_bytes(bare, save_bytes(small)),
                    containing("the file holds bias, which this model does not have"));
  Linear precise(2, 3, rng);
  convert(precise, DType::f64);
  CHECK_THROWS_WITH(
      load_bytes(small, save_bytes(precise)),
      containing("is f64 [3] in the file, f32 [3] in the model") || containing("is f64 [3, 2] in the file"));
  CHECK_THROWS_AS(load_bytes(small, "no file"), Error);
  CHECK(small.weight.to_host() == before);
  try {
    load_bytes(small, save_bytes(wide));
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::data);
  }
}

TEST_CASE("module: weights that are not finite are refused by tensor and place, and nothing is loaded") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  for (const DType type : {DType::f32, DType::f64}) {
    Linear from(4, 3, rng), to(4, 3, rng);
    convert(from, type);
    convert(to, type);
    const std::string before = save_bytes(to);
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      std::vector<double> values = from.weight.to_doubles();
      values[2 * 4 + 1] = bad;
      from.weight = leaf(cast(Tensor::of<double>(values, Shape{3, 4}), type));
      const std::string bytes = save_bytes(from);
      CHECK(fault_of([&] { load_bytes(to, bytes, "m.safetensors"); }) == Fault::numeric);
      CHECK_THROWS_WITH(load_bytes(to, bytes, "m.safetensors"),
                        containing("m.safetensors: tensor weight is not finite") &&
                            containing("number [2, 1]") && containing("Take another checkpoint"));
      CHECK(fault_of([&] { transfer_weights(to, SafeTensors::parse(bytes, "m.safetensors")); }) ==
            Fault::numeric);
      CHECK(save_bytes(to) == before);
    }
  }
  Linear from(4, 3, rng), to(4, 3, rng);
  from.bias = leaf(Tensor::of<float>(std::vector<float>{0, 3.4e38F, 1e-45F}, Shape{3}));
  load_bytes(to, save_bytes(from));  // large and tiny numbers are numbers
  CHECK(to.bias.to_host() == from.bias.to_host());
}

TEST_CASE("module: names of modules are found") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Tree tree(rng), stranger(rng);
  CHECK(name_of(tree, &tree.first) == "first");
  CHECK(name_of(tree, tree.layers[1].get()) == "layers.1");
  CHECK(name_of(tree, tree.norm.get()) == "norm");
  CHECK(name_of(tree, &stranger.first).empty());
  CHECK(name_of(tree, nullptr).empty());
}

TEST_CASE("module: the summary counts by the first two words of a name") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Tree tree(rng);
  const std::string table = summary(tree);
  CHECK_THAT(table, containing("layers.0") && containing("layers.1") && containing("norm.gain"));
  CHECK_THAT(table, containing("total") && containing("62"));
  CHECK(table.find("waves") == std::string::npos);
}

namespace {

/// What check_listed is for: mistakes in fields() and in a forward pass.
struct Mistaken final : Module {
  explicit Mistaken(Rng& rng) : named(2, 2, rng), hidden(leaf(Tensor::full(Shape{2, 5}, 1))) {}
  void fields(Fields& f) override { f("named", named); }
  Linear named;
  Tensor hidden;
};

}  // namespace

TEST_CASE("module: a parameter that is not used and a leaf that is not listed are named") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Mistaken module(rng);
  const Tensor x = Tensor::from({1, 2});
  CHECK_NOTHROW(check_listed(module, sum(module.named(x))));
  CHECK_THROWS_WITH(check_listed(module, sum(linear(x, module.named.weight, {}))),
                    containing("does not depend on the parameter named.bias [2]"));
  CHECK_THROWS_WITH(check_listed(module, sum(module.named(x)) * sum(module.hidden)),
                    containing("[2, 5]") && containing("that no module names"));
  CHECK_THROWS_WITH(check_listed(module, sum(x)),
                    containing("does not depend on the parameter named.weight"));
  CHECK_THROWS_WITH(check_listed(module, sum(module.named(x)).detach()),
                    containing("the loss has no gradient") && containing("NoGrad") && containing("detach()"));
}

namespace {

/// A module whose fields() names two things alike.
struct NamesTwice final : Module {
  explicit NamesTwice(Rng& rng) : one(2, 3, rng), other(4, 1, rng), buffer(Tensor::zeros(Shape{2})) {}
  void fields(Fields& f) override {
    f("layer", one);
    if (children) f("layer", other);
    f("mean", buffer);
    if (tensors) f("mean", other.weight);
    f("layer", one);  // the module itself again: no mistake
  }
  Linear one, other;
  Tensor buffer;
  bool children = false, tensors = false;
};

}  // namespace

TEST_CASE("module: two tensors or two children of one name are refused when it is saved or loaded") {
  const Scratch scratch;
  Rng rng(1);
  NamesTwice module(rng);
  const std::string file = save_bytes(module);
  load_bytes(module, file);
  module.tensors = true;
  const std::string words =
      "model: fields() names two tensors mean, of shapes [2] and [1, 4]. Give each a name";
  CHECK_THROWS_WITH(save(module, scratch / "model"), containing(words));
  CHECK_THROWS_WITH(load_bytes(module, file), containing(words));
  CHECK_THROWS_WITH(check_names(module), containing(words));
  module.tensors = false;
  module.children = true;
  CHECK_THROWS_WITH(check_names(module),
                    containing("model: fields() names two tensors layer.weight, of shapes [3, 2]"));
  module.other.weight = module.one.weight;
  module.other.bias = module.one.bias;
  CHECK_THROWS_WITH(check_names(module),
                    containing("model: fields() names two modules layer, of 9 and 9 parameters. Give each"));
}

/// A model some of whose layers are left out.
struct Gaps final : Module {
  Gaps() : rng(1) {
    layers.push_back(nullptr);
    layers.push_back(std::make_unique<Linear>(2, 3, rng));
  }
  void fields(Fields& f) override { f("layers", layers); }
  Rng rng;
  std::vector<std::unique_ptr<Linear>> layers;
};

TEST_CASE("module: a null child of a list is left out, and others keep their numbers") {
  Gaps gaps;
  CHECK(count_parameters(gaps) == 9);
  CHECK(parameters(gaps)[0].name == "layers.1.weight");
}

TEST_CASE("module: a file holds the tensors, and is replaced as a whole") {
  const Scratch scratch;
  Rng rng(1);
  Linear one(3, 4, rng), other(3, 4, rng), wide(3, 5, rng);
  const std::string before = save_bytes(other);
  save(one, scratch / "model.safetensors");
  REQUIRE(save_bytes(one) != before);
  load(other, (scratch / "model.safetensors").string());
  CHECK(save_bytes(other) == save_bytes(one));
  CHECK_THROWS_WITH(load(wide, scratch / "model.safetensors"),
                    containing("model.safetensors: tensor weight"));
  save(wide, scratch / "model.safetensors");
  load(wide, scratch / "model.safetensors");
  CHECK(fault_of([&] { load(one, scratch / "nowhere"); }) == Fault::file);
  CHECK(fault_of([&] { save(one, scratch / "no" / "folder"); }) == Fault::file);
}

}  // namespace heed
