// Operation counts of kernels' products.
#include "heed/core/operation_count.h"

#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/launch.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

Tensor numbers(const Shape& shape) {
  Rng rng(3);
  const Tensor x(shape);
  fill_normal(x, 0, 1, rng);
  return x;
}

int64_t flops(const std::vector<Product>& products) {
  int64_t total = 0;
  for (const Product& product : products) total += product.flops();
  return total;
}

}  // namespace

TEST_CASE("count: a log holds the products done while it lives, as they lay") {
  const Tensor a = numbers(Shape{3, 5, 7}), b = numbers(Shape{3, 9, 7}), c(Shape{3, 5, 9});
  const auto multiply = [&](double beta) {
    launch<kernel::Gemm>(Device::cpu, a, view::transpose(b, 1, 2), c, 1.0, beta, Rounding::none);
  };
  multiply(0);  // nobody listens
  std::vector<Product> seen;
  {
    const ProductLog log;
    CHECK(ProductLog::wanted());
    multiply(0);
    multiply(1);
    seen = log.list();
  }
  CHECK_FALSE(ProductLog::wanted());
  multiply(0);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == Product{3, 5, 9, 7, false, true, false});
  CHECK(seen[1] == Product{3, 5, 9, 7, false, true, true});
  CHECK(seen[0].flops() == 2 * 3 * 5 * 9 * 7);
}

TEST_CASE("count: tiled attention notes just the operations that it counts") {
  const bool causal = GENERATE(false, true), with_lengths = GENERATE(false, true);
  const int64_t length = GENERATE(64, 160, 208);
  CAPTURE(causal, with_lengths, length);
  const Shape shape{2, 3, length, 32};
  const Tensor q = numbers(shape), k = numbers(shape), v = numbers(shape), out(shape), dq(shape), dk(shape),
               dv(shape), lse(Shape{2, 3, length});
  kernel::AttentionParams params{.causal = causal};
  const std::vector<int32_t> lengths{48, static_cast<int32_t>(length)};
  if (with_lengths) params.key_lengths = Tensor::of<int32_t>(lengths, Shape{2});
  const auto noted = [](const auto& work) {
    const ProductLog log;
    Count::reset();
    work();
    return std::pair{flops(log.list()), Count::flops().load()};
  };
  const auto ahead = noted([&] { launch<kernel::Attention>(Device::cpu, q, k, v, params, out, lse); });
  CHECK(ahead.first == ahead.second);
  const auto back = noted([&] {
    launch<kernel::AttentionBack>(
        Device::cpu,
        kernel::AttentionBackTensors{
            .q = q, .k = k, .v = v, .out = out, .lse = lse, .dout = q, .dq = dq, .dk = dk, .dv = dv},
        params);
  });
  CHECK(back.first == back.second);
  CHECK(2 * back.first == 5 * ahead.first);
}
