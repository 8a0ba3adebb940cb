// Gathers and scatter-adds of rows by index: of a table, and of each head.
#include "heed/core/kernels/content/gather.h"
#include "heed/core/launch.h"

#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

/// Random ids of [0, length); one in seven is -1.
Tensor ids_or_none(const Shape& shape, int32_t length) {
  std::vector<int32_t> ids;
  for (const double id : random_ids(shape, length).to_doubles())
    ids.push_back(ids.size() % 7 == 3 ? -1 : static_cast<int32_t>(id));
  return Tensor::of<int32_t>(ids, shape);
}

}  // namespace

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
    std::vector<double> expected;
    for (double id : ids.to_doubles()) {
      for (int64_t j = 0; j < width; ++j)
        expected.push_back(rows[static_cast<size_t>(static_cast<int64_t>(id) * width + j)]);
    }
    CHECK(distance(out, expected) == 0);
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
  auto expected = start.to_doubles();
  const auto from = rows.to_doubles(), id = ids.to_doubles();
  for (size_t i = 0; i < 700; ++i) {
    for (size_t j = 0; j < static_cast<size_t>(width); ++j) {
      expected[static_cast<size_t>(id[i]) * static_cast<size_t>(width) + j] +=
          from[i * static_cast<size_t>(width) + j];
    }
  }
  CHECK(distance(scattered(), expected) < tolerance(dtype));
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
    std::vector<double> expected(static_cast<size_t>(4 * width), 1.0);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        expected[static_cast<size_t>(ids[static_cast<size_t>(i)] * width + j)] +=
            from[static_cast<size_t>(i * width + j)];
      }
    }
    const Tensor table = Tensor::full(Shape{4, width}, 1, DType::f64);
    launch_here<kernel::ScatterAdd>(Tensor::of<int32_t>(ids, Shape{n}), rows, table);
    INFO(n << " rows, " << first << " of one id, width " << width);
    CHECK(distance(table, expected) < tolerance(DType::f64));
  }
}

TEST_CASE("gather: an id outside the table is named with its position") {
  const OnEachDevice here;
  const Tensor table = random_tensor(Shape{10, 4});
  Tensor out(Shape{3, 4});
  const std::vector<int32_t> high = {1, 10, 2}, low = {1, 2, -1};
  CHECK_THROWS_WITH(launch_here<kernel::Gather>(table, Tensor::of<int32_t>(high, Shape{3}), out),
                    containing("id 10 at position 1") && containing("0 to 9"));
  CHECK_THROWS_WITH(launch_here<kernel::ScatterAdd>(Tensor::of<int32_t>(low, Shape{3}), out, table),
                    containing("id -1 at position 2"));
}

TEST_CASE("gather_rows: each head by its own ids, also of a strided view, and -1 gives zeros") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t width = GENERATE(1, 5, 64, 100);
  const Tensor dense = random_tensor(Shape{2, 3, 20, width}, dtype);
  const Tensor heads = view::transpose(random_tensor(Shape{2, 20, 3, width}, dtype, 2), 1, 2);
  const Tensor ids_of_heads = ids_or_none(Shape{2, 3, 41}, 20), shared = ids_or_none(Shape{1, 1, 41}, 20);
  for (const Tensor& x : {dense, heads}) {
    for (const Tensor& given : {ids_of_heads, shared}) {
      const Tensor ids = view::expand(given, Shape{2, 3, 41});
      const Tensor out(Shape{2, 3, 41, width}, dtype);
      launch_here<kernel::GatherRows>(x, ids, out);
      const auto from = x.to_doubles(), id = ids.to_doubles();
      std::vector<double> expected;
      for (size_t row = 0; row < id.size(); ++row) {
        for (size_t c = 0; c < static_cast<size_t>(width); ++c) {
          const auto at =
              (row / 41 * 20 + static_cast<size_t>(std::max(id[row], 0.0))) * static_cast<size_t>(width);
          expected.push_back(id[row] < 0 ? 0 : from[at + c]);
        }
      }
      CHECK(distance(out, expected) == 0);
    }
  }
}

TEST_CASE("scatter_add_rows: repeated ids add up, in the same order for any threads") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t width = GENERATE(1, 5, 64, 200);
  const Tensor ids = ids_or_none(Shape{2, 2, 700}, 30);
  const Tensor rows = random_tensor(Shape{2, 2, 700, width}, dtype);
  const auto scattered = [&] {
    const Tensor y = Tensor::zeros(Shape{2, 2, 30, width}, dtype);
    launch_here<kernel::ScatterAddRows>(ids, rows, y);
    return y;
  };
  const auto from = rows.to_doubles(), id = ids.to_doubles();
  const auto w = static_cast<size_t>(width);
  std::vector<double> expected(4 * 30 * w);
  for (size_t row = 0; row < id.size(); ++row) {
    for (size_t c = 0; c < w && id[row] >= 0; ++c)
      expected[(row / 700 * 30 + static_cast<size_t>(id[row])) * w + c] += from[row * w + c];
  }
  CHECK(distance(scattered(), expected) < tolerance(dtype));
  CHECK(same_for_any_threads(scattered));
}

TEST_CASE("gather_rows: an id outside is named with its position") {
  const OnEachDevice here;
  const Tensor x = random_tensor(Shape{1, 2, 10, 4}), out(Shape{1, 2, 2, 4});
  const std::vector<int32_t> high = {1, 2, 3, 10}, low = {1, -2, 3, 4};
  CHECK_THROWS_WITH(launch_here<kernel::GatherRows>(x, Tensor::of<int32_t>(high, Shape{1, 2, 2}), out),
                    containing("id 10 at position 1 of head 1") && containing("0 to 9"));
  CHECK_THROWS_WITH(launch_here<kernel::ScatterAddRows>(Tensor::of<int32_t>(low, Shape{1, 2, 2}), out, x),
                    containing("id -2 at position 1 of head 0"));
}
