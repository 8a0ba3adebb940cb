// Rows of a table by index, and their gradient.
#include "core/kernels/gather.h"
#include "core/launch.h"

#include "tests/core/numbers.h"

using namespace heed;

TEST_CASE("gather: rows by index, also of a strided table") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t width = GENERATE(1, 5, 64, 100);
  const Tensor dense = random_tensor(Shape{50, width}, dtype);
  const Tensor ids = random_ids(Shape{7, 90}, 50);
  for (const Tensor& table : {dense, view::transpose(random_tensor(Shape{width, 50}, dtype, 2), 0, 1)}) {
    Tensor out(Shape{7, 90, width}, dtype);
    launch_here<kernel::Gather>(table, ids, out);
    const auto rows = table.to_doubles();
    std::vector<double> wanted;
    for (double id : ids.to_doubles()) {
      for (int64_t j = 0; j < width; ++j)
        wanted.push_back(rows[static_cast<size_t>(static_cast<int64_t>(id) * width + j)]);
    }
    CHECK(distance(out, wanted) == 0);
  }
}

TEST_CASE("scatter_add: repeated ids add up, in the same order for any threads") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t width = GENERATE(1, 5, 64, 200);
  const Tensor ids = random_ids(Shape{700}, 30);
  const Tensor rows = random_tensor(Shape{700, width}, dtype);
  const Tensor start = random_tensor(Shape{30, width}, dtype, 2);
  const auto scattered = [&] {
    Tensor table(Shape{30, width}, dtype);
    launch<kernel::Copy>(Device::cpu, start, table);
    launch_here<kernel::ScatterAdd>(ids, rows, table);
    return table;
  };
  auto wanted = start.to_doubles();
  const auto from = rows.to_doubles(), id = ids.to_doubles();
  for (size_t i = 0; i < 700; ++i) {
    for (size_t j = 0; j < static_cast<size_t>(width); ++j) {
      wanted[static_cast<size_t>(id[i]) * static_cast<size_t>(width) + j] +=
          from[i * static_cast<size_t>(width) + j];
    }
  }
  CHECK(distance(scattered(), wanted) < tolerance(dtype));
  CHECK(same_for_any_threads(scattered));
}

TEST_CASE("gather: an id outside the table is named with its place") {
  const OnEachDevice here;
  const Tensor table = random_tensor(Shape{10, 4});
  Tensor out(Shape{3, 4});
  const std::vector<int32_t> high = {1, 10, 2}, low = {1, 2, -1};
  CHECK_THROWS_WITH(launch_here<kernel::Gather>(table, Tensor::of<int32_t>(high, Shape{3}), out),
                    containing("id 10 at position 1") && containing("0 to 9"));
  CHECK_THROWS_WITH(launch_here<kernel::ScatterAdd>(Tensor::of<int32_t>(low, Shape{3}), out, table),
                    containing("id -1 at position 2"));
}
