// Means of segments of a sequence.
#include "heed/core/kernels/content/segment_mean.h"
#include "heed/core/launch.h"

#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

std::vector<double> means_of(const Tensor& x, const Tensor& lengths, const Tensor& maximum, int64_t m) {
  const Tensor y(Shape{x.extent(0), x.extent(1), m, x.extent(3)}, x.dtype());
  launch_here<kernel::SegmentMean>(x, lengths, maximum, y);
  return y.to_doubles();
}

/// Each of `batch` sequences counts up from 1.
Tensor counting(int64_t batch, int64_t length, DType dtype = DType::f32) {
  std::vector<double> values;
  for (int64_t i = 0; i < batch * length; ++i) values.push_back(static_cast<double>(i % length + 1));
  const Tensor wide = Tensor::of<double>(values, Shape{batch, 1, length, 1});
  const Tensor out(wide.shape(), dtype);
  launch<kernel::Copy>(Device::cpu, wide, out);
  return out;
}

Tensor lengths_of(const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>(values, Shape{static_cast<int64_t>(values.size())});
}

}  // namespace

TEST_CASE("segment_mean: runs whose sizes differ by one at most") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  CHECK(means_of(counting(1, 7, dtype), {}, {}, 3) == std::vector<double>{1.5, 3.5, 6});
  CHECK(means_of(counting(1, 4, dtype), {}, {}, 1) == std::vector<double>{2.5});
}

TEST_CASE("segment_mean: only what is no padding, and a short sequence has one run a position") {
  const OnEachDevice here;
  CHECK(means_of(counting(3, 5), lengths_of({4, 2, 0}), {}, 3) ==
        std::vector<double>{1, 2, 3.5, 1, 2, 0, 0, 0, 0});
}

TEST_CASE("segment_mean: all positions, in so many runs at most") {
  const OnEachDevice here;
  CHECK(means_of(counting(3, 4), {}, lengths_of({4, 2, 0}), 3) ==
        std::vector<double>{1, 2, 3.5, 1.5, 3.5, 0, 0, 0, 0});
}

TEST_CASE("segment_mean: the gradient is that of averages, and zero at padding") {
  const OnEachDevice here;
  const Tensor dy = Tensor::from(std::vector<float>{6, 8, 10}, Shape{1, 1, 3, 1}), dx(Shape{1, 1, 5, 1});
  launch_here<kernel::SegmentMeanBack>(dy, lengths_of({4}), Tensor(), dx);
  CHECK(dx.to_doubles() == std::vector<double>{6, 8, 5, 5, 0});
}
