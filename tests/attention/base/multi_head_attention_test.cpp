// Tests attention/base/multi_head_attention.h: projections and the key-value cache.
#include "heed/attention/base/multi_head_attention.h"

#include <cmath>

#include "heed/attention/variant.h"
#include "heed/autograd/node.h"
#include "heed/autograd/tape.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

std::unique_ptr<Attention> made(const AttentionConfig& config, uint64_t seed = 1) {
  Rng rng(seed);
  return make_attention("softmax", config, rng);
}

MultiHeadAttention& multi_head(Attention& attention) { return dynamic_cast<MultiHeadAttention&>(attention); }

double deviation(const Tensor& x) {
  double squares = 0;
  for (const double value : x.to_doubles()) squares += value * value;
  return std::sqrt(squares / static_cast<double>(x.size()));
}

Tensor random(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape);
  fill_normal(x, 0, 1, rng);
  return x;
}

}  // namespace

TEST_CASE("layer: biases where the host wants them") {
  const auto bare = made({.d_model = 6, .heads = 3});
  CHECK(count_parameters(*bare) == 4 * 36);
  const auto input =
      made({.d_model = 6, .heads = 3, .query_bias = true, .key_bias = true, .value_bias = true});
  CHECK(count_parameters(*input) == 4 * 36 + 3 * 6);
  CHECK_FALSE(multi_head(*input).output.bias);
  const auto some = made({.d_model = 6, .heads = 3, .query_bias = true, .output_bias = true});
  CHECK(count_parameters(*some) == 4 * 36 + 2 * 6);
  CHECK(multi_head(*some).query.bias);
  CHECK_FALSE(multi_head(*some).key.bias);
  CHECK_FALSE(multi_head(*some).value.bias);
  CHECK(multi_head(*some).output.bias);
}

TEST_CASE("layer: initial weights as the host wants them") {
  const auto attention = made({.d_model = 128, .heads = 4, .init = Init::normal, .output_gain = 0.25});
  CHECK(deviation(multi_head(*attention).query.weight) == Approx(0.02).epsilon(0.03));
  CHECK(deviation(multi_head(*attention).output.weight) == Approx(0.005).epsilon(0.03));
  const auto xavier = made({.d_model = 128, .heads = 4});
  CHECK(deviation(multi_head(*xavier).value.weight) == Approx(std::sqrt(2.0 / 256)).epsilon(0.03));
}

TEST_CASE("layer: projections in one product are those of each") {
  for (const AttentionConfig& config :
       {AttentionConfig{.d_model = 8, .heads = 4}, AttentionConfig{.d_model = 8, .heads = 4, .kv_heads = 2},
        AttentionConfig{.d_model = 8, .heads = 2, .query_bias = true, .key_bias = true, .value_bias = true},
        AttentionConfig{.d_model = 8, .heads = 2, .query_bias = true},
        AttentionConfig{.d_model = 8, .heads = 2, .cross = true}}) {
    const auto attention = made(config);
    MultiHeadAttention& layer = multi_head(*attention);
    const Tensor x = leaf(random(Shape{2, 5, 8}, 2)), memory = leaf(random(Shape{2, 7, 8}, 3));
    const Tensor& keys = config.cross ? memory : x;
    const AttentionInput input{.queries = x, .keys = keys};
    const auto run = [&](const auto& forward) {
      for (const Named& one : parameters(layer)) one.tensor->node()->grad = Tensor();
      x.node()->grad = memory.node()->grad = Tensor();
      const Tensor y = forward();
      backward(sum(square(y)));
      std::vector<std::vector<double>> out{y.to_doubles(), grad_of(x).to_doubles()};
      for (const Named& one : parameters(layer)) out.push_back(grad_of(*one.tensor).to_doubles());
      return out;
    };
    const auto found = run([&] { return layer.forward(input); });
    const auto expected = run([&] {
      const auto heads = [&](const Tensor& y) {
        return transpose(reshape(y, Shape{2, y.extent(1), -1, 8 / config.heads}), 1, 2);
      };
      const Tensor y =
          layer.on_heads({heads(layer.query(x)), heads(layer.key(keys)), heads(layer.value(keys))}, input);
      return layer.output(reshape(transpose(y, 1, 2), Shape{2, 5, 8}));
    });
    for (size_t i = 0; i < expected.size(); ++i) {
      for (size_t j = 0; j < expected[i].size(); ++j)
        CHECK(found[i][j] == Approx(expected[i][j]).epsilon(1e-5).margin(1e-6));
    }
  }
}

TEST_CASE("layer: a memory grows in place without a tape, and keeps history with one") {
  const auto attention = made({.d_model = 4, .heads = 2, .causal = true});
  const Tensor x = random(Shape{1, 40, 4}, 2);
  {
    const NoGrad quiet;
    const auto cache = attention->new_cache();
    auto& kept = dynamic_cast<KeyValueCache&>(*cache);
    const void* place = nullptr;
    int moves = 0;
    for (int64_t t = 0; t < 40; ++t) {
      const Tensor row = view::slice(x, 1, t, t + 1);
      attention->forward({.queries = row, .keys = row, .mask = Mask::causal(), .cache = cache.get()});
      if (kept.keys.raw() != place) ++moves;
      place = kept.keys.raw();
    }
    CHECK(moves == 3);  // room for 16, 32, 64
    CHECK(kept.length == 40);
    CHECK(kept.queries == 40);
    const Tensor all = transpose(reshape(multi_head(*attention).key(x), Shape{1, 40, 2, 2}), 1, 2);
    const auto found = view::slice(kept.keys, 2, 0, 40).to_host(), expected = all.to_host();
    for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-6));
  }
  const auto cache = attention->new_cache();
  const Tensor row = view::slice(x, 1, 0, 1);
  attention->forward({.queries = row, .keys = row, .mask = Mask::causal(), .cache = cache.get()});
  CHECK(dynamic_cast<KeyValueCache&>(*cache).keys.node());
}

TEST_CASE("layer: what was recorded before a memory grows stays as it was") {
  // Frozen keys, a query that is trained: rows are written in place while the tape still holds earlier ones.
  const auto attention = made({.d_model = 4, .heads = 2, .causal = true});
  for (Linear* frozen : {&multi_head(*attention).key, &multi_head(*attention).value})
    frozen->weight = frozen->weight.detach();
  const Tensor x = random(Shape{1, 6, 4}, 3);
  const auto gradient = [&](bool by_steps) {
    multi_head(*attention).query.weight.node()->grad = Tensor();
    Tensor total;
    if (by_steps) {
      const auto cache = attention->new_cache();
      for (int64_t t = 0; t < 6; ++t) {
        const Tensor row = view::slice(x, 1, t, t + 1);
        const Tensor y = sum(square(
            attention->forward({.queries = row, .keys = row, .mask = Mask::causal(), .cache = cache.get()})));
        total = total ? total + y : y;
      }
    } else {
      total = sum(square(attention->forward({.queries = x, .keys = x, .mask = Mask::causal()})));
    }
    backward(total);
    return grad_of(multi_head(*attention).query.weight).to_host();
  };
  const auto whole = gradient(false), stepped = gradient(true);
  for (size_t i = 0; i < whole.size(); ++i) CHECK(stepped[i] == Approx(whole[i]).margin(1e-5));
}

TEST_CASE("layer: dropout is on weights that sum to one, and leaves the mean") {
  for (const char* spec : {"softmax", "additive"}) {
    CAPTURE(spec);
    Rng rng(1), noise(2);
    const auto attention = make_attention(spec, {.d_model = 2, .cross = true, .dropout = 0.25}, rng);
    multi_head(*attention).output.weight = Tensor::from(std::vector<float>{1, 0, 0, 1}, Shape{2, 2});
    // All values are the same vector: a row gives it times the sum of its weights, kept ones scaled by 4 / 3.
    const Tensor keys = Tensor::full(Shape{1, 4, 2}, 1), queries = random(Shape{1, 500, 2}, 3);
    const float value = multi_head(*attention).value(keys).to_host()[0];
    const auto y =
        attention->forward({.queries = queries, .keys = keys, .context = {.rng = &noise}}).to_host();
    double mean = 0;
    for (size_t i = 0; i < 1000; i += 2) {
      const double sum = y[i] / value;
      mean += sum / 500;
      CHECK(sum * 3 == Approx(std::round(sum * 3)).margin(1e-4));  // keys are alike, so are their weights
    }
    CHECK(mean == Approx(1).epsilon(0.05));
    CHECK(mean != Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("layer: heads that do not fit are refused") {
  CHECK_THROWS_WITH(made({.d_model = 10, .heads = 4}), containing("4 heads do not divide the width 10"));
  CHECK_THROWS_WITH(made({.d_model = 10, .heads = 0}), containing("0 heads"));
  const auto attention = made({.d_model = 4, .heads = 2});
  const Tensor wide = random(Shape{1, 2, 5}, 1);
  CHECK_THROWS_WITH(attention->forward({.queries = wide, .keys = wide}), containing("[1, 2, 5]"));
  const Tensor x = random(Shape{2, 2, 4}, 1), other = random(Shape{3, 2, 4}, 1);
  CHECK_THROWS_AS(attention->forward({.queries = x, .keys = other}), Error);
}

}  // namespace heed
