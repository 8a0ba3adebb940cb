// Sinkhorn attention against its formula, and its sorting matrix.
#include "heed/tests/attention/reference/sinkhorn.h"

#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/tests/attention/reference/against.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::Example;
using reference::head_of;
using reference::Matrix;
using reference::Sorting;
using reference::Values;

std::unique_ptr<Attention> made(const std::string& spec, const AttentionConfig& config) {
  Rng rng(5);
  auto attention = make_attention(spec, config, rng);
  convert(*attention, DType::f64);
  return attention;
}

Tensor random(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(shape, DType::f64);
  fill_normal(x, 0, 1, rng);
  return x;
}

Tensor matrix_tensor(const Matrix& x) { return Tensor::of<double>(x.values, Shape{1, x.rows, x.columns}); }

}  // namespace

TEST_CASE("reference: sinkhorn, encoders and decoders", "[sinkhorn]") {
  for (const int64_t block : {1, 4}) {
    for (const Example& e : reference::usual_examples(true, false)) {
      const auto formula = [&](const Example& x, const Values& values, int64_t b, int64_t h) {
        const Matrix q = head_of(values.at("q"), b * x.H + h, x.N, x.d),
                     k = head_of(values.at("k"), b * x.H + h, x.N, x.d);
        const Sorting o{
            .block = block, .iterations = 5, .n = x.keys_of(b), .temperature = 0.9, .causal = x.causal};
        return reference::sinkhorn(q, k, reference::sinkhorn_order(q, k, o), o);
      };
      reference::against(text("sinkhorn:block=", block, ",iterations=5,temperature=0.9"), e, formula);
    }
  }
}

TEST_CASE("reference: sinkhorn, rows and columns of what sorts sum to one", "[sinkhorn]") {
  // Values that tell blocks apart and keys of zeros: what a query takes from the mixed block is a row of R,
  // halved.
  const int64_t blocks = 5, b = 2, N = blocks * b;
  const auto one = made("sinkhorn:block=2,iterations=60,scale=1e-12", {.d_model = 3});
  const Tensor q = random(Shape{1, 1, N, 3}, 1), k = random(Shape{1, 1, N, 3}, 2);
  std::vector<double> values(static_cast<size_t>(N * blocks));
  for (int64_t t = 0; t < N; ++t) values[static_cast<size_t>(t * blocks + t / b)] = 1;
  const auto y = dynamic_cast<MultiHeadAttention&>(*one)
                     .on_heads({q, k, Tensor::of<double>(values, Shape{1, 1, N, blocks})}, {})
                     .to_doubles();
  for (int64_t i = 0; i < blocks; ++i) {
    double row = 0, column = 0;
    for (int64_t j = 0; j < blocks; ++j) {
      const auto entry = [&](int64_t r, int64_t c) {
        return 2 * y[static_cast<size_t>(r * b * blocks + c)] - (r == c ? 1 : 0);
      };
      CHECK(entry(i, j) > -1e-9);
      row += entry(i, j);
      column += entry(j, i);
    }
    CHECK(row == Approx(1).epsilon(1e-6));
    CHECK(column == Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("reference: sinkhorn that sorts nothing is attention within blocks", "[sinkhorn]") {
  // Each key of the block appears twice then, which changes nothing.
  const int64_t blocks = 3, b = 4, N = blocks * b;
  const auto one = made("sinkhorn:block=4", {.d_model = 3});
  Matrix identity(blocks, blocks);
  for (int64_t i = 0; i < blocks; ++i) identity.at(i, i) = 1;
  reference::put_in(*one, "sort", matrix_tensor(identity));
  const Tensor q = random(Shape{1, 1, N, 3}, 1), k = random(Shape{1, 1, N, 3}, 2),
               v = random(Shape{1, 1, N, 2}, 3);
  const auto y = dynamic_cast<MultiHeadAttention&>(*one).on_heads({q, k, v}, {}).to_doubles();
  const Matrix map = normalised(
      reference::softmax(1 / std::sqrt(3.0))(Matrix(N, 3, q.to_doubles()), Matrix(N, 3, k.to_doubles()),
                                             [b](int64_t i, int64_t j) { return i / b == j / b; }));
  const Matrix wanted = reference::apply(map, Matrix(N, 2, v.to_doubles()));
  for (size_t i = 0; i < y.size(); ++i) CHECK(std::abs(y[i] - wanted.values[i]) < 1e-12);
}

TEST_CASE("sinkhorn: noise only while training and only if asked for", "[sinkhorn]") {
  const Tensor x = random(Shape{1, 12, 4}, 1);
  for (const bool gumbel : {false, true}) {
    const auto one = made(text("sinkhorn:block=3,gumbel=", gumbel ? "true" : "false"), {.d_model = 4});
    Rng noise(3);
    const auto quiet = one->forward({.queries = x, .keys = x}).to_doubles();
    CHECK(one->forward({.queries = x, .keys = x}).to_doubles() == quiet);
    CHECK((one->forward({.queries = x, .keys = x, .context = {.rng = &noise}}).to_doubles() != quiet) ==
          gumbel);
  }
}

TEST_CASE("sinkhorn: options and sorts that make no sense are refused", "[sinkhorn]") {
  CHECK_THROWS_WITH(made("sinkhorn:block=-1", {.d_model = 4}), containing("block = -1"));
  CHECK_THROWS_WITH(made("sinkhorn:iterations=0", {.d_model = 4}), containing("iterations = 0"));
  CHECK_THROWS_WITH(made("sinkhorn:temperature=0", {.d_model = 4}), containing("temperature = 0"));
  const auto one = made("sinkhorn:block=2", {.d_model = 4});
  reference::put_in(*one, "sort", random(Shape{1, 2, 2}, 1));
  const Tensor q = random(Shape{1, 1, 6, 4}, 1);
  CHECK_THROWS_WITH(dynamic_cast<MultiHeadAttention&>(*one).on_heads({q, q, q}, {}),
                    containing("[1, 2, 2]") && containing("3 blocks"));
}

}  // namespace heed
