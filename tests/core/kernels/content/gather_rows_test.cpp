// Gathering rows per head by index, and its gradient.
#include "heed/core/kernels/content/gather.h"
#include "heed/core/launch.h"

#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

/// Ids of [0, length), every seventh -1.
Tensor some_ids(const Shape& shape, int32_t length) {
  std::vector<int32_t> ids;
  for (const double id : random_ids(shape, length).to_doubles())
    ids.push_back(ids.size() % 7 == 3 ? -1 : static_cast<int32_t>(id));
  return Tensor::of<int32_t>(ids, shape);
}

}  // namespace

TEST_CASE("gather_rows: each head by its own ids, also of a strided view, and -1 gives zeros") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t width = GENERATE(1, 5, 64, 100);
  const Tensor dense = random_tensor(Shape{2, 3, 20, width}, dtype);
  const Tensor heads = view::transpose(random_tensor(Shape{2, 20, 3, width}, dtype, 2), 1, 2);
  const Tensor own = some_ids(Shape{2, 3, 41}, 20), shared = some_ids(Shape{1, 1, 41}, 20);
  for (const Tensor& x : {dense, heads}) {
    for (const Tensor& given : {own, shared}) {
      const Tensor ids = view::expand(given, Shape{2, 3, 41});
      const Tensor out(Shape{2, 3, 41, width}, dtype);
      launch_here<kernel::GatherRows>(x, ids, out);
      const auto from = x.to_doubles(), id = ids.to_doubles();
      std::vector<double> wanted;
      for (size_t row = 0; row < id.size(); ++row) {
        for (size_t c = 0; c < static_cast<size_t>(width); ++c) {
          const auto at =
              (row / 41 * 20 + static_cast<size_t>(std::max(id[row], 0.0))) * static_cast<size_t>(width);
          wanted.push_back(id[row] < 0 ? 0 : from[at + c]);
        }
      }
      CHECK(distance(out, wanted) == 0);
    }
  }
}

TEST_CASE("scatter_add_rows: repeated ids add up, in the same order for any threads") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t width = GENERATE(1, 5, 64, 200);
  const Tensor ids = some_ids(Shape{2, 2, 700}, 30);
  const Tensor rows = random_tensor(Shape{2, 2, 700, width}, dtype);
  const auto put = [&] {
    const Tensor y = Tensor::zeros(Shape{2, 2, 30, width}, dtype);
    launch_here<kernel::ScatterAddRows>(ids, rows, y);
    return y;
  };
  const auto from = rows.to_doubles(), id = ids.to_doubles();
  const auto w = static_cast<size_t>(width);
  std::vector<double> wanted(4 * 30 * w);
  for (size_t row = 0; row < id.size(); ++row) {
    for (size_t c = 0; c < w && id[row] >= 0; ++c)
      wanted[(row / 700 * 30 + static_cast<size_t>(id[row])) * w + c] += from[row * w + c];
  }
  CHECK(distance(put(), wanted) < tolerance(dtype));
  CHECK(same_for_any_threads(put));
}

TEST_CASE("gather_rows: an id outside is named with its place") {
  const OnEachDevice here;
  const Tensor x = random_tensor(Shape{1, 2, 10, 4}), out(Shape{1, 2, 2, 4});
  const std::vector<int32_t> high = {1, 2, 3, 10}, low = {1, -2, 3, 4};
  CHECK_THROWS_WITH(launch_here<kernel::GatherRows>(x, Tensor::of<int32_t>(high, Shape{1, 2, 2}), out),
                    containing("id 10 at position 1 of head 1") && containing("0 to 9"));
  CHECK_THROWS_WITH(launch_here<kernel::ScatterAddRows>(Tensor::of<int32_t>(low, Shape{1, 2, 2}), out, x),
                    containing("id -2 at position 1 of head 0"));
}
