// tests nn/block.h, nn/attention.h
#include "heed/nn/block.h"

#include "heed/autograd/node.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/plain_attention.h"

namespace heed {
namespace {

Tensor random(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape);
  fill_normal(x, 0, 1, rng);
  return x;
}

Block block_of(BlockOptions options, bool crossing, Rng& rng) {
  options.width = 6;
  options.feed_forward = 10;
  return Block(options, plain_attention({.d_model = 6, .heads = 2}, rng),
               crossing ? plain_attention({.d_model = 6, .heads = 2, .cross = true}, rng) : nullptr, rng);
}

void check_close(const Tensor& found, const Tensor& expected) {
  REQUIRE(found.shape() == expected.shape());
  const auto a = found.to_host(), b = expected.to_host();
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(1e-5));
}

/// An attention that cannot go step by step.
struct AllAtOnce final : Attention {
  Tensor forward(const AttentionInput& input) override { return input.queries; }
  void fields(Fields&) override {}
};

}  // namespace

TEST_CASE("block: without a feed-forward network attention is the only branch, with the draws of before") {
  const DefaultDevice device(any_device());
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    Rng rng(3), again(3);
    const auto attention = [](Rng& draws) { return plain_attention({.d_model = 6, .heads = 2}, draws); };
    Block block({.width = 6, .feed_forward = 0, .norm_place = place}, attention(rng), nullptr, rng);
    CHECK(block.feed_forward == nullptr);
    CHECK(block.forward_norm == nullptr);
    CHECK(count_parameters(block) == 4 * 36 + 12);
    const Tensor x = random(Shape{2, 4, 6}, 1);
    const auto attended = [&](const Tensor& h) {
      return block.attention->forward({.queries = h, .keys = h, .mask = Mask::causal()});
    };
    const LayerNorm& norm = block.attention_norm;
    check_close(block(x, Mask::causal(), {}, {}, nullptr, {}),
                place == NormPlace::pre ? x + attended(norm(x)) : norm(x + attended(x)));
    attention(again);
    CHECK(rng.next().stream == again.next().stream);  // it has drawn nothing else
  }
}

TEST_CASE("block: the norm before each part, or after each sum") {
  const DefaultDevice device(any_device());
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    for (const bool crossing : {false, true}) {
      Rng rng(3);
      Block block = block_of({.norm_place = place}, crossing, rng);
      const Tensor x = random(Shape{2, 4, 6}, 1), encoded = random(Shape{2, 3, 6}, 2);
      const auto around = [&](const Tensor& input, const LayerNorm& norm, const auto& part) {
        return place == NormPlace::pre ? input + part(norm(input)) : norm(input + part(input));
      };
      Tensor y = around(x, block.attention_norm, [&](const Tensor& h) {
        return block.attention->forward({.queries = h, .keys = h, .mask = Mask::causal()});
      });
      if (crossing)
        y = around(y, *block.cross_norm,
                   [&](const Tensor& h) { return block.cross->forward({.queries = h, .keys = encoded}); });
      y = around(y, *block.forward_norm, [&](const Tensor& h) { return (*block.feed_forward)(h, nullptr); });
      check_close(block(x, Mask::causal(), encoded, Mask::none(), nullptr, {}), y);
      const int64_t attention = 4 * 36, network = 6 * 10 + 10 + 60 + 6, norms = crossing ? 36 : 24;
      CHECK(count_parameters(block) == attention * (crossing ? 2 : 1) + network + norms);
      CHECK(name_of(block, block.attention.get()) == "attention");
      CHECK(name_of(block, block.cross_norm.get()) == (crossing ? "cross_norm" : ""));
    }
  }
}

TEST_CASE("block: dropout only with noise, and the same for the same seed") {
  const DefaultDevice device(any_device());
  Rng rng(3);
  Block block = block_of({.dropout = 0.5}, false, rng);
  const Tensor x = random(Shape{2, 4, 6}, 1);
  const auto run = [&](Rng* noise) {
    return block(x, Mask::none(), {}, {}, nullptr, {.rng = noise}).to_host();
  };
  Rng one(7), two(7), three(8);
  const auto dropped = run(&one);
  CHECK(dropped == run(&two));
  CHECK(dropped != run(&three));
  CHECK(dropped != run(nullptr));
  CHECK(run(nullptr) == run(nullptr));
}

TEST_CASE("block: a stream through two blocks has the bits of dropout, sum and norm as three ops") {
  const DefaultDevice device(any_device());
  const NormPlace place = GENERATE(NormPlace::pre, NormPlace::post);
  const bool noisy = GENERATE(false, true);
  const auto activation =
      GENERATE(Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu);
  Rng rng(3);
  const BlockOptions options{
      .dropout = 0.3, .norm_place = place, .forward = {.activation = activation, .dropout = 0.2}};
  Block first = block_of(options, false, rng), second = block_of(options, false, rng);
  LayerNorm last(6, {});
  const Tensor numbers = random(Shape{2, 4, 6}, 1);
  const std::vector<Tensor*> weights{&first.forward_norm->gain, &second.attention_norm.bias,
                                     &second.feed_forward->up.weight, &first.feed_forward->down.bias};
  std::vector<std::vector<float>> found[2];
  for (const bool parts : {false, true}) {
    for (Tensor* w : weights) *w = leaf(*w);
    Rng noise(7);
    Rng* from = noisy ? &noise : nullptr;
    const ForwardContext context{.rng = from};
    const Tensor x = leaf(numbers);
    Tensor sum, y;
    if (parts) {
      const auto around = [&](const Tensor& input, const LayerNorm& norm, const auto& part) {
        return place == NormPlace::pre ? input + dropout(part(norm(input)), 0.3, from)
                                       : norm(input + dropout(part(input), 0.3, from));
      };
      sum = x;
      for (Block* block : {&first, &second}) {
        sum = around(sum, block->attention_norm, [&](const Tensor& h) {
          return block->attention->forward(
              {.queries = h, .keys = h, .mask = Mask::causal(), .context = context});
        });
        sum = around(sum, *block->forward_norm, [&](const Tensor& h) {
          const FeedForward& network = *block->feed_forward;
          return network.down(dropout(activate(activation, network.up(h)), 0.2, from));
        });
      }
      y = last(sum);
    } else {
      ResidualStream stream(x, Mask::causal(), context);
      for (const Block* block : {&first, &second})
        block->add_to(stream, Mask::causal(), {}, Mask::none(), nullptr, context);
      y = stream.normalised(last);
      sum = stream.x();
    }
    backward(mean(square(y)) + mean(sum));
    found[parts] = {y.to_host(), sum.to_host(), grad_of(x).to_host()};
    for (const Tensor* w : weights) found[parts].push_back(grad_of(*w).to_host());
  }
  for (size_t i = 0; i < found[0].size(); ++i) {
    if (default_device == Device::cpu) CHECK(found[0][i] == found[1][i]);
    CHECK_THAT(found[0][i], Catch::Matchers::Approx(found[1][i]).epsilon(1e-4).margin(1e-5));
  }
}

TEST_CASE("block: a probe sees self-attention, then cross-attention") {
  const DefaultDevice device(any_device());
  Rng rng(3);
  Block block = block_of({}, true, rng);
  MapRecorder recorder;
  block(random(Shape{2, 4, 6}, 1), Mask::none(), random(Shape{2, 3, 6}, 2), Mask::none(), nullptr,
        {.recorder = &recorder});
  REQUIRE(recorder.maps.size() == 2);
  CHECK(recorder.maps[0].module == block.attention.get());
  CHECK(recorder.maps[0].weights.shape() == Shape{2, 2, 4, 4});
  CHECK(recorder.maps[1].module == block.cross.get());
  CHECK(recorder.maps[1].weights.shape() == Shape{2, 2, 4, 3});
  CHECK_FALSE(recorder.maps[1].weights.node());
}

TEST_CASE("block: an attention without steps is refused when decoding starts") {
  const DefaultDevice device(any_device());
  Rng rng(3);
  const Block block({.width = 6, .feed_forward = 4}, std::make_unique<AllAtOnce>(), nullptr, rng);
  CHECK_THROWS_WITH(block.new_cache(), containing("cannot decode step by step"));
  const Block half({.width = 6, .feed_forward = 4}, plain_attention({.d_model = 6}, rng),
                   std::make_unique<AllAtOnce>(), rng);
  CHECK_THROWS_WITH(half.new_cache(), containing("cannot decode step by step"));
}

TEST_CASE("memory: rows follow the order, repeated, dropped, and with their history") {
  const DefaultDevice device(any_device());
  PlainAttention::Inputs cache;
  const std::vector<int32_t> picks{2, 0, 2, 1};
  const Tensor order = Tensor::of<int32_t>(picks, Shape{4});
  reorder(cache, order);  // nothing is remembered yet
  CHECK_FALSE(cache.seen);
  const Tensor x = leaf(Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{3, 2, 1}));
  cache.seen = x;
  reorder(cache, order);
  CHECK(cache.seen.shape() == Shape{4, 2, 1});
  CHECK(cache.seen.to_host() == std::vector<float>{5, 6, 1, 2, 5, 6, 3, 4});
  backward(sum(cache.seen));
  CHECK(grad_of(x).to_host() == std::vector<float>{1, 1, 1, 1, 2, 2});
  CHECK_THROWS_WITH(reorder(cache, Tensor::from({1, 0})), containing("i32 [B]"));
}

}  // namespace heed
