// Tests the sparse variants against plain loops over the pairs that their papers allow, and at their limits.
#include "heed/tests/attention/variants/sparse_cases.h"

namespace heed {

using namespace sparse;

TEST_CASE("sparse: window is a band of the map", "[window]") {
  compare("window:left=3,right=2", reference::window(3, 2, 1));
  compare("window:left=40,right=0", reference::window(40, 0, 1));
  compare("window:left=0,right=0", reference::window(0, 0, 1));
  compare("window:left=3,right=3,dilation=4", reference::window(3, 3, 4));
  compare("window:left=5,right=1,dilation=7", reference::window(5, 1, 7));
  compare("window:left=3,right=2,first=4",
          reference::either(reference::window(3, 2, 1), reference::first_keys(4)));
  compare("window:left=2,right=2,dilation=3,first=1",
          reference::either(reference::window(2, 2, 3), reference::first_keys(1)));
}

TEST_CASE("sparse: a window as wide as the input is softmax", "[window]") {
  for (const bool causal : {false, true}) {
    for (const Sizes& s : sizes) CHECK(apart("window:left=149,right=149", "softmax", s, causal) < 1e-12);
  }
  CHECK(apart("window:left=5,right=5", "softmax", {1, 1, 17, 4, 4}, false) > 1e-3);
  CHECK(apart("window:scale=0.3,left=20,right=20", "softmax:scale=0.3", {1, 1, 17, 4, 4}, false) < 1e-12);
}

TEST_CASE("sparse: strided is local keys and columns", "[strided]") {
  const Meets both = reference::either(reference::local(5), reference::columns(5));
  compare("strided:stride=5", both);
  compare("strided:stride=1", reference::local(1000));
  compare("strided:stride=16", reference::either(reference::local(16), reference::columns(16)));
  compare("strided:stride=5,usage=interleave", reference::local(5));
  compare("strided:stride=5,usage=interleave", reference::columns(5), {.layer = 3, .layers = 4});
  compare("strided:stride=5,usage=multihead", reference::by_head(reference::local(5), reference::columns(5)));
}

TEST_CASE("sparse: two interleaved layers lead from every key to every query that may see it", "[strided]") {
  const int64_t N = 60;
  for (const bool causal : {false, true}) {
    AttentionConfig config = config_for(1, 4, N);
    config.layers = 2;
    config.causal = causal;
    const std::string spec = "strided:stride=8,usage=interleave";
    const auto first = map_of(spec, config, N);
    config.layer = 1;
    const auto second = map_of(spec, config, N);
    for (int64_t i = 0; i < N; ++i) {
      for (int64_t j = 0; j < N; ++j) {
        double path = 0;
        for (int64_t m = 0; m < N; ++m)
          path += second[static_cast<size_t>(i * N + m)] * first[static_cast<size_t>(m * N + j)];
        CHECK((path > 0) == (!causal || j <= i));
      }
    }
  }
}

TEST_CASE("sparse: an encoder's pattern may look back only, and leave the first token out",
          "[strided][fixed]") {
  using namespace reference;
  const Meets strided = either(local(5), columns(5));
  compare("strided:stride=5,look=back", looking_back(strided));
  compare("strided:stride=5,look=back,usage=interleave", looking_back(columns(5)), {.layer = 1, .layers = 2});
  compare("strided:stride=5,cls=true", after_cls(strided));
  compare("strided:stride=5,cls=true,look=back", after_cls(looking_back(strided)));
  compare("strided:stride=5,cls=true,usage=interleave", after_cls(local(5)));
  const Meets starts = [](int64_t, int64_t, int64_t j, int64_t) { return j % 6 == 0; };
  const Meets fixed = either(either(own_block(6), summary(6, 2)), starts);
  const std::string spec = "fixed:block=6,summary=2,include_block_start=true";
  compare(spec + ",look=back", looking_back(fixed));
  compare(spec + ",cls=true", after_cls(fixed));
  compare(spec + ",look=back,cls=true", after_cls(looking_back(fixed)));  // the Arena's
}

TEST_CASE("sparse: blocks as long as the input are softmax", "[strided][fixed]") {
  for (const Sizes& s : sizes) {
    for (const bool causal : {false, true}) {
      CHECK(apart("strided:stride=150", "softmax", s, causal) < 1e-12);
      CHECK(apart("fixed:block=150", "softmax", s, causal) < 1e-12);
    }
  }
}

TEST_CASE("sparse: fixed is blocks and their last keys", "[fixed]") {
  const Meets both = reference::either(reference::own_block(6), reference::summary(6, 2));
  compare("fixed:block=6,summary=2", both);
  compare("fixed:block=6,summary=2,include_block_start=true",
          reference::either(both, [](int64_t, int64_t, int64_t j, int64_t) { return j % 6 == 0; }));
  compare("fixed:block=16,summary=1", reference::either(reference::own_block(16), reference::summary(16, 1)));
  compare("fixed:block=6,summary=2,usage=interleave", reference::own_block(6));
  compare("fixed:block=6,summary=2,usage=interleave", reference::summary(6, 2), {.layer = 1, .layers = 2});
  compare("fixed:block=6,summary=2,verts=2,usage=multihead", [](int64_t h, int64_t i, int64_t j, int64_t n) {
    return reference::own_block(6)(h, i, j, n) || reference::summary(6, 2, h % 2)(h, i, j, n);
  });
}

TEST_CASE("sparse: a query before the first summary sees nothing and gives zeros", "[fixed]") {
  AttentionConfig config = config_for(1, 4, 30);
  config.layer = 1;
  config.causal = true;
  const auto attention = made("fixed:block=10,summary=3,usage=interleave", config);
  const Inputs in({1, 1, 30, 4, 4});
  const Tensor y = multi_head(*attention).on_heads(in.heads, {});
  backward(sum(y * in.direction));
  for (const Tensor& x : {y, grad_of(in.heads.q)}) {
    const auto values = x.to_doubles();
    for (size_t i = 0; i < 7 * 4; ++i) CHECK(values[i] == 0);
    CHECK(values[8 * 4] != 0);  // with a single key nothing is to be learned about it
  }
}

TEST_CASE("sparse: bigbird is global blocks, neighbours and random blocks", "[bigbird]") {
  compare("bigbird:block=4,random=0", reference::bigbird(4, 0, {}), {}, Use::self);
  const MeetsOf with_blocks = [](Attention& attention, const Sizes& s) {
    const Tensor blocks = find(attention, "random_blocks");
    const int64_t n = (s.N + 3) / 4;
    REQUIRE(blocks.shape() == Shape{s.H, n, 2});
    return reference::bigbird(4, 2, [n, table = blocks.to_doubles()](int64_t h, int64_t i, int64_t r) {
      return static_cast<int64_t>(table[static_cast<size_t>((h * n + i) * 2 + r)]);
    });
  };
  compare("bigbird:block=4,random=2", with_blocks, {}, Use::self);
}

TEST_CASE("sparse: random blocks are others than those seen anyway, and differ by head and seed",
          "[bigbird]") {
  const AttentionConfig config = config_for(2, 2, 61);
  const auto attention = made("bigbird:block=4,random=3", config);
  const Tensor blocks = find(*attention, "random_blocks");
  const auto table = blocks.to_doubles();
  const int64_t n = 16;
  REQUIRE(blocks.shape() == Shape{2, n, 3});
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t i = 1; i < n - 1; ++i) {
      std::vector<int64_t> seen;
      for (int64_t r = 0; r < 3; ++r) {
        const auto j = static_cast<int64_t>(table[static_cast<size_t>((h * n + i) * 3 + r)]);
        CHECK(std::abs(i - j) > 1);
        CHECK((j >= 1 && j <= n - 2));
        CHECK_FALSE((i == 1 && j == n - 2));
        CHECK_FALSE((i == n - 2 && j == 1));
        CHECK(std::find(seen.begin(), seen.end(), j) == seen.end());
        seen.push_back(j);
      }
    }
  }
  CHECK(std::vector(table.begin(), table.begin() + 48) != std::vector(table.begin() + 48, table.end()));
  const auto other = find(*made("bigbird:block=4,random=3", config, 2), "random_blocks").to_doubles();
  CHECK(other != table);
  const std::string seeded = "bigbird:block=4,random=3,seed=5";
  CHECK(find(*made(seeded, config, 2), "random_blocks").to_doubles() ==
        find(*made(seeded, config, 3), "random_blocks").to_doubles());
  // Another seed moves what random blocks give and nothing else: without them the maps have the same pairs.
  const auto a = map_of("bigbird:block=4,random=3,seed=5", config, 61),
             b = map_of("bigbird:block=4,random=3,seed=6", config, 61),
             bare = map_of("bigbird:block=4,random=0", config, 61);
  int64_t moved = 0;
  for (size_t at = 0; at < a.size(); ++at) {
    if (bare[at] != 0) CHECK((a[at] != 0 && b[at] != 0));
    moved += (a[at] != 0) != (b[at] != 0) ? 1 : 0;
  }
  CHECK(moved > 0);
}

TEST_CASE("sparse: random blocks that are put in are those that are seen", "[bigbird]") {
  const AttentionConfig config = config_for(1, 2, 40);
  const auto attention = made("bigbird:block=4,random=1", config);
  const Inputs in({1, 1, 40, 2, 2});
  const auto pairs = [&] {
    MapRecorder recorder;
    multi_head(*attention).on_heads(in.heads, {.context = {.recorder = &recorder}});
    return recorder.maps.at(0).weights.to_doubles();
  };
  pairs();
  for (const int32_t j : {6, 7}) {
    for (const Named& named : tensors(*attention)) {
      if (named.name == "random_blocks")
        *named.tensor = Tensor::of<int32_t>(std::vector<int32_t>(10, j), Shape{1, 10, 1});
    }
    const auto map = pairs();
    for (int64_t key = 24; key < 32; ++key)
      CHECK((map[static_cast<size_t>(9 * 40 + key)] > 0) == (key / 4 == j));
  }
  // A shorter input of eight blocks: what is past its middle blocks stands for one of them.
  const Inputs shorter({1, 1, 32, 2, 2});
  MapRecorder recorder;
  multi_head(*attention).on_heads(shorter.heads, {.context = {.recorder = &recorder}});
  const auto map = recorder.maps.at(0).weights.to_doubles();
  for (int64_t key = 0; key < 32; ++key) {
    const int64_t J = key / 4;  // block 7 stands for 1 + 6 mod 6 = 1
    CHECK((map[static_cast<size_t>(17 * 32 + key)] > 0) ==
          (J == 0 || J == 7 || J == 1 || (J >= 3 && J <= 5)));
  }
  const Inputs longer({1, 1, 44, 2, 2});
  CHECK_THROWS_WITH(multi_head(*attention).on_heads(longer.heads, {}), containing("44 tokens"));
}

TEST_CASE("sparse: bigbird with few or many blocks is softmax", "[bigbird]") {
  CHECK(apart("bigbird:block=16", "softmax", {1, 2, 47, 4, 3}, false) < 1e-12);
  CHECK(apart("bigbird:block=4,random=40", "softmax", {1, 2, 41, 4, 3}, false) > 1e-6);  // the opposite block
  CHECK(apart("bigbird:block=100", "softmax", {2, 1, 150, 5, 9}, false) < 1e-12);
}

TEST_CASE("sparse: dropout on the weights is that of softmax", "[window][strided][longformer]") {
  for (const auto& [spec, causal] :
       {std::pair{"window:left=90,right=90", false}, std::pair{"strided:stride=90", true},
        std::pair{"fixed:block=90", true}, std::pair{"bigbird:block=90", false},
        std::pair{"hat:segment=90,cross=false", false}}) {
    CAPTURE(spec);
    AttentionConfig config = config_for(2, 8, 83);
    config.dropout = 0.3;
    config.causal = causal;
    std::vector<std::vector<double>> found;
    for (const char* one : {spec, "softmax"}) {
      const auto attention = made(one, config);
      const Inputs in({2, 2, 83, 8, 5});
      Rng noise(4);
      const Tensor y = multi_head(*attention)
                           .on_heads(in.heads, {.mask = causal ? Mask::causal() : Mask::none(),
                                                .context = {.rng = &noise}});
      backward(sum(y * in.direction));
      for (const Tensor& x : {y, grad_of(in.heads.q), grad_of(in.heads.k), grad_of(in.heads.v)})
        found.push_back(x.to_doubles());
    }
    for (size_t i = 0; i < 4; ++i) CHECK(distance(found[i], found[i + 4]) < 1e-12);
  }
}

TEST_CASE("sparse: a decoder with a window remembers no more than the window", "[window][longformer]") {
  for (const char* spec :
       {"window:left=20", "window:left=5,dilation=4", "window:left=20,first=4", "longformer:window=20",
        "strided:stride=21,usage=interleave", "fixed:block=21,usage=interleave,cls=true"}) {
    CAPTURE(spec);
    AttentionConfig config = config_for(2, 4, 400);
    config.causal = true;
    const auto attention = made(spec, config);
    const Tensor x = test::tensor(test::numbers(400 * 8, 3), {1, 400, 8}, DType::f32);
    const NoGrad quiet;
    const Tensor full = attention->forward({.queries = x, .keys = x, .mask = Mask::causal()});
    const auto cache = attention->new_cache();
    auto& kept = dynamic_cast<KeyValueCache&>(*cache);
    const auto before = memory_use().live;
    int64_t early = 0, max_held = 0;
    for (int64_t t = 0; t < 400; ++t) {
      const Tensor row = view::slice(x, 1, t, t + 1);
      const Tensor y =
          attention->forward({.queries = row, .keys = row, .mask = Mask::causal(), .cache = cache.get()});
      CHECK(distance(y, view::slice(full, 1, t, t + 1).to_doubles()) < 2e-6);
      const int64_t held = memory_use().live - before - y.bytes();
      max_held = std::max(max_held, held);
      if (t == 60) early = max_held;
    }
    CHECK(max_held == early);
    CHECK(kept.length == 400);
    CHECK(kept.keys.extent(2) <= 2 * 21);
  }
}

TEST_CASE("sparse: first keys stay when a decoder forgets those after them", "[window]") {
  AttentionConfig config = config_for(2, 3, 60);
  config.causal = true;
  const auto attention = made("window:left=5,first=3", config);
  const Tensor x = test::tensor(test::numbers(2 * 60 * 6, 3), {2, 60, 6}, DType::f32);
  const NoGrad quiet;
  for (const bool padded : {false, true}) {
    const Tensor lengths = Tensor::of<int32_t>(std::vector<int32_t>{60, 33}, Shape{2});
    const Mask mask = padded ? Mask::causal() & Mask::lengths(lengths) : Mask::causal();
    MapRecorder whole;
    const Tensor full =
        attention->forward({.queries = x, .keys = x, .mask = mask, .context = {.recorder = &whole}});
    const auto cache = attention->new_cache();
    for (int64_t begin = 0, end = 0; begin < 60; begin = end) {
      end = std::min<int64_t>(60, begin + (begin < 9 ? 2 : 7));
      const Tensor rows = view::slice(x, 1, begin, end);
      MapRecorder recorder;
      const Tensor y = attention->forward({.queries = rows,
                                           .keys = rows,
                                           .mask = mask,
                                           .cache = cache.get(),
                                           .context = {.recorder = &recorder}});
      const int64_t real = padded ? 1 : 2;  // the second row ends before
      for (int64_t b = 0; b < real; ++b) {
        const auto of = [&](const Tensor& t) { return view::slice(t, 0, b, b + 1); };
        CHECK(distance(of(y), of(view::slice(full, 1, begin, end)).to_doubles()) < 2e-6);
        const Tensor map = view::slice(view::slice(whole.maps[0].weights, 2, begin, end), 3, 0, end);
        CHECK(distance(of(recorder.maps[0].weights), of(map).to_doubles()) < 2e-6);
      }
    }
  }
}

TEST_CASE("sparse: options that cannot be are refused", "[window][strided][fixed][longformer][bigbird]") {
  AttentionConfig config = config_for(2, 4, 100);
  const auto refused = [&](const std::string& spec, const std::string& why) {
    CAPTURE(spec);
    CHECK_THROWS_WITH(made(spec, config), containing(why));
  };
  refused("window:left=-1", "left = -1");
  refused("window:dilation=0", "dilation = 0");
  refused("window:first=-1", "first = -1");
  refused("strided:stride=-3", "stride = -3");
  refused("fixed:block=8,summary=9", "1 summaries of 9 keys in a block of 8");
  refused("fixed:block=8,summary=4,verts=3,usage=multihead", "3 summaries of 4 keys");
  refused("fixed:summary=0", "summary = 0");
  refused("longformer:window=-2", "window = -2");
  refused("longformer:global=-1",
          "global = -1. It must be a number of tokens, 0 to 1000000000, or positions");
  refused("longformer:global=/", "global = /");
  refused("longformer:global=0/x", "global = 0/x");
  refused("longformer:global=0//5", "global = 0//5");
  refused("longformer:global=2000000000/", "global = 2000000000/");
  refused("longformer:dilated_heads=3", "dilated_heads = 3. There are 2 heads");
  refused("bigbird:block=0", "block = 0");
  refused("bigbird:random=-1", "random = -1");
  config.causal = false;
  const auto attention = made("longformer", config);
  const Inputs in({1, 2, 9, 4, 4}, DType::f32);
  CHECK_THROWS_WITH(multi_head(*attention).on_heads(in.heads, {.mask = Mask::causal()}),
                    containing("global tokens attend to later ones"));
}

}  // namespace heed
