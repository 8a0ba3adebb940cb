// Scores of recurrent models against their formulas and closed forms.
#include <cmath>

#include "heed/tests/attention/reference/scores.h"

namespace heed::reference {
namespace {

double root(const Head& head) { return std::sqrt(static_cast<double>(head.q.columns)); }

TEST_CASE("reference: dot, general and location", "[scores]") {
  compare_edges("dot", dot_map(1));
  compare_edges("dot:scale=0.3", dot_map(0.3));
  compare_edges("general", general_map);
  for (const Extents& x : edges()) compare_on_heads("location", x, location_map(x.keys + 2));
}

TEST_CASE("reference: additive on heads, and its second name", "[scores]") {
  const auto map = [](int64_t hidden, bool bias, bool project) {
    return [=](const Head& head) {
      const int64_t units = hidden > 0 ? hidden : head.q.columns;
      return softmax_of(head, additive_scores(head, units, bias, project));
    };
  };
  compare_edges("additive", map(0, true, true));
  compare_edges("concat:hidden=7", map(7, true, true));
  compare_edges("additive:bias=false,project_keys=false", map(0, false, false));
}

TEST_CASE("reference: cosine and the addressing of a Turing machine", "[scores]") {
  compare_edges("cosine", cosine_map);
  compare_edges("cosine:gate=true", addressing_map({.gate = true}));
  compare_edges("cosine:shift=1", addressing_map({.shift = 1}));
  compare_edges("cosine:sharpen=true", addressing_map({.sharpen = true}));
  compare_edges("cosine:gate=true,shift=2,sharpen=true",
                addressing_map({.gate = true, .shift = 2, .sharpen = true}));
}

TEST_CASE("reference: local_p in both conventions and with each Gaussian", "[scores]") {
  using Bell = LocalParts::Bell;
  compare_edges("local_p", local_map({}));
  compare_edges("local_p:window=2", local_map({.window = 2, .sigma = 1}));
  compare_edges("local_p:window=3,sigma=0.8,score=general",
                local_map({.window = 3, .sigma = 0.8, .general = true}));
  compare_edges("local_p:window=2,convention=code",
                local_map({.window = 2, .sigma = 1, .last = true, .floor = true}));
  compare_edges("local_p:window=2,span=S-1", local_map({.window = 2, .sigma = 1, .last = true}));
  compare_edges("local_p:window=2,window_center=floor", local_map({.window = 2, .sigma = 1, .floor = true}));
  compare_edges("local_p:window=4,gauss=pre_score",
                local_map({.window = 4, .sigma = 2, .bell = Bell::pre_score}));
  compare_edges("local_p:window=4,gauss=none", local_map({.window = 4, .bell = Bell::none}));
}

TEST_CASE("reference: local_m", "[scores]") {
  const auto beside = [](int64_t window, bool general) {
    return [=](const Head& head) {
      const Matrix scores = general ? general_scores(head) : dots(head.q, head.k, 1);
      return normalised(exponentials(
          scores, [&](int64_t i, int64_t j) { return head.allowed(i, j) && std::abs(j - i) <= window; }));
    };
  };
  compare_edges("local_m", beside(10, false));
  compare_edges("local_m:window=3", beside(3, false));
  compare_edges("local_m:window=2,score=general", beside(2, true));
}

TEST_CASE("reference: kernels", "[scores]") {
  compare_edges("kernel", kernel_map([](const Head& head, int64_t i, int64_t j) {
                  double square = 0;
                  for (int64_t c = 0; c < head.q.columns; ++c)
                    square += std::pow(head.q.at(i, c) - head.k.at(j, c), 2);
                  return std::exp(-square / root(head));
                }));
  compare_edges("tsai:kernel=exp", kernel_map([](const Head& head, int64_t i, int64_t j) {
                  return std::exp(dot(head.q, i, head.k, j) / root(head));
                }));
  compare_edges("kernel:kernel=taylor,degree=4", kernel_map([](const Head& head, int64_t i, int64_t j) {
                  const double s = dot(head.q, i, head.k, j) / root(head);
                  return 1 + s + s * s / 2 + s * s * s / 6 + s * s * s * s / 24;
                }));
  compare_edges("kernel:kernel=poly,degree=3,offset=6",
                kernel_map([](const Head& head, int64_t i, int64_t j) {
                  return std::pow(dot(head.q, i, head.k, j) / root(head) + 6, 3);
                }));
  // Sums of products of both signs come near 0: few keys, and numbers that a hand can check.
  Rng rng(1);
  const auto linear = make_attention("kernel:kernel=linear", {.d_model = 1, .cross = true}, rng);
  MapRecorder recorder;
  const Tensor q = Tensor::from(std::vector<float>{2}, Shape{1, 1, 1, 1});
  const Tensor k = Tensor::from(std::vector<float>{3, -1, 2}, Shape{1, 1, 3, 1});
  dynamic_cast<MultiHeadAttention&>(*linear).on_heads({q, k, k}, {.context = {.recorder = &recorder}});
  const auto map = recorder.maps.at(0).weights.to_host();
  CHECK(map[0] == Approx(0.75));
  CHECK(map[1] == Approx(-0.25));
  CHECK(map[2] == Approx(0.5));
}

TEST_CASE("reference: kernelized", "[scores]") {
  compare_edges("kernelized", [](const Head& head) { return gaussian_map(1 / root(head))(head); });
  compare_edges("kernelized:scale=0.7", gaussian_map(0.7));
  // Two keys at distances 0 and 2 of width 4: exp(0) and exp(-4 / (2 sqrt(4))).
  Rng rng(1);
  const auto made = make_attention("kernelized", {.d_model = 4, .cross = true}, rng);
  MapRecorder recorder;
  const Tensor q = Tensor::full(Shape{1, 1, 1, 4}, 3),
               k = Tensor::from(std::vector<float>{3, 3, 3, 3, 3, 3, 5, 3}, Shape{1, 1, 2, 4});
  dynamic_cast<MultiHeadAttention&>(*made).on_heads({q, k, k}, {.context = {.recorder = &recorder}});
  const auto map = recorder.maps.at(0).weights.to_host();
  CHECK(map[0] == Approx(1));
  CHECK(map[1] == Approx(std::exp(-1.0)));
}

/// Does what compare_edges() does, but for self-attention alone.
void compare_self(const std::string& spec, const MapOf& map_of) {
  for (const Extents& x : edges()) {
    if (x.queries == x.keys) compare_on_heads(spec, x, map_of);
  }
  compare_on_heads(spec, {3, 2, 9, 9, 4, 6, false, true}, map_of);
}

TEST_CASE("reference: synthesizer in each mode, with dot products and without", "[scores][synthesizer]") {
  compare_self("synthesizer", synthesizer_map({.factorized_random = true}));
  compare_self("synthesizer:k=3,dot_product=true",
               synthesizer_map({.factorized_random = true, .dot_product = true, .k = 3}));
  compare_self("synthesizer:mode=random", synthesizer_map({.random = true}));
  compare_self("synthesizer:mode=random,dot_product=true",
               synthesizer_map({.random = true, .dot_product = true}));
  compare_self("synthesizer:mode=dense", synthesizer_map({.dense = true}));
  compare_self("synthesizer:mode=dense,dot_product=true",
               synthesizer_map({.dense = true, .dot_product = true}));
  compare_self("synthesizer:mode=dense+random", synthesizer_map({.random = true, .dense = true}));
  for (const Extents& x : edges()) {
    if (x.queries != x.keys) continue;
    const auto root = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(x.keys + 2))));
    compare_on_heads("synthesizer:mode=factorized_dense", x, synthesizer_map({.columns = root}));
  }
  compare_self("synthesizer:mode=factorized_dense,columns=4", synthesizer_map({.columns = 4}));
}

TEST_CASE("reference: symmetric kernels project queries and keys alike", "[scores]") {
  Rng rng(4);
  const auto made = make_attention("kernel:symmetric=true", {.d_model = 4, .heads = 2}, rng);
  CHECK(count_parameters(*made) == 3 * 16);
  const Tensor x(Shape{1, 5, 4});
  fill_normal(x, 0, 1, rng);
  MapRecorder recorder;
  made->forward({.queries = x, .keys = x, .context = {.recorder = &recorder}});
  const auto map = recorder.maps.at(0).weights.to_host();
  // exp(-0) is the largest value of the kernel: each row peaks at its own key.
  for (size_t row = 0; row < 10; ++row) {
    for (size_t j = 0; j < 5; ++j) CHECK(map[row * 5 + j] <= map[row * 5 + row % 5]);
  }
}

/// The map of one head on given numbers.
std::vector<float> map_on(const std::string& spec, const Tensor& q, const Tensor& k,
                          const std::function<void(Module&)>& set = {}) {
  Rng rng(2);
  const auto made =
      make_attention(spec, {.d_model = q.extent(3), .cross = true, .max_length = k.extent(2)}, rng);
  if (set) set(*made);
  MapRecorder recorder;
  dynamic_cast<MultiHeadAttention&>(*made).on_heads({q, k, k}, {.context = {.recorder = &recorder}});
  return recorder.maps.at(0).weights.to_host();
}

Tensor normal(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape);
  fill_normal(x, 0, 1, rng);
  return x;
}

void set_all(Module& module, const std::string& name, double value) {
  for (const Named& named : tensors(module)) {
    if (named.name == name) *named.tensor = Tensor::full(named.tensor->shape(), value);
  }
}

TEST_CASE("closed form: local_p with p = 2, window 2, equal scores has rows of 0.49674", "[scores]") {
  const Tensor zero = Tensor::zeros(Shape{1, 1, 1, 1});  // sigmoid(0) of 4 places and one more is p = 2
  const auto set = [](Module& module) { set_all(module, "place_units", 1); };
  const auto map = map_on("local_p:window=2,span=S-1", zero, Tensor::zeros(Shape{1, 1, 5, 1}), set);
  const double bells[] = {std::exp(-2), std::exp(-0.5), 1, std::exp(-0.5), std::exp(-2)};
  double sum = 0;
  for (size_t j = 0; j < 5; ++j) {
    CHECK(map[j] == Approx(0.2 * bells[j]).epsilon(1e-5));
    sum += map[j];
  }
  CHECK(sum == Approx(0.49674).margin(1e-5));
}

TEST_CASE("closed form: local_p with a wide window and a flat Gaussian is its score's attention",
          "[scores]") {
  const Tensor q = normal(Shape{1, 1, 9, 4}, 3), k = normal(Shape{1, 1, 13, 4}, 4);
  const auto global = map_on("dot", q, k), local = map_on("local_p:window=20,sigma=1e6", q, k);
  for (size_t i = 0; i < global.size(); ++i) CHECK(local[i] == Approx(global[i]).margin(1e-6));
  const auto narrow = map_on("local_p:window=3", q, k);
  for (size_t row = 0; row < 9; ++row) {
    double sum = 0;
    for (size_t j = 0; j < 13; ++j) sum += narrow[row * 13 + j];
    CHECK(sum <= 1 + 1e-6);
  }
}

TEST_CASE("closed form: local_m with a wide window is its score's attention, and past the keys it is nothing",
          "[scores]") {
  const Tensor q = normal(Shape{1, 1, 9, 4}, 3), k = normal(Shape{1, 1, 5, 4}, 4);
  const auto global = map_on("dot", q, k), local = map_on("local_m:window=9", q, k);
  for (size_t i = 0; i < global.size(); ++i) CHECK(local[i] == Approx(global[i]).margin(1e-6));
  const auto narrow = map_on("local_m:window=2", q, k);
  for (size_t row = 0; row < 9; ++row) {
    double sum = 0;
    for (size_t j = 0; j < 5; ++j) sum += narrow[row * 5 + j];
    CHECK(sum == Approx(row <= 6 ? 1 : 0).margin(1e-6));  // the window of 7 begins at 5, past the last key
  }
}

TEST_CASE("local_m: a decoder keeps no more than its window", "[scores]") {
  const NoGrad quiet;
  Rng rng(1);
  const auto attention = make_attention("local_m:window=10", {.d_model = 4, .heads = 2, .causal = true}, rng);
  const auto cache = attention->new_cache();
  for (uint64_t t = 0; t < 300; ++t) {
    const Tensor x = reshape(normal(Shape{1, 1, 1, 4}, t), Shape{1, 1, 4});
    attention->forward({.queries = x, .keys = x, .mask = Mask::causal(), .cache = cache.get()});
  }
  CHECK(cache->length == 300);
  CHECK(dynamic_cast<KeyValueCache&>(*cache).keys.extent(2) <= 64);
}

TEST_CASE("closed form: cosine does not see sizes, and its sharpness bounds the weights", "[scores]") {
  const Tensor q = normal(Shape{1, 1, 6, 3}, 5), k = normal(Shape{1, 1, 8, 3}, 6);
  const auto map = map_on("cosine:sharpness=2", q, k);
  const auto scaled = map_on("cosine:sharpness=2", q * 7.5, k * 0.01);
  for (size_t i = 0; i < map.size(); ++i) CHECK(scaled[i] == Approx(map[i]).epsilon(1e-4));
  for (size_t row = 0; row < 6; ++row) {
    const auto [low, high] = std::minmax_element(map.begin() + static_cast<std::ptrdiff_t>(row * 8),
                                                 map.begin() + static_cast<std::ptrdiff_t>(row * 8 + 8));
    CHECK(*high / *low <= std::exp(2 * 2.0) * (1 + 1e-5));
  }
  for (const float weight : map_on("cosine:sharpness=1e-7", q, k))
    CHECK(weight == Approx(0.125).epsilon(1e-5));
}

TEST_CASE("closed form: a shift by one place turns the weights, and a closed gate keeps them", "[scores]") {
  const Tensor q = normal(Shape{1, 1, 3, 2}, 7), k = normal(Shape{1, 1, 5, 2}, 8);
  const auto content = map_on("cosine", q, k);
  const auto turned = map_on("cosine:shift=1", q, k, [](Module& module) {
    set_all(module, "shift_weight", 0);
    for (const Named& named : tensors(module)) {
      if (named.name == "shift_bias")
        *named.tensor = Tensor::from(std::vector<float>{-40, -40, 40}, Shape{1, 1, 3});
    }
  });
  for (size_t row = 0; row < 3; ++row) {
    for (size_t j = 0; j < 5; ++j)
      CHECK(turned[row * 5 + (j + 1) % 5] == Approx(content[row * 5 + j]).epsilon(1e-5));
  }
  const auto kept = map_on("cosine:gate=true", q, k, [](Module& module) {
    set_all(module, "gate_weight", 0);
    set_all(module, "gate_bias", -40);
  });
  for (size_t i = 0; i < 15; ++i) CHECK(kept[i] == Approx(content[i % 5]).epsilon(1e-5));
}

TEST_CASE("closed form: location has weights for positions, not for keys, and for a fixed number of them",
          "[scores]") {
  const Tensor q = normal(Shape{1, 1, 4, 3}, 9);
  CHECK(map_on("location:length=6", q, normal(Shape{1, 1, 6, 3}, 10)) ==
        map_on("location:length=6", q, normal(Shape{1, 1, 6, 3}, 11)));
  CHECK_THROWS_WITH(map_on("location:length=6", q, normal(Shape{1, 1, 7, 3}, 10)),
                    containing("7 keys") && containing("6 positions"));
  Rng rng(1);
  CHECK_THROWS_WITH(make_attention("location", {.d_model = 4}, rng), containing("set length"));
}

TEST_CASE("synthesizer: scores look at no key, and there are so many places", "[scores][synthesizer]") {
  const auto map_of = [](const std::string& mode, int64_t length, uint64_t of_q, uint64_t of_k) {
    Rng rng(2);
    const auto made = make_attention("synthesizer:length=6,mode=" + mode, {.d_model = 3}, rng);
    const Tensor q = normal(Shape{1, 1, length, 3}, of_q), k = normal(Shape{1, 1, length, 3}, of_k);
    MapRecorder recorder;
    dynamic_cast<MultiHeadAttention&>(*made).on_heads({q, k, k}, {.context = {.recorder = &recorder}});
    return recorder.maps.at(0).weights.to_host();
  };
  for (const std::string mode :
       {"random", "factorized_random", "dense", "factorized_dense", "dense+random"}) {
    CAPTURE(mode);
    const auto map = map_of(mode, 6, 9, 10);
    CHECK(map == map_of(mode, 6, 9, 11));
    CHECK((map != map_of(mode, 6, 8, 10)) == (mode.find("dense") != std::string::npos));
    CHECK_THROWS_WITH(map_of(mode, 7, 9, 10), containing("7 positions") && containing("scores for 6"));
  }
  Rng rng(1);
  CHECK_THROWS_WITH(make_attention("synthesizer", {.d_model = 4}, rng), containing("set length"));
}

TEST_CASE("synthesizer: random scores that are not trained are no parameters", "[scores][synthesizer]") {
  const AttentionConfig config{.d_model = 8, .heads = 2, .max_length = 10};
  for (const auto& [mode, numbers] :
       {std::pair{"random", 2 * 10 * 10}, {"factorized_random", 2 * 2 * 10 * 32}}) {
    CAPTURE(mode);
    const std::string spec = text("synthesizer:mode=", mode);
    Rng one(3), same(3);
    const auto trained = make_attention(spec, config, one),
               fixed = make_attention(spec + ",trained=false", config, same);
    CHECK(count_parameters(*trained) == 2 * 64 + numbers);  // no projections of queries and keys
    CHECK(count_parameters(*fixed) == 2 * 64);
    const Tensor x(Shape{1, 5, 8});
    fill_normal(x, 0, 1, one);
    CHECK(trained->forward({.queries = x, .keys = x}).to_doubles() ==
          fixed->forward({.queries = x, .keys = x}).to_doubles());
  }
}

TEST_CASE("scores: keys in another order, weights in that order", "[scores]") {
  const Tensor q = normal(Shape{1, 1, 4, 3}, 12), k = normal(Shape{1, 1, 6, 3}, 13);
  std::vector<Tensor> turned;
  for (int64_t j = 5; j >= 0; --j) turned.push_back(slice(k, 2, j, j + 1));
  for (const char* spec : {"dot", "general", "additive", "cosine", "kernel", "kernel:kernel=taylor",
                           "kernelized", "hard:score=general,mode=expect"}) {
    CAPTURE(spec);
    const auto map = map_on(spec, q, k), back = map_on(spec, q, concat(turned, 2));
    for (size_t i = 0; i < map.size(); ++i) CHECK(back[i / 6 * 6 + 5 - i % 6] == Approx(map[i]).margin(1e-6));
  }
  // Not where places matter.
  for (const char* spec : {"local_p:window=2", "location", "cosine:shift=1"}) {
    CAPTURE(spec);
    const auto map = map_on(spec, q, k), back = map_on(spec, q, concat(turned, 2));
    double maximum = 0;
    for (size_t i = 0; i < map.size(); ++i)
      maximum = std::max(maximum, static_cast<double>(std::abs(back[i / 6 * 6 + 5 - i % 6] - map[i])));
    CHECK(maximum > 1e-3);
  }
}

TEST_CASE("scores: products of 80 stay finite", "[scores]") {
  const Tensor q = Tensor::full(Shape{1, 1, 1, 1}, 8),
               k = Tensor::from(std::vector<float>{10, -10, 9}, Shape{1, 1, 3, 1});
  for (const char* spec :
       {"dot", "general", "kernel", "kernel:kernel=exp", "kernelized", "hard:score=dot", "local_p"}) {
    CAPTURE(spec);
    for (const float weight : map_on(spec, q, k)) CHECK(std::isfinite(weight));
  }
}

TEST_CASE("scores: options that make no sense are refused", "[scores]") {
  Rng rng(1);
  const auto refused = [&](const char* spec, const char* why) {
    CHECK_THROWS_WITH(make_attention(spec, {.d_model = 4, .heads = 2, .max_length = 4}, rng),
                      containing(why));
  };
  refused("cosine:sharpness=0", "above 0");
  refused("cosine:shift=-1", "from 0 to");
  refused("local_m:window=-1", "from 0 to");
  refused("local_m:scale=0", "another number");
  refused("local_p:window=-1", "from 0 to");
  refused("local_p:sigma=-1", "above 0");
  refused("local_p:gauss=both", "pre_score");
  refused("kernel:degree=0", "from 1 to 16");
  refused("kernel:kernel=cubic", "taylor");
  refused("kernelized:scale=-1", "above 0");
  refused("synthesizer:mode=sparse", "factorized_dense");
  refused("synthesizer:k=0", "k = 0");
  refused("additive:hidden=-2", "from 0 to");
  refused("additive:hidden=3,project_keys=false", "project_keys=true");
  refused("hard:temperature=0", "above 0");
  refused("hard:soft=2", "from 0 to 1");
  refused("hard:score=cosine", "general");
}

}  // namespace
}  // namespace heed::reference
