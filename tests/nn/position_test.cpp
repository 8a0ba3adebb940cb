// tests nn/position.h
#include "heed/nn/position.h"

#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"

namespace heed {

TEST_CASE("position: sinusoids are those of the formula") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  for (const int64_t width : {6, 7, 1}) {
    Position position(PositionKind::sinusoid, 50, width, rng);
    const auto y = position(Tensor::zeros(Shape{2, 40, width}), 10).to_doubles();
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t t = 0; t < 40; ++t) {
        for (int64_t i = 0; i < width; ++i) {
          const double pair = static_cast<double>(i - i % 2);
          const double angle =
              static_cast<double>(t + 10) / std::pow(10000.0, pair / static_cast<double>(width));
          const double expected = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
          CHECK(std::abs(y[static_cast<size_t>((b * 40 + t) * width + i)] - expected) < 1e-6);
        }
      }
    }
    CHECK(count_parameters(position) == 0);
    CHECK(tensors(position).empty());
  }
}

TEST_CASE("position: sinusoids in halves are the interleaved ones, sines first") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  for (const size_t width : {6, 7, 1}) {
    const auto extent = static_cast<int64_t>(width);
    const Tensor zeros = Tensor::zeros(Shape{1, 9, extent});
    const auto interleaved = Position(PositionKind::sinusoid, 9, extent, rng)(zeros, 0).to_host();
    const auto halves = Position(PositionKind::sinusoid_halves, 9, extent, rng)(zeros, 0).to_host();
    const size_t sines = (width + 1) / 2;
    for (size_t t = 0; t < 9; ++t) {
      for (size_t i = 0; i < width; ++i)
        CHECK(halves[t * width + i] == interleaved[t * width + (i < sines ? 2 * i : 2 * (i - sines) + 1)]);
    }
  }
}

TEST_CASE("position: a learned table is trained") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  Position position(PositionKind::learned, 5, 3, rng);
  CHECK(count_parameters(position) == 15);
  const Tensor y = position(Tensor::zeros(Shape{2, 2, 3}), 3);
  const auto table = parameters(position)[0].tensor->to_host();
  const auto values = y.to_host();
  for (size_t i = 0; i < 12; ++i) CHECK(values[i] == table[9 + i % 6]);
  backward(sum(y));
  const auto gradient = grad_of(*parameters(position)[0].tensor).to_host();
  for (size_t i = 0; i < 15; ++i) CHECK(gradient[i] == (i < 9 ? 0.0f : 2.0f));
}

TEST_CASE("position: a learned table starts with the deviation it is given") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  for (const double deviation : {0.02, 0.5, 0.0}) {
    Position position(PositionKind::learned, 100, 100, rng, deviation);
    double squares = 0;
    for (const float one : parameters(position)[0].tensor->to_host()) squares += one * one;
    CHECK(std::sqrt(squares / 10000) == Approx(deviation).epsilon(0.05));
  }
}

TEST_CASE("position: none adds nothing, and doubles stay doubles") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  const Tensor x = Tensor::from(std::vector<float>{1, 2}, Shape{1, 1, 2});
  CHECK(Position(PositionKind::none, 1, 2, rng)(x, 100).to_host() == x.to_host());
  CHECK(Position(PositionKind::sinusoid, 4, 2, rng)(cast(x, DType::f64), 0).dtype() == DType::f64);
}

TEST_CASE("position: past the longest input it says how to go on") {
  const DefaultDevice device(any_device());
  Rng rng(1);
  const Position position(PositionKind::sinusoid, 8, 2, rng);
  CHECK_NOTHROW(position(Tensor::zeros(Shape{1, 8, 2}), 0));
  CHECK_THROWS_WITH(position(Tensor::zeros(Shape{1, 9, 2}), 0),
                    containing("9 tokens") && containing("made for 8") && containing("max-length"));
  CHECK_THROWS_WITH(position(Tensor::zeros(Shape{1, 1, 2}), 8), containing("9 tokens"));
  for (const auto kind : {PositionKind::sinusoid, PositionKind::learned}) {
    for (const int64_t max_length : {int64_t{1} << 60, int64_t{1} << 61, INT64_MAX})
      CHECK_THROWS_WITH(Position(kind, max_length, 8, rng),
                        containing(std::to_string(max_length)) && containing("any memory"));
  }
}

}  // namespace heed
