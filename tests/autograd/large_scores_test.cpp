// Fused attention with scores of a million, where a float cannot hold the log of a sum: gradients match the
// weights of the forward pass.
#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/core/sparse_pattern.h"
#include "heed/tests/catch.h"
#include "heed/tests/device.h"

namespace heed {
namespace {

/// q . k / 4 is 1e6 and differs by about one from key to key.
Tensor near(double middle, double deviation, int64_t length, uint64_t seed) {
  Rng rng(seed);
  const Tensor x(Shape{1, 2, length, 16}, DType::f32);
  fill_normal(x, middle, deviation, rng);
  return x;
}

/// The largest difference over the largest number.
double error(const Tensor& found, const Tensor& wanted) {
  const std::vector<double> a = found.to_doubles(), b = wanted.to_doubles();
  double worst = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    worst = std::max(worst, std::isnan(a[i]) ? HUGE_VAL : std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return worst / size;
}

template <class Attend>
void check_weights(int64_t length, Device device, const Attend& attend) {
  const Tensor q = near(1000, 1, length, 1).to(device), k = near(250, 1e-3, length, 2).to(device);
  Tensor one = Tensor::zeros(Shape{1, 2, length, length}, DType::f32);
  for (int64_t i = 0; i < 2 * length; ++i) one.data<float>()[i * length + i % length] = 1;
  const Tensor v = leaf(one.to(device));
  const Tensor map = attend(q, k, v);  // the output is the map, since the values are the identity
  const Tensor dout = near(0, 1, length, 3).to(device);
  const Tensor direction = matmul(dout, transpose(near(0, 1, length, 4).to(device), 2, 3));  // [1, 2, T, T]
  backward(sum(map * direction));
  CHECK(error(grad_of(v), matmul(transpose(map.detach(), 2, 3), direction)) < 1e-5);
}

/// Some neighbours, and some keys that lie apart: what is cut into several tiles and passes.
std::shared_ptr<const kernel::Pattern> scattered(int64_t length) {
  kernel::Pattern pattern{.queries = length, .keys = length, .first = {0}, .runs = {}};
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) {
      if (std::abs(i - j) < 4 || j % 7 == i % 2 || i % 31 == 5)
        pattern.runs.push_back({static_cast<int32_t>(j), static_cast<int32_t>(j + 1)});
    }
    pattern.first.push_back(static_cast<int64_t>(pattern.runs.size()));
  }
  return std::make_shared<const kernel::Pattern>(std::move(pattern));
}

}  // namespace

TEST_CASE("large scores: gradients of a pattern have the weights of the forward pass") {
  for (const Device device : devices()) {
    for (const int64_t length : {5, 40, 150}) {
      CAPTURE(length, device);
      check_weights(length, device, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
        return pattern_attention(q, k, v, {.scale = 0.25, .pattern = scattered(length)});
      });
    }
  }
}

TEST_CASE("large scores: gradients have the weights of the forward pass") {
  for (const Device device : devices()) {
    for (const int64_t length : {5, 40, 150}) {
      CAPTURE(length, device);
      for (const bool causal : {false, true}) {
        check_weights(length, device, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
          return attention(q, k, v, {.scale = 0.25, .causal = causal});
        });
      }
    }
  }
}

}  // namespace heed
