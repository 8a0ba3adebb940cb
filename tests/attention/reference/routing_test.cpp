// Routing attention against its formula, and the updates of its centroids.
#include "heed/tests/attention/reference/routing.h"

#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/tests/attention/reference/against.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::Example;
using reference::head_of;
using reference::Matrix;
using reference::Values;

std::unique_ptr<Attention> made(const std::string& spec, const AttentionConfig& config) {
  Rng rng(5);
  return make_attention(spec, config, rng);
}

Tensor centroids_of(Attention& attention) {
  Tensor found;
  visit_tensors(attention, [&](const std::string& name, Tensor& tensor) {
    if (name == "centroids") found = contiguous(tensor + 0.0);
  });
  return found;
}

}  // namespace

TEST_CASE("reference: routing, encoders and both forms of decoders", "[routing]") {
  for (const bool nearest : {true, false}) {
    for (const Example& e : reference::usual_examples(true, false)) {
      const auto formula = [&](const Example& x, const Values& values, int64_t b, int64_t h) {
        const Matrix q = head_of(values.at("q"), b * x.H + h, x.N, x.d),
                     k = head_of(values.at("k"), b * x.H + h, x.N, x.d),
                     centroids = head_of(values.at("centroids"), h, 3, x.d);
        if (x.causal && nearest) return reference::routing_nearest(q, k, centroids, 4, x.keys_of(b));
        return reference::routing(q, k, centroids, 4, x.keys_of(b), x.causal);
      };
      reference::against(text("routing:clusters=3,window=4,by=", nearest ? "nearest" : "cluster"), e, formula,
                         {}, {"centroids"});
    }
  }
}

TEST_CASE("reference: routing with one cluster that takes all is softmax", "[routing]") {
  Rng rng(3);
  const Tensor q(Shape{2, 2, 9, 3}), k(Shape{2, 2, 9, 3}), v(Shape{2, 2, 9, 4});
  for (const Tensor& x : {q, k, v}) fill_normal(x, 0, 1, rng);
  const AttentionConfig config{.d_model = 6, .heads = 2};
  const auto routing = made("routing:clusters=1,window=9", config), softmax = made("softmax", config);
  const auto y = dynamic_cast<MultiHeadAttention&>(*routing).on_heads({q, k, v}, {}).to_host(),
             wanted = dynamic_cast<MultiHeadAttention&>(*softmax).on_heads({q, k, v}, {}).to_host();
  for (size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(wanted[i]).margin(1e-5));
}

TEST_CASE("routing: centroids move towards what is near them, while training only", "[routing]") {
  const auto one = made("routing:clusters=4,decay=0.5", {.d_model = 6, .max_length = 30});
  Rng rng(3), noise(4);
  const Tensor x(Shape{2, 30, 6});
  fill_normal(x, 0, 1, rng);
  const std::vector<float> start = centroids_of(*one).to_host();
  one->forward({.queries = x, .keys = x});
  {
    const NoGrad quiet;
    one->forward({.queries = x, .keys = x, .context = {.rng = &noise}});
  }
  CHECK(centroids_of(*one).to_host() == start);
  double before = HUGE_VAL;
  for (int step = 0; step < 6; ++step) {
    AuxiliaryLosses terms;
    one->forward({.queries = x, .keys = x, .context = {.rng = &noise, .losses = &terms}});
    REQUIRE(terms.list.size() == 2);  // one loss of queries, one of keys
    const double apart = terms.list[0].second.item() + terms.list[1].second.item();
    CHECK(apart > 0);
    if (step == 0 || step == 5) {
      CHECK(apart < before);
      before = apart;
    }
  }
  const std::vector<float> now = centroids_of(*one).to_host();
  CHECK(now != start);
  for (size_t c = 0; c < 4; ++c) {
    double squares = 0;
    for (size_t i = 0; i < 6; ++i) squares += now[c * 6 + i] * now[c * 6 + i];
    CHECK(squares == Approx(1).epsilon(1e-4));
  }
}

TEST_CASE("routing: the first step of a run places centroids in the middle of what is there", "[routing]") {
  // Tokens around four directions, in turn; padding points elsewhere.
  Rng rng(3);
  const Tensor x(Shape{2, 1, 24, 4});
  fill_normal(x, 0, 0.3, rng);
  for (int64_t row = 0; row < 48; ++row) x.data<float>()[row * 4 + row % 4] += row % 24 < 20 ? 3 : -9;
  const Mask mask = Mask::lengths(Tensor::of<int32_t>(std::vector<int32_t>{20, 20}, Shape{2}));
  const auto placed = [&](const std::string& spec, int64_t tick) {
    const auto one = made(spec, {.d_model = 4, .max_length = 24});
    Rng noise(4);
    noise.restore(tick, 0);
    const Tensor heads = leaf(x);
    dynamic_cast<MultiHeadAttention&>(*one).on_heads({heads, heads, heads},
                                                     {.mask = mask, .context = {.rng = &noise}});
    return centroids_of(*one).to_host();
  };
  const auto begun = placed("routing:clusters=4,decay=1", 1);
  // Each is where the mean of the tokens nearest to it points.
  std::vector<double> sums(16);
  const std::vector<float> tokens = x.to_host();
  for (size_t row = 0; row < 48; ++row) {
    if (row % 24 >= 20) continue;
    const auto product = [&](const auto& a, size_t i, const auto& b, size_t j) {
      double total = 0;
      for (size_t c = 0; c < 4; ++c)
        total += static_cast<double>(a[i * 4 + c]) * static_cast<double>(b[j * 4 + c]);
      return total;
    };
    size_t nearest = 0;
    for (size_t c = 1; c < 4; ++c) {
      if (product(begun, c, tokens, row) > product(begun, nearest, tokens, row)) nearest = c;
    }
    const double length = std::sqrt(product(tokens, row, tokens, row));
    for (size_t c = 0; c < 4; ++c) sums[nearest * 4 + c] += static_cast<double>(tokens[row * 4 + c]) / length;
  }
  for (size_t c = 0; c < 4; ++c) {
    double squares = 0;
    for (size_t i = 0; i < 4; ++i) squares += sums[c * 4 + i] * sums[c * 4 + i];
    for (size_t i = 0; i < 4 && squares > 0; ++i)
      CHECK(static_cast<double>(begun[c * 4 + i]) ==
            Approx(sums[c * 4 + i] / std::sqrt(squares)).margin(1e-4));
  }
  const auto drawn = placed("routing:clusters=4,decay=1,init=0", 1);
  CHECK(drawn != begun);
  CHECK(placed("routing:clusters=4,decay=1", 2) == drawn);
}

TEST_CASE("routing: options that make no sense are refused", "[routing]") {
  CHECK_THROWS_WITH(made("routing:clusters=-1", {.d_model = 4}), containing("clusters = -1"));
  CHECK_THROWS_WITH(made("routing:init=-1", {.d_model = 4}), containing("init = -1"));
  CHECK_THROWS_WITH(made("routing:window=-1", {.d_model = 4}), containing("window = -1"));
  CHECK_THROWS_WITH(made("routing:decay=2", {.d_model = 4}), containing("decay = 2"));
  CHECK_FALSE(made("routing:by=cluster", {.d_model = 4, .causal = true})->new_cache());
}

}  // namespace heed
