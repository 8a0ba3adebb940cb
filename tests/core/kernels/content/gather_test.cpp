// Gathering rows of a table by index, and its gradient.
#include "heed/core/kernels/content/gather.h"
#include "heed/core/launch.h"

#include "heed/tests/core/numbers.h"

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

TEST_CASE("scatter_add: an id of most rows, wherever its rows end among the sorted ones") {
  const OnEachDevice here;
  const int64_t n = GENERATE(64, 1500, 3000), width = GENERATE(1, 40);
  const Tensor rows = random_tensor(Shape{n, width}, DType::f64);
  const auto from = rows.to_doubles();
  for (const int64_t first : {int64_t{1}, int64_t{31}, int64_t{32}, int64_t{33}, n / 2, n / 64 * 32,
                              n / 64 * 32 + 1, n - 65, n - 33, n - 32, n - 2, n}) {
    if (first < 1) continue;
    // Two rows of an id before; those after are of two others.
    std::vector<int32_t> ids(static_cast<size_t>(n), 1);
    for (int64_t i = first; i < n; ++i) ids[static_cast<size_t>(i)] = i % 2 == 0 ? 2 : 3;
    ids[0] = ids[static_cast<size_t>(n / 3)] = 0;
    std::vector<double> wanted(static_cast<size_t>(4 * width), 1.0);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        wanted[static_cast<size_t>(ids[static_cast<size_t>(i)] * width + j)] +=
            from[static_cast<size_t>(i * width + j)];
      }
    }
    const Tensor table = Tensor::full(Shape{4, width}, 1, DType::f64);
    launch_here<kernel::ScatterAdd>(Tensor::of<int32_t>(ids, Shape{n}), rows, table);
    INFO(n << " rows, " << first << " of one id, width " << width);
    CHECK(distance(table, wanted) < tolerance(DType::f64));
  }
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
