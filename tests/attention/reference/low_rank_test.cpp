// Linformer, Nystromformer and Skyformer against their formulas, and where they equal what they approximate.
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/nn/transformer.h"
#include "heed/tests/attention/reference/against.h"
#include "heed/tests/attention/reference/low_rank.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::Example;
using reference::head_of;
using reference::Matrix;
using reference::Values;

Tensor random(const Shape& shape, uint64_t seed, double deviation = 1) {
  Rng rng(seed);
  const Tensor x(shape, DType::f64);
  fill_normal(x, 0, deviation, rng);
  return x;
}

double distance(const Tensor& a, const Tensor& b) {
  const auto x = a.to_doubles(), y = b.to_doubles();
  double worst = x.size() == y.size() ? 0 : HUGE_VAL;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

/// An attention in double with parameters replaced.
std::unique_ptr<Attention> made(const std::string& spec, const AttentionConfig& config,
                                const std::map<std::string, Tensor>& put = {}) {
  Rng rng(5);
  auto attention = make_attention(spec, config, rng);
  convert(*attention, DType::f64);
  visit_tensors(*attention, [&](const std::string& name, Tensor& tensor) {
    if (put.contains(name)) tensor = put.at(name);
  });
  return attention;
}

Tensor on_heads(Attention& attention, const Tensor& q, const Tensor& k, const Tensor& v,
                const Mask& mask = {}) {
  return dynamic_cast<MultiHeadAttention&>(attention).on_heads({q, k, v}, {.mask = mask});
}

Tensor identity(int64_t size) {
  std::vector<double> values(static_cast<size_t>(size * size));
  for (int64_t i = 0; i < size; ++i) values[static_cast<size_t>(i * size + i)] = 1;
  return Tensor::of<double>(values, Shape{1, size, size});
}

}  // namespace

TEST_CASE("reference: linformer, by what is shared", "[linformer]") {
  for (const std::string sharing : {"none", "headwise", "key_value", "layerwise"}) {
    for (const Example& e : reference::usual_examples(false, true)) {
      const int64_t length = std::max(e.N, e.M), slots = std::min<int64_t>(4, length);
      const auto formula = [&](const Example& x, const Values& values, int64_t b, int64_t h) {
        const int64_t head = sharing == "none" ? h : 0;
        const Matrix mix = head_of(values.at("E"), head, slots, length);
        const bool one = sharing == "key_value" || sharing == "layerwise";
        const Matrix other = one ? mix : head_of(values.at("F"), head, slots, length);
        return reference::linformer(head_of(values.at("q"), b * x.H + h, x.N, x.d),
                                    head_of(values.at("k"), b * x.H + h, x.M, x.d), mix, other, x.keys_of(b));
      };
      std::vector<std::string> trained{"E"};
      if (sharing == "none" || sharing == "headwise") trained.push_back("F");
      reference::against("linformer:k=4,sharing=" + sharing, e, formula, trained);
    }
  }
}

TEST_CASE("reference: linformer with as many slots as positions and identities is softmax", "[linformer]") {
  const AttentionConfig config{.d_model = 6, .heads = 2, .max_length = 9};
  const auto linformer = made("linformer:k=9", config, {{"E", identity(9)}, {"F", identity(9)}});
  const auto softmax = made("softmax", config);
  const Tensor q = random(Shape{2, 2, 9, 3}, 1), k = random(Shape{2, 2, 9, 3}, 2),
               v = random(Shape{2, 2, 9, 4}, 3);
  CHECK(distance(on_heads(*linformer, q, k, v), on_heads(*softmax, q, k, v)) < 1e-14);
}

TEST_CASE("reference: linformer follows positions only through the columns of E and F", "[linformer]") {
  const AttentionConfig config{.d_model = 3, .max_length = 4};
  const Tensor e = random(Shape{1, 2, 4}, 4), f = random(Shape{1, 2, 4}, 5);
  const auto reversed = [](const Tensor& x, int64_t axis) {
    std::vector<Tensor> parts;
    for (int64_t i = x.extent(axis); i-- > 0;) parts.push_back(slice(x, axis, i, i + 1));
    return concat(parts, axis);
  };
  const auto one = made("linformer:k=2", config, {{"E", e}, {"F", f}});
  const auto other = made("linformer:k=2", config, {{"E", reversed(e, 2)}, {"F", reversed(f, 2)}});
  const Tensor q = random(Shape{1, 1, 3, 3}, 1), k = random(Shape{1, 1, 4, 3}, 2),
               v = random(Shape{1, 1, 4, 3}, 3);
  const Tensor y = on_heads(*one, q, k, v);
  CHECK(distance(on_heads(*other, q, reversed(k, 2), reversed(v, 2)), y) < 1e-14);
  CHECK(distance(on_heads(*one, q, reversed(k, 2), reversed(v, 2)), y) > 1e-3);
}

TEST_CASE("linformer: one matrix serves all layers of a stack, and no other stack", "[linformer]") {
  TransformerConfig config;
  config.d_model = 8;
  config.heads = 2;
  config.layers = 3;
  config.max_length = 9;
  const AttentionFactory factory = attention_factory("linformer:k=3,sharing=layerwise");
  Rng rng(1), again(2);
  TransformerStack stack(config, {}, factory, {}, rng), other(config, {}, factory, {}, again);
  convert(stack, DType::f64);
  std::vector<Tensor> places;
  visit_tensors(stack, [&](const std::string& name, Tensor& tensor) {
    if (name.ends_with(".E")) places.push_back(tensor);
    CHECK(!name.ends_with(".F"));
  });
  REQUIRE(places.size() == 3);
  CHECK(places[0].node() == places[1].node());
  CHECK(places[0].node() == places[2].node());
  const auto named = [](TransformerStack& one) {
    std::vector<Named> out = parameters(one);
    std::erase_if(out, [](const Named& each) { return !each.name.ends_with(".E"); });
    return out;
  };
  REQUIRE(named(stack).size() == 1);
  CHECK(named(other)[0].tensor->to_doubles() != places[0].to_doubles());
  // Its gradient is that of all three.
  const Tensor x = random(Shape{2, 9, 8}, 3);
  const auto run = [&] { return sum(square(stack(x, {}, {}, {}, nullptr, {}))); };
  backward(run());
  const std::vector<double> slope = grad_of(places[0]).to_doubles(), at = places[0].to_doubles();
  for (const size_t n : {size_t{0}, size_t{13}, size_t{26}}) {
    const auto moved = [&](double by) {
      places[0].data<double>()[n] = at[n] + by;
      const NoGrad quiet;
      const double y = run().to_doubles()[0];
      places[0].data<double>()[n] = at[n];
      return y;
    };
    CHECK(slope[n] == Approx((moved(1e-5) - moved(-1e-5)) / 2e-5).epsilon(1e-6).margin(1e-7));
  }
  const std::string bytes = save_bytes(other);
  convert(other, DType::f32);
  load_bytes(other, bytes);
  CHECK(named(other).size() == 1);
}

TEST_CASE("linformer: inputs longer than its matrices, and hosts that do not know, are refused",
          "[linformer]") {
  const auto short_one = made("linformer", {.d_model = 4, .max_length = 5});
  const Tensor x = random(Shape{1, 1, 6, 4}, 1);
  CHECK_THROWS_WITH(on_heads(*short_one, x, x, x), containing("6 keys") && containing("length=6"));
  CHECK_THROWS_WITH(made("linformer", {.d_model = 4}), containing("length=N"));
  CHECK_THROWS_WITH(made("linformer:k=0", {.d_model = 4, .max_length = 5}), containing("k = 0"));
  CHECK_THROWS_WITH(made("linformer:length=-3", {.d_model = 4, .max_length = 5}), containing("-3"));
}

TEST_CASE("linformer: slots are kept for later queries, and take all keys at once", "[linformer]") {
  const auto one = made("linformer:k=3", {.d_model = 4, .cross = true, .max_length = 50});
  const Tensor source = random(Shape{1, 50, 4}, 1), x = random(Shape{1, 1, 4}, 2);
  const auto cache = one->new_cache();
  const Tensor first = one->forward({.queries = x, .keys = source, .cache = cache.get()});
  CHECK(distance(one->forward({.queries = x, .cache = cache.get()}), first) == 0);
  CHECK_THROWS_WITH(one->forward({.queries = x, .keys = source, .cache = cache.get()}),
                    containing("50 keys were given before"));
  int64_t numbers = 0;
  struct Sizes final : Fields {
    explicit Sizes(int64_t& total) : total_(total) {}
    void on(const char*, Tensor& tensor) override { total_ += tensor.size(); }
    int64_t& total_;
  } sizes(numbers);
  cache->fields(sizes);
  CHECK(numbers == 2 * 3 * 4);
}

TEST_CASE("reference: nystromformer, landmarks that do not divide the length too", "[nystromformer]") {
  for (const int64_t kernel : {0, 3}) {
    for (const Example& e : reference::usual_examples(false, kernel == 0)) {
      const auto formula = [&](const Example& x, const Values& values, int64_t b, int64_t h) {
        return reference::nystromformer(
            head_of(values.at("q"), b * x.H + h, x.N, x.d), head_of(values.at("k"), b * x.H + h, x.M, x.d), 5,
            6, x.cross ? x.N : x.keys_of(b), x.keys_of(b),
            kernel > 0 ? head_of(values.at("conv"), h, 1, 3).values : std::vector<double>());
      };
      reference::against("nystromformer:landmarks=5,kernel=" + std::to_string(kernel), e, formula,
                         kernel > 0 ? std::vector<std::string>{"conv"} : std::vector<std::string>());
    }
  }
}

TEST_CASE("reference: nystromformer, segments at fixed places, padding as zeros", "[nystromformer]") {
  for (const int64_t segment : {4, 5}) {  // 20 and 25 places for at most 17 positions
    for (const Example& e : reference::usual_examples(false, true)) {
      const auto formula = [&](const Example& x, const Values& values, int64_t b, int64_t h) {
        return reference::nystromformer(head_of(values.at("q"), b * x.H + h, x.N, x.d),
                                        head_of(values.at("k"), b * x.H + h, x.M, x.d), 5, 6,
                                        x.cross ? x.N : x.keys_of(b), x.keys_of(b), {}, 0, segment);
      };
      reference::against("nystromformer:landmarks=5,segment=" + std::to_string(segment), e, formula);
    }
  }
}

TEST_CASE("nystromformer: more positions than fixed segments hold are refused", "[nystromformer]") {
  const auto nystrom = made("nystromformer:landmarks=3,segment=2", {.d_model = 4});
  const Tensor x = random(Shape{1, 1, 7, 4}, 1);
  CHECK_THROWS_WITH(on_heads(*nystrom, x, x, x), containing("7 positions") &&
                                                     containing("3 landmarks of 2") &&
                                                     containing("landmarks x segment"));
}

TEST_CASE("nystromformer: the convolution starts as PyTorch's do", "[nystromformer]") {
  const auto nystrom = made("nystromformer:kernel=35", {.d_model = 64, .heads = 64});
  int64_t numbers = 0;
  visit_tensors(*nystrom, [&](const std::string& name, Tensor& tensor) {
    if (name.find("conv") == std::string::npos) return;
    const double bound = 1 / std::sqrt(35.0);  // uniform, so its variance is bound^2 / 3
    double largest = 0, square = 0;
    for (const double value : tensor.to_doubles()) {
      largest = std::max(largest, std::abs(value));
      square += value * value;
    }
    numbers += tensor.size();
    CHECK(largest <= bound);
    CHECK(square / static_cast<double>(tensor.size()) == Approx(bound * bound / 3).epsilon(0.1));
  });
  CHECK(numbers == 64 * 35);
}

TEST_CASE("reference: nystromformer's convolution over several chunks of positions", "[nystromformer]") {
  const int64_t width = GENERATE(1, 3, 35);
  const Example e{.B = 2, .H = 2, .N = 70, .M = 70, .d = 1, .dv = 1, .lengths = {66, 70}};
  const auto formula = [&](const Example& x, const Values& values, int64_t b, int64_t h) {
    return reference::nystromformer(head_of(values.at("q"), b * x.H + h, x.N, x.d),
                                    head_of(values.at("k"), b * x.H + h, x.M, x.d), 5, 6, x.keys_of(b),
                                    x.keys_of(b), head_of(values.at("conv"), h, 1, width).values);
  };
  reference::against("nystromformer:landmarks=5,kernel=" + std::to_string(width), e, formula, {"conv"});
}

TEST_CASE("reference: nystromformer's original start is by all heads and sequences", "[nystromformer]") {
  for (const Example& e : reference::usual_examples(false, true)) {
    const auto formula = [&](const Example& x, const Values& values, int64_t b, int64_t h) {
      const auto q = [&](int64_t n) { return head_of(values.at("q"), n, x.N, x.d); };
      const auto k = [&](int64_t n) { return head_of(values.at("k"), n, x.M, x.d); };
      const auto queries = [&](int64_t of) { return x.cross ? x.N : x.keys_of(of); };
      double largest = 0;
      for (int64_t n = 0; n < x.B * x.H; ++n) {
        const int64_t of = n / x.H;
        if (x.keys_of(of) == 0) continue;
        const auto corner = reference::nystrom_corner(q(n), k(n), 5, queries(of), x.keys_of(of));
        largest = std::max(largest, reference::largest_column_sum(corner));
      }
      const int64_t n = b * x.H + h;
      return reference::nystromformer(q(n), k(n), 5, 4, queries(b), x.keys_of(b), {}, largest);
    };
    reference::against("nystromformer:landmarks=5,iterations=4,init=original", e, formula);
  }
}

TEST_CASE("nystromformer: only its original start looks at the rest of the batch", "[nystromformer]") {
  const AttentionConfig config{.d_model = 6, .heads = 2};
  const Tensor q = random(Shape{2, 2, 8, 3}, 1, 2), v = random(Shape{2, 2, 8, 4}, 3);
  const auto off = [&](const std::string& init) {
    const auto nystrom = made("nystromformer:landmarks=4,iterations=2,init=" + init, config);
    const Tensor both = on_heads(*nystrom, q, q, v);
    double maximum = 0;
    for (const int64_t b : {0, 1}) {
      const auto alone = [b](const Tensor& x) { return slice(x, 0, b, b + 1); };
      maximum = std::max(maximum, distance(alone(both), on_heads(*nystrom, alone(q), alone(q), alone(v))));
    }
    return maximum;
  };
  CHECK(off("exact") < 1e-12);
  CHECK(off("original") > 1e-6);
}

TEST_CASE("reference: nystromformer with as many landmarks as positions is softmax", "[nystromformer]") {
  const AttentionConfig config{.d_model = 6, .heads = 2};
  const Tensor q = random(Shape{2, 2, 8, 3}, 1, 2), v = random(Shape{2, 2, 8, 4}, 3);
  const auto softmax = made("softmax", config);
  const auto distance_after = [&](const std::string& iterations) {
    const auto nystrom = made("nystromformer:landmarks=8,iterations=" + iterations, config);
    return distance(on_heads(*nystrom, q, q, v), on_heads(*softmax, q, q, v));
  };
  CHECK(distance_after("30") < 1e-8);
  CHECK(distance_after("1") > 1e-3);
  const Tensor lengths = Tensor::of<int32_t>(std::vector<int32_t>{8, 3}, Shape{2});
  const auto nystrom = made("nystromformer:landmarks=8,iterations=30", config);
  const Tensor padded = on_heads(*nystrom, q, q, v, Mask::lengths(lengths)),
               wanted = on_heads(*softmax, q, q, v, Mask::lengths(lengths));
  for (const int64_t b : {0, 1}) {
    const int64_t real = b == 0 ? 8 : 3;
    const auto part = [&](const Tensor& x) { return slice(slice(x, 0, b, b + 1), 2, 0, real); };
    CHECK(distance(part(padded), part(wanted)) < 1e-8);
  }
}

TEST_CASE("nystromformer: options that make no sense are refused", "[nystromformer]") {
  CHECK_THROWS_WITH(made("nystromformer:landmarks=0", {.d_model = 4}), containing("landmarks = 0"));
  CHECK_THROWS_WITH(made("nystromformer:kernel=4", {.d_model = 4}), containing("odd"));
  CHECK_THROWS_WITH(made("nystromformer:segment=-1", {.d_model = 4}), containing("segment = -1"));
  CHECK_THROWS_WITH(made("nystromformer:kernel=3", {.d_model = 4, .cross = true}), containing("kernel"));
  CHECK_THROWS_WITH(made("nystromformer:init=first", {.d_model = 4}),
                    containing("init = 'first'") && containing("exact, original"));
  CHECK_THROWS_WITH(made("nystromformer:iterations=-1", {.d_model = 4}), containing("iterations = -1"));
}

TEST_CASE("reference: skyformer, more and fewer samples than tokens", "[skyformer]") {
  for (const bool original : {false, true}) {
    for (const char* features : {"6", "7", "40"}) {
      for (const Example& e : reference::usual_examples(false, true)) {
        const auto formula = [&](const Example& x, const Values& values, int64_t b, int64_t h) {
          const auto q = [&](int64_t n) { return head_of(values.at("q"), n, x.N, x.d); };
          const auto k = [&](int64_t n) { return head_of(values.at("k"), n, x.M, x.d); };
          const auto corner = [&](int64_t n) {
            const int64_t keys = x.keys_of(n / x.H);
            return reference::skyformer_corner(q(n), k(n), values.at("samples"), 0.1, x.cross ? x.N : keys,
                                               keys);
          };
          double largest = 0;
          for (int64_t n = 0; original && n < x.B * x.H; ++n)
            largest = std::max(largest, reference::largest_column_sum(corner(n).scaled));
          const int64_t n = b * x.H + h;
          return reference::skyformer(q(n), k(n), corner(n), 6, x.keys_of(b), largest);
        };
        reference::against(
            std::string("skyformer:init=") + (original ? "original" : "exact") + ",features=" + features, e,
            formula, {}, {"samples"});
      }
    }
  }
}

TEST_CASE("skyformer: with every token among the samples it is kernelized attention", "[skyformer]") {
  const AttentionConfig config{.d_model = 6, .heads = 2};
  const Tensor q = random(Shape{2, 2, 8, 3}, 1, 2), k = random(Shape{2, 2, 8, 3}, 2, 2),
               v = random(Shape{2, 2, 8, 4}, 3);
  std::vector<double> places;
  for (int64_t i = 0; i < 16; ++i) places.push_back((static_cast<double>(i % 8) + 0.5) / 8);
  const std::map<std::string, Tensor> all{{"samples", Tensor::of<double>(places, Shape{16})}};
  const Tensor wanted = on_heads(*made("kernelized", config), q, k, v);
  const auto off = [&](const std::string& spec) {
    return distance(on_heads(*made("skyformer:features=16," + spec, config, all), q, k, v), wanted);
  };
  CHECK(off("gamma=0,iterations=60") < 1e-6);
  CHECK(off("gamma=0,iterations=1") > 1e-3);
  CHECK(off("gamma=0.1,iterations=60") > 1e-4);
}

TEST_CASE("skyformer: samples stay, or are drawn anew by each training step", "[skyformer]") {
  const AttentionConfig config{.d_model = 6, .heads = 2};
  const Tensor x = random(Shape{2, 30, 6}, 1);
  for (const bool redraw : {false, true}) {
    const auto sky = made(text("skyformer:features=8,redraw=", redraw ? "true" : "false"), config);
    Rng rng(3);
    const auto step = [&] {
      rng.advance();
      return sky->forward({.queries = x, .keys = x, .context = {.rng = &rng}});
    };
    const Tensor still = sky->forward({.queries = x, .keys = x}), first = step(), second = step();
    CHECK((distance(first, second) > 1e-6) == redraw);
    CHECK((distance(first, still) > 1e-6) == redraw);
    CHECK(distance(sky->forward({.queries = x, .keys = x}), still) == 0);
  }
}

TEST_CASE("skyformer: options that make no sense are refused", "[skyformer]") {
  CHECK_THROWS_WITH(made("skyformer:features=1", {.d_model = 4}), containing("features = 1"));
  CHECK_THROWS_WITH(made("skyformer:gamma=-0.1", {.d_model = 4}), containing("gamma = -0.1"));
  CHECK_THROWS_WITH(made("skyformer:scale=-1", {.d_model = 4}), containing("scale = -1"));
  CHECK_THROWS_WITH(made("skyformer:init=first", {.d_model = 4}), containing("exact, original"));
  CHECK_THROWS_WITH(made("skyformer", {.d_model = 4, .causal = true}), containing("cannot look back only"));
}

}  // namespace heed
