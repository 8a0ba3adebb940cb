// Dropout of a batch shard equals that of the whole batch.
#include <algorithm>
#include <functional>

#include "heed/autograd/ops.h"
#include "heed/autograd/tape.h"
#include "heed/core/distributed/batch_shard.h"
#include "heed/core/sparse_pattern.h"
#include "heed/tests/any_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

constexpr int64_t rows = 5;

Draw draw_of(Device device) { return {99, 3, Tensor::full(Shape{1}, 4, DType::i64, device)}; }

/// Values and gradients of y over all rows, and of shares of 2 and 3 rows, one behind the other.
void check_shares(const std::vector<Tensor>& inputs,
                  const std::function<Tensor(std::span<const Tensor>, const Draw&)>& y) {
  const Device device = inputs[0].device();
  const auto numbers = [&](int64_t first, int64_t count, BatchRows share) {
    std::vector<Tensor> leaves;
    for (const Tensor& input : inputs)
      leaves.push_back(leaf(contiguous(view::slice(input, 0, first, first + count))));
    const SharedRows shared(share);
    const Tensor out = y(leaves, draw_of(device));
    backward(sum(out * out));
    std::vector<std::vector<double>> all{out.to_doubles()};
    for (const Tensor& x : leaves) all.push_back(grad_of(x).to_doubles());
    return all;
  };
  const auto whole = numbers(0, rows, {});
  const auto one = numbers(0, 2, {0, 2}), other = numbers(2, 3, {2, 3}), astray = numbers(2, 3, {});
  for (size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(i);
    std::vector<double> joined = one[i];
    joined.insert(joined.end(), other[i].begin(), other[i].end());
    REQUIRE(joined.size() == whole[i].size());
    double maximum = 0;
    for (size_t k = 0; k < joined.size(); ++k) maximum = std::max(maximum, std::abs(joined[k] - whole[i][k]));
    CHECK(maximum < 1e-12);
  }
  CHECK(astray[0] != other[0]);  // without being told, rows draw as the first of a batch do
}

std::vector<Tensor> heads(Device device, int64_t length) {
  std::vector<Tensor> out;
  for (uint32_t seed = 1; seed < 4; ++seed)
    out.push_back(random_tensor(Shape{rows, 3, length, 8}, DType::f64, seed, 0.1, 1).to(device));
  return out;
}

}  // namespace

TEST_CASE("share: dropout") {
  const Device device = any_device();
  for (const int64_t width : {1, 8, 13, 7001}) {
    CAPTURE(width);
    check_shares({random_tensor(Shape{rows, width, 3}, DType::f64, 1, 0.5, 1).to(device)},
                 [](std::span<const Tensor> x, const Draw&) {
                   Rng rng(99, x[0].device());
                   rng.restore(4, 3);
                   return dropout(x[0], 0.4, &rng);
                 });
  }
}

TEST_CASE("share: dropout of attention, dense and over patterns") {
  const Device device = any_device();
  for (const int64_t length : {9, 64, 70}) {
    CAPTURE(length);
    check_shares(heads(device, length), [](std::span<const Tensor> x, const Draw& draw) {
      return attention(x[0], x[1], x[2], {.scale = 0.3, .causal = true, .dropout = 0.3, .draw = draw});
    });
    auto pattern = std::make_shared<kernel::Pattern>();
    pattern->queries = pattern->keys = length;
    for (int64_t i = 0; i < length; ++i) {
      pattern->first.push_back(static_cast<int64_t>(pattern->runs.size()));
      pattern->runs.push_back(
          {static_cast<int32_t>(std::max<int64_t>(0, i - 5)), static_cast<int32_t>(i + 1)});
    }
    pattern->first.push_back(static_cast<int64_t>(pattern->runs.size()));
    check_shares(heads(device, length), [&](std::span<const Tensor> x, const Draw& draw) {
      return pattern_attention(x[0], x[1], x[2],
                               {.scale = 0.3, .pattern = pattern, .dropout = 0.3, .draw = draw});
    });
  }
}

TEST_CASE("share: dropout of fastmax") {
  const Device device = any_device();
  check_shares(heads(device, 11), [](std::span<const Tensor> x, const Draw& draw) {
    return polynomial_attention(x[0], x[1], x[2],
                                {.coefficients = {1, 1, 0.5},
                                 .causal = true,
                                 .dropout = 0.3,
                                 .draw = draw,
                                 .path = kernel::PolynomialPath::factored});
  });
}
