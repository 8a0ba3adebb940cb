// Reductions over all combinations of axes against plain loops.
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"

#include <limits>
#include <utility>

#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

/// Index of the element of `small` (extents 1 or equal) that element i of `shape` belongs to, and its place
/// among those.
struct Places {
  std::vector<size_t> group;
  std::vector<int64_t> place;
};

Places places(const Shape& shape, const Shape& small) {
  Places out;
  for (int64_t i = 0; i < shape.size(); ++i) {
    int64_t rest = i, group = 0, group_step = 1, place = 0, place_step = 1;
    for (int64_t axis = shape.rank() - 1; axis >= 0; --axis) {
      const int64_t index = rest % shape[axis];
      rest /= shape[axis];
      if (small[axis] == shape[axis]) {
        group += index * group_step;
        group_step *= shape[axis];
      } else {
        place += index * place_step;
        place_step *= shape[axis];
      }
    }
    out.group.push_back(static_cast<size_t>(group));
    out.place.push_back(place);
  }
  return out;
}

/// Every shape that `shape` can be summed to.
std::vector<Shape> reductions(const Shape& shape) {
  std::vector<Shape> out;
  for (uint32_t bits = 0; bits < (1U << shape.rank()); ++bits) {
    Shape small = shape;
    for (int64_t axis = 0; axis < shape.rank(); ++axis) {
      if (((bits >> axis) & 1U) != 0) small[axis] = 1;
    }
    out.push_back(small);
  }
  return out;
}

}  // namespace

TEST_CASE("sum: every choice of axes, with and without gaps") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const Tensor base = random_tensor(Shape{6, 5, 7, 19}, dtype);
  const std::vector<int64_t> order = {2, 0, 3, 1};
  for (const Tensor& x : {base, view::permute(base, order), view::slice(base, 3, 1, 18)}) {
    const auto in = x.to_doubles();
    for (const Shape& small : reductions(x.shape())) {
      Tensor y(small, dtype);
      launch_here<kernel::Sum>(x, y);
      std::vector<double> wanted(static_cast<size_t>(small.size()), 0.0);
      const Places at = places(x.shape(), small);
      for (size_t i = 0; i < in.size(); ++i) wanted[at.group[i]] += in[i];
      CHECK(distance(y, wanted) < tolerance(dtype));
    }
  }
}

TEST_CASE("sum: long axes are exact to float's last places") {
  const OnEachDevice here;
  const Tensor x = random_tensor(Shape{3000, 65}, DType::f32, 7, 0, 1);
  const auto in = x.to_doubles();
  for (const Shape& small : {Shape{1, 1}, Shape{1, 65}, Shape{3000, 1}}) {
    Tensor y(small);
    launch_here<kernel::Sum>(x, y);
    std::vector<double> wanted(static_cast<size_t>(small.size()), 0.0);
    const Places at = places(x.shape(), small);
    for (size_t i = 0; i < in.size(); ++i) wanted[at.group[i]] += in[i];
    CHECK(distance(y, wanted) < 5e-7);
    CHECK(same_for_any_threads([&] {
      Tensor again(small);
      launch_here<kernel::Sum>(x, again);
      return again;
    }));
  }
}

TEST_CASE("sum: few sums of many numbers, whose pieces are added by many threads") {
  const OnEachDevice here;
  for (const auto& [shape, small] : {std::pair{Shape{40000, 3}, Shape{1, 3}},
                                     {Shape{3, 70000}, Shape{3, 1}},
                                     {Shape{300000, 1}, Shape{1, 1}},
                                     {Shape{9000, 40}, Shape{1, 40}}}) {
    // Whole numbers, so that any order gives the same.
    const Tensor x = random_tensor(shape, DType::f32, 7, -100, 100);
    for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = std::round(x.data<float>()[i]);
    const auto in = x.to_doubles();
    Tensor y(small);
    launch_here<kernel::Sum>(x, y);
    std::vector<double> wanted(static_cast<size_t>(small.size()), 0.0);
    const Places at = places(x.shape(), small);
    for (size_t i = 0; i < in.size(); ++i) wanted[at.group[i]] += in[i];
    INFO(to_string(shape) << " to " << to_string(small));
    CHECK(y.to_doubles() == wanted);
  }
}

TEST_CASE("sum: an expanded input and a strided output") {
  const OnEachDevice here;
  const Tensor x = view::expand(Tensor::from({1, 2, 3}), Shape{4, 3});
  Tensor y(Shape{1, 3}), z(Shape{4, 1});
  launch_here<kernel::Sum>(x, y);
  launch_here<kernel::Sum>(x, z);
  CHECK(y.to_host() == std::vector<float>{4, 8, 12});
  CHECK(z.to_host() == std::vector<float>{6, 6, 6, 6});
  Tensor whole = Tensor::zeros(Shape{3, 2});
  launch_here<kernel::Sum>(x, view::transpose(view::slice(whole, 1, 1, 2), 0, 1));
  CHECK(whole.to_host() == std::vector<float>{0, 4, 0, 8, 0, 12});
}

TEST_CASE("sum: of nothing is zero") {
  const OnEachDevice here;
  Tensor x(Shape{0, 4}), y(Shape{1, 4});
  launch_here<kernel::Sum>(x, y);
  CHECK(y.to_host() == std::vector<float>(4, 0.F));
}

TEST_CASE("max: values, first places and gradient for every choice of axes") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  // Few different values, so that there are ties.
  const Tensor base = random_tensor(Shape{4, 5, 7, 40}, dtype);
  visit_float("test", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for (int64_t i = 0; i < base.size(); ++i) base.data<T>()[i] = std::round(base.data<T>()[i] * T(9));
  });
  const std::vector<int64_t> order = {3, 1, 0, 2};
  for (const Tensor& x : {base, view::permute(base, order)}) {
    const auto in = x.to_doubles();
    for (const Shape& small : reductions(x.shape())) {
      Tensor y(small, dtype), index(small, DType::i64);
      launch_here<kernel::Max>(x, y, index);
      const auto size = static_cast<size_t>(small.size());
      std::vector<double> wanted(size, -INFINITY), first(size, 0.0);
      const Places at = places(x.shape(), small);
      for (size_t i = 0; i < in.size(); ++i) {
        if (in[i] > wanted[at.group[i]]) {
          wanted[at.group[i]] = in[i];
          first[at.group[i]] = static_cast<double>(at.place[i]);
        }
      }
      CHECK(distance(y, wanted) == 0);
      CHECK(distance(index, first) == 0);

      const Tensor dy = random_tensor(small, dtype, 9);
      Tensor dx = empty_like(x, x.shape());
      launch_here<kernel::MaxBack>(index, dy, dx);
      const auto g = dy.to_doubles();
      std::vector<double> slope(in.size(), 0.0);
      for (size_t i = 0; i < in.size(); ++i) {
        if (static_cast<double>(at.place[i]) == first[at.group[i]]) slope[i] = g[at.group[i]];
      }
      CHECK(distance(dx, slope) == 0);
    }
  }
}

TEST_CASE("max: a NaN is found wherever it stands, rows of -inf have a place") {
  const OnEachDevice here;
  std::vector<float> values(80, 1.F);
  values[70] = std::nanf("");
  const Tensor x = Tensor::from(values, Shape{2, 40});
  Tensor y(Shape{2, 1}), index(Shape{2, 1}, DType::i64);
  launch_here<kernel::Max>(x, y, index);
  CHECK(y.to_host()[0] == 1);
  CHECK(std::isnan(y.to_host()[1]));
  CHECK(index.to_doubles()[1] == 30);
  launch_here<kernel::Max>(Tensor::full(Shape{2, 40}, -INFINITY), y, index);
  CHECK(y.to_host()[0] == -INFINITY);
  CHECK(index.to_doubles()[0] == 0);
  CHECK_THROWS_WITH(launch_here<kernel::Max>(Tensor(Shape{2, 0}), y, index), containing("[2, 0]"));
}

TEST_CASE("cumulative_sum: along each axis, both ways") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const Tensor base = random_tensor(Shape{4, 30, 270}, dtype);
  for (const Tensor& x : {base, view::transpose(base, 1, 2)}) {
    for (int64_t axis = 0; axis < 3; ++axis) {
      for (bool reverse : {false, true}) {
        Tensor y = empty_like(x, x.shape());
        launch_here<kernel::CumulativeSum>(x, axis, reverse, y);
        std::vector<double> wanted = x.to_doubles();
        const Shape& s = x.shape();
        int64_t step = 1;
        for (int64_t i = axis + 1; i < 3; ++i) step *= s[i];
        const auto size = static_cast<int64_t>(wanted.size());
        for (int64_t k = 0; k < size; ++k) {
          const int64_t i = reverse ? size - 1 - k : k;
          const int64_t t = i / step % s[axis];
          if (reverse ? t + 1 < s[axis] : t > 0) {
            wanted[static_cast<size_t>(i)] += wanted[static_cast<size_t>(reverse ? i + step : i - step)];
          }
        }
        CHECK(distance(y, wanted) < tolerance(dtype));
      }
    }
  }
}

TEST_CASE("square_sum: in double, beyond float's range, the same for any threads") {
  const OnEachDevice here;
  const Tensor x = random_tensor(Shape{200003});
  double wanted = 0;
  for (double value : x.to_doubles()) wanted += value * value;
  const auto total = [&] {
    Tensor out(Shape{1}, DType::f64);
    launch_here<kernel::SquareSum>(x, Tensor(), out);
    return out;
  };
  CHECK(total().item() == Approx(wanted).epsilon(1e-12));
  CHECK(same_for_any_threads(total));
  Tensor out(Shape{1}, DType::f64);
  launch_here<kernel::SquareSum>(Tensor::full(Shape{3}, 1e30), Tensor(), out);
  CHECK(out.item() == Approx(3e60));
  launch_here<kernel::SquareSum>(Tensor(Shape{0}), Tensor(), out);
  CHECK(out.item() == 0);
}

TEST_CASE("square_sum: NaN where a checked number is not finite, else as without them") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const Tensor x = random_tensor(Shape{50021}, dtype);
  Tensor expected(Shape{1}, DType::f64), out(Shape{1}, DType::f64);
  launch_here<kernel::SquareSum>(x, Tensor(), expected);
  const Tensor checked = random_tensor(Shape{700}, dtype, 2);
  launch_here<kernel::SquareSum>(x, checked, out);
  CHECK(out.item() == expected.item());
  for (const double bad : {double(NAN), HUGE_VAL, -HUGE_VAL}) {
    const Tensor broken = random_tensor(Shape{700}, dtype, 2);
    launch<kernel::Fill>(Device::cpu, view::slice(broken, 0, 690, 691), bad);
    launch_here<kernel::SquareSum>(x, broken, out);
    CHECK(std::isnan(out.item()));
  }
}
