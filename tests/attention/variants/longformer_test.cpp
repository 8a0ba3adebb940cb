// Tests longformer against plain loops over the pairs that its paper allows, and at its limits.
#include "heed/tests/attention/variants/sparse_cases.h"

namespace heed {

using namespace sparse;

TEST_CASE("sparse: longformer without global tokens, or with everything in its window, is known",
          "[longformer]") {
  for (const Sizes& s : sizes) {
    CHECK(apart("longformer:window=150,global=0", "softmax", s, false) < 1e-12);
    CHECK(apart("longformer:window=150", "softmax", s, true) < 1e-12);
    CHECK(apart("longformer:window=150,global=2", "softmax", s, false) < 1e-12);
    CHECK(apart("longformer:window=5", "window:left=5,right=5", s, true) < 1e-12);
  }
  compare("longformer:window=3,global=0", reference::longformer(3, 0));
  compare("longformer:window=2,global=0,dilation=3", reference::window(2, 2, 3));
  const MeetsOf last_head = [](Attention&, const Sizes& s) -> Meets {
    return [H = s.H](int64_t h, int64_t i, int64_t j, int64_t n) {
      return reference::window(2, 2, h == H - 1 ? 3 : 1)(h, i, j, n);
    };
  };
  compare("longformer:window=2,global=0,dilation=3,dilated_heads=1", last_head);
}

TEST_CASE("sparse: longformer on bare heads, where global projections are the local ones", "[longformer]") {
  const Meets local = reference::longformer(3, 2);
  compare(
      "longformer:window=3,global=2",
      [local](int64_t h, int64_t i, int64_t j, int64_t n) { return i < 2 || local(h, i, j, n); }, {},
      Use::self);
}

TEST_CASE("sparse: longformer's global tokens may be at any place", "[longformer]") {
  compare("longformer:window=3,global=0/5", reference::longformer_at(3, {0, 5}), {}, Use::self);
  // Positions in any order and twice, neighbours among them; one that only the longest inputs have.
  compare("longformer:window=1,global=66/4/3/16/4", reference::longformer_at(1, {3, 4, 16, 66}), {},
          Use::self);
  compare("longformer:window=2,global=9/", reference::longformer_at(2, {9}), {}, Use::self);
  compare("longformer:window=2,global=400/", reference::longformer_at(2, {}), {}, Use::self);
  for (const Sizes& s : sizes) {
    CHECK(apart("longformer:window=2,global=0/1/2", "longformer:window=2,global=3", s, false) == 0);
    CHECK(apart("longformer:window=150,global=1/7", "softmax", s, false) < 1e-12);
  }
}

TEST_CASE("sparse: longformer's global queries are rotated by their own positions", "[longformer]") {
  const int64_t N = 19;
  AttentionConfig config = config_for(2, 4, N);
  config.modifiers.position = PositionKind::rope;
  const Tensor x = test::tensor(test::numbers(2 * N * 8, 9), {2, N, 8}, DType::f64);
  const auto lengths = Mask::lengths(Tensor::of<int32_t>(std::vector<int32_t>{19, 8}, Shape{2}));
  std::vector<std::vector<double>> found;
  for (const char* spec : {"softmax", "longformer:window=19,global=2/5/6/11"}) {
    const auto attention = made(spec, config);  // both have the same first projections
    convert(*attention, DType::f64);
    found.push_back(attention->forward({.queries = x, .keys = x, .mask = lengths}).to_doubles());
  }
  for (size_t i = 0; i < found[0].size(); ++i) {
    if (i < static_cast<size_t>((N + 8) * 8)) CHECK(std::abs(found[0][i] - found[1][i]) < 1e-12);
  }
}

TEST_CASE("sparse: longformer's global rows have projections of their own", "[longformer]") {
  const int64_t N = 23, g = 2;
  const std::string spec = GENERATE("longformer:window=3,global=2", "longformer:window=3,global=4/12");
  const std::vector<int64_t> places =
      spec.find('/') == std::string::npos ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{4, 12};
  const AttentionConfig config = config_for(2, 3, N);
  const auto attention = made(spec, config);
  convert(*attention, DType::f64);
  const Tensor x = test::tensor(test::numbers(2 * N * 6, 9), {2, N, 6}, DType::f64);
  const auto lengths = Mask::lengths(Tensor::of<int32_t>(std::vector<int32_t>{23, 15}, Shape{2}));
  const auto forward = [&] { return attention->forward({.queries = x, .keys = x, .mask = lengths}); };
  const Tensor copies = forward();
  // At first they are copies.
  for (const char* name : {"query", "key", "value"}) {
    CHECK(find(*attention, std::string(name) + "_global.weight").to_doubles() ==
          find(*attention, std::string(name) + ".weight").to_doubles());
  }
  // Another value projection for global rows is seen by them alone; so are a query's and a key's.
  for (const char* name : {"query_global.weight", "key_global.weight", "value_global.weight"}) {
    CAPTURE(name);
    for (const Named& named : tensors(*attention)) {
      if (named.name == name) *named.tensor = leaf(test::tensor(test::numbers(36, 7), {6, 6}, DType::f64));
    }
    const auto before = copies.to_doubles(), after = forward().to_doubles();
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t i = 0; i < N; ++i) {
        const auto at = static_cast<size_t>((b * N + i) * 6);
        CHECK((after[at] != before[at]) == (i == places[0] || i == places[1]));
      }
    }
  }
  // Their rows are softmax over all keys of those projections.
  const auto split = [&](const Tensor& y, const char* name) {
    return transpose(reshape(linear(y, find(*attention, name), {}), Shape{2, -1, 2, 3}), 1, 2).detach();
  };
  const auto of_places = [&](const Tensor& y) {
    return concat(
        std::vector<Tensor>{slice(y, 1, places[0], places[0] + 1), slice(y, 1, places[1], places[1] + 1)}, 1);
  };
  const Tensor q = split(of_places(x), "query_global.weight"), k = split(x, "key_global.weight"),
               v = split(x, "value_global.weight");
  const auto want = test::reference(
      q, k, v, q, {.scale = 1 / std::sqrt(3.0), .seen = [](int64_t b, int64_t, int64_t, int64_t j) {
                     return b == 0 || j < 15;
                   }});
  const Tensor heads = test::tensor(want.out, {2, 2, g, 3}, DType::f64);
  const Tensor joined =
      linear(reshape(transpose(heads, 1, 2), Shape{2, g, 6}), find(*attention, "output.weight"), {});
  CHECK(distance(of_places(forward()), joined.to_doubles()) < 1e-12);
}

}  // namespace heed
