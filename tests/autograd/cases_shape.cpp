// Op table: views and copies, products, reductions.
#include <algorithm>

#include "heed/tests/autograd/op_case.h"

namespace heed::plain {
namespace {

/// y whose element at some indices is x's at the indices that `from` makes of them.
Plain picked(const Plain& x, const Shape& shape,
             const std::function<std::vector<int64_t>(std::vector<int64_t>)>& from) {
  Plain y(shape);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = x[place(x.shape, from(indices(shape, i)))];
  return y;
}

Plain swapped(const Plain& x) {  // the last axis with the first
  Shape shape = x.shape;
  std::swap(shape[0], shape[-1]);
  return picked(x, shape, [](std::vector<int64_t> at) {
    std::swap(at.front(), at.back());
    return at;
  });
}

Plain joined(const Plains& parts, int64_t axis) {
  Shape shape = parts[0].shape;
  for (size_t i = 1; i < parts.size(); ++i) shape[axis] += parts[i].extent(axis);
  Plain y(shape);
  const auto along = static_cast<size_t>(shape.checked(axis));
  for (int64_t i = 0; i < y.size(); ++i) {
    auto at = indices(shape, i);
    size_t part = 0;
    while (at[along] >= parts[part].extent(axis)) at[along] -= parts[part++].extent(axis);
    y[i] = parts[part][place(parts[part].shape, at)];
  }
  return y;
}

Plain times(const Plain& a, const Plain& b) {  // [..., M, K] [..., K, N]
  const int64_t inner = a.extent(-1);
  Shape batch_a = a.shape, batch_b = b.shape;
  for (Shape* shape : {&batch_a, &batch_b}) {
    shape->erase(shape->rank() - 1);
    shape->erase(shape->rank() - 1);
  }
  Shape shape = broadcast("plain", batch_a, batch_b);
  shape.push_back(a.extent(-2));
  shape.push_back(b.extent(-1));
  Plain y(shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    auto left = indices(shape, i), right = left;
    for (int64_t k = 0; k < inner; ++k) {
      left[left.size() - 1] = k;
      right[right.size() - 2] = k;
      y[i] += a[place(a.shape, left)] * b[place(b.shape, right)];
    }
  }
  return y;
}

Plain transformed(const Plains& x) {  // x W^T + bias
  Shape shape = x[0].shape;
  shape[-1] = x[1].extent(0);
  Plain y(shape);
  const int64_t in = x[1].extent(1), out = x[1].extent(0);
  for (int64_t i = 0; i < y.size(); ++i) {
    y[i] = x.size() > 2 ? x[2][i % out] : 0;
    for (int64_t k = 0; k < in; ++k) y[i] += x[0][i / out * in + k] * x[1][i % out * in + k];
  }
  return y;
}

Plain beside(const Plain& a, const Plain& b) {  // along the last axis
  const int64_t left = a.extent(-1), right = b.extent(-1);
  Shape shape = a.shape;
  shape[-1] = left + right;
  Plain y(shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t row = i / (left + right), column = i % (left + right);
    y[i] = column < left ? a[row * left + column] : b[row * right + column - left];
  }
  return y;
}

Plain bent(Plain x) {  // GELU by tanh
  for (int64_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = 0.5 * at * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (at + 0.044715 * at * at * at)));
  }
  return x;
}

Plain largest(const Plain& x, int64_t axis) {
  Plain y(reduced(x, axis), -1e300);
  for (int64_t i = 0; i < x.size(); ++i) {
    double& maximum = y[place(y.shape, indices(x.shape, i))];
    maximum = std::max(maximum, x[i]);
  }
  return y;
}

Plain running(const Plain& x, int64_t axis) {
  Plain y(x.shape);
  const auto along = static_cast<size_t>(x.shape.checked(axis));
  for (int64_t i = 0; i < x.size(); ++i) {
    auto at = indices(x.shape, i);
    const int64_t last = at[along];
    for (at[along] = 0; at[along] <= last; ++at[along]) y[i] += x[place(x.shape, at)];
  }
  return y;
}

Plain scaled(Plain x, double factor) {
  for (double& value : x.values) value *= factor;
  return x;
}

std::vector<OpCase> copies() {
  return {
      {.op = "reshape(x, shape)",
       .shapes = {{{2, 3, 4}}, {{4, 1}}, {{0, 4}}},
       .large = {{64, 1024}},
       .apply =
           [](Inputs x) {
             return reshape(x[0], Shape{2, -1});
           },
       .reference =
           [](const Plains& x) {
             Plain y(Shape{2, x[0].size() / 2});
             y.values = x[0].values;
             return y;
           }},
      {.op = "reshape(x, shape)",
       .note = "to rank 0",
       .shapes = {{{1, 1}}, {{}}},
       .large = {{1}},
       .apply = [](Inputs x) { return reshape(x[0], Shape{}); },
       .reference = [](const Plains& x) { return Plain(Shape{}, x[0][0]); }},
      {.op = "transpose(x, a, b)",
       .shapes = {{{2, 3, 5}}, {{4, 7}}, {{1, 3}}, {{5}}, {{0, 3}}},
       .large = {{301, 257}},
       .apply = [](Inputs x) { return transpose(x[0], 0, -1); },
       .reference = [](const Plains& x) { return swapped(x[0]); }},
      {.op = "permute(x, axes)",
       .shapes = {{{2, 3, 5}}, {{1, 4, 1}}, {{2, 0, 3}}},
       .large = {{31, 47, 29}},
       .apply =
           [](Inputs x) {
             return permute(x[0], {2, 0, -2});
           },
       .reference =
           [](const Plains& x) {
             const Plain& from = x[0];
             return picked(from, Shape{from.extent(2), from.extent(0), from.extent(1)},
                           [](const std::vector<int64_t>& at) {
                             return std::vector<int64_t>{at[1], at[2], at[0]};
                           });
           }},
      {.op = "slice(x, axis, begin, end)",
       .shapes = {{{5, 3}}, {{4}}, {{3, 2, 2}}, {{3, 0}}},
       .large = {{301, 257}},
       .apply = [](Inputs x) { return slice(x[0], 0, 1, 3); },
       .reference =
           [](const Plains& x) {
             Shape shape = x[0].shape;
             shape[0] = 2;
             return picked(x[0], shape, [](std::vector<int64_t> at) {
               ++at[0];
               return at;
             });
           }},
      {.op = "slice(x, axis, begin, end)",
       .note = "last axis",
       .shapes = {{{3, 5}}, {{2, 3, 4}}, {{3}}},
       .large = {{301, 257}},
       .apply = [](Inputs x) { return slice(x[0], -1, 2, x[0].extent(-1)); },
       .reference =
           [](const Plains& x) {
             Shape shape = x[0].shape;
             shape[-1] -= 2;
             return picked(x[0], shape, [](std::vector<int64_t> at) {
               at.back() += 2;
               return at;
             });
           }},
      {.op = "expand(x, shape)",
       .shapes = {{{2, 1, 3}}, {{3}}, {{1}}, {{}}, {{4, 3}}},
       .large = {{700, 1, 3}},
       .apply =
           [](Inputs x) {
             const int64_t first = x[0].rank() == 3 ? x[0].extent(0) : 2;
             return expand(x[0], Shape{first, 4, 3});
           },
       .reference =
           [](const Plains& x) {
             const int64_t first = x[0].shape.rank() == 3 ? x[0].extent(0) : 2;
             return picked(x[0], Shape{first, 4, 3}, [](std::vector<int64_t> at) { return at; });
           }},
      {.op = "concat(parts, axis)",
       .shapes = {{{2, 3}, {2, 1}, {2, 4}}, {{3}, {1}, {0}}, {{1, 2, 2}, {1, 2, 2}, {1, 2, 2}}},
       .large = {{101, 100}, {101, 37}, {101, 64}},
       .apply = [](Inputs x) { return concat(x, -1); },
       .reference = [](const Plains& x) { return joined(x, -1); }},
      {.op = "concat(parts, axis)",
       .note = "first axis",
       .shapes = {{{2, 3}, {1, 3}}, {{0, 2}, {3, 2}}},
       .large = {{101, 64}, {200, 64}},
       .apply = [](Inputs x) { return concat(x, 0); },
       .reference = [](const Plains& x) { return joined(x, 0); }},
      {.op = "stack(parts, axis)",
       .shapes = {{{2, 3}, {2, 3}}, {{4}, {4}, {4}}, {{1, 2, 2}, {1, 2, 2}}, {{0, 3}, {0, 3}}},
       .large = {{101, 64}, {101, 64}},
       .apply = [](Inputs x) { return stack(x, 1); },
       .reference =
           [](const Plains& x) {
             Plains parts;
             for (const Plain& part : x) {
               Shape shape{part.extent(0), 1};
               for (int64_t axis = 1; axis < part.shape.rank(); ++axis) shape.push_back(part.extent(axis));
               parts.emplace_back(shape).values = part.values;
             }
             return joined(parts, 1);
           }},
      {.op = "select(x, axis, index)",
       .shapes = {{{5, 3}}, {{4}}, {{3, 2, 2}}, {{3, 0}}},
       .large = {{301, 257}},
       .apply = [](Inputs x) { return select(x[0], 0, -2); },
       .reference =
           [](const Plains& x) {
             Shape shape = x[0].shape;
             const int64_t index = shape[0] - 2;
             shape.erase(0);
             return picked(x[0], shape, [index](std::vector<int64_t> at) {
               at.insert(at.begin(), index);
               return at;
             });
           }},
      {.op = "select(x, axis, index)",
       .note = "last axis",
       .shapes = {{{3, 5}}, {{2, 3, 4}}},
       .large = {{301, 257}},
       .apply = [](Inputs x) { return select(x[0], -1, 1); },
       .reference =
           [](const Plains& x) {
             Shape shape = x[0].shape;
             shape.erase(-1);
             return picked(x[0], shape, [](std::vector<int64_t> at) {
               at.push_back(1);
               return at;
             });
           }},
      {.op = "gather(x, axis, index)",
       .shapes = {{{5, 3}, {4, 3}}, {{5}, {7}}, {{5, 2, 3}, {1, 2, 3}}, {{5, 0}, {2, 0}}, {{5, 2}, {0, 2}}},
       .large = {{50, 301}, {67, 301}},
       .kinds = {{}, ids_below(5)},
       .apply = [](Inputs x) { return gather(x[0], 0, x[1]); },
       .reference =
           [](const Plains& x) {
             Plain y(x[1].shape);
             for (int64_t i = 0; i < y.size(); ++i) {
               std::vector<int64_t> at = indices(y.shape, i);
               at[0] = static_cast<int64_t>(x[1][i]);
               y[i] = x[0][place(x[0].shape, at)];
             }
             return y;
           }},
      {.op = "contiguous(x)",
       .note = "of a transposed view",
       .shapes = {{{3, 5}}, {{1, 4}}, {{2, 3, 4}}, {{6}}, {{3, 0}}},
       .large = {{301, 257}},
       .apply = [](Inputs x) { return contiguous(transpose(x[0], 0, -1)); },
       .reference = [](const Plains& x) { return swapped(x[0]); }},
      {.op = "cast(x, dtype)",
       .shapes = {{{3, 5}}, {{}}, {{1}}, {{0}}},
       .large = {{301, 257}},
       .apply = [](Inputs x) { return cast(x[0], DType::f64); },
       .reference = [](const Plains& x) { return x[0]; }},
  };
}

std::vector<OpCase> products() {
  return {
      {.op = "matmul(a, b)",
       .shapes = {{{3, 4}, {4, 5}},
                  {{1, 1}, {1, 1}},
                  {{1, 7}, {7, 1}},
                  {{7, 1}, {1, 3}},
                  {{2, 3, 4}, {2, 4, 2}},
                  {{2, 1, 3, 2}, {3, 2, 4}},
                  {{3, 4}, {2, 4, 2}},
                  {{2, 2, 3}, {3, 1}},
                  {{0, 3}, {3, 2}},
                  {{2, 3}, {3, 0}},
                  {{2, 0}, {0, 3}}},
       .large = {{3, 150, 129}, {129, 141}},
       .apply = [](Inputs x) { return matmul(x[0], x[1]); },
       .reference = [](const Plains& x) { return times(x[0], x[1]); },
       .looser = 10,
       .looser_gradient = 20},
      {.op = "matmul(a, b)",
       .note = "many small ones",
       .shapes = {{{3, 5, 3, 4}, {3, 5, 4, 6}}},
       .large = {{9, 7, 33, 18}, {9, 7, 18, 35}},
       .apply = [](Inputs x) { return matmul(x[0], x[1]); },
       .reference = [](const Plains& x) { return times(x[0], x[1]); },
       .looser = 2,
       .looser_gradient = 4},
      {.op = "matmul(a, b)",
       .note = "long inner extent",
       .shapes = {{{3, 33}, {33, 2}}},
       .large = {{33, 5003}, {5003, 29}},
       .apply = [](Inputs x) { return matmul(x[0], x[1]); },
       .reference = [](const Plains& x) { return times(x[0], x[1]); },
       .looser = 100,
       .looser_gradient = 20},
      {.op = "matmul(a, b)",
       .note = "few rows",
       .shapes = {{{2, 9}, {9, 17}}},
       .large = {{3, 301}, {301, 1201}},
       .apply = [](Inputs x) { return matmul(x[0], x[1]); },
       .reference = [](const Plains& x) { return times(x[0], x[1]); },
       .looser = 20,
       .looser_gradient = 20},
      {.op = "linear(x, weight, bias)",
       .shapes = {{{3, 4}, {5, 4}, {5}},
                  {{2, 3, 4}, {2, 4}, {2}},
                  {{4}, {3, 4}, {3}},
                  {{1, 1}, {1, 1}, {1}},
                  {{0, 3}, {2, 3}, {2}}},
       .large = {{5, 61, 96}, {130, 96}, {130}},
       .apply = [](Inputs x) { return linear(x[0], x[1], x[2]); },
       .reference = transformed,
       .looser = 4,
       .looser_gradient = 20},
      {.op = "linear(x, weight, bias, result)",
       .shapes = {{{3, 4}, {5, 4}, {5}}, {{2, 3, 4}, {2, 4}, {2}}},
       .large = {{5, 61, 96}, {130, 96}, {130}},
       .apply = [](Inputs x) { return linear(x[0], x[1], x[2], x[1].dtype()); },
       .reference = transformed,
       .looser = 4,
       .looser_gradient = 20},
      {.op = "linear(x, weight, bias)",
       .note = "without bias",
       .shapes = {{{3, 4}, {5, 4}}, {{2, 1, 3}, {1, 3}}},
       .large = {{305, 96}, {130, 96}},
       .apply = [](Inputs x) { return linear(x[0], x[1], Tensor()); },
       .reference = transformed,
       .looser = 4,
       .looser_gradient = 20},
      {.op = "unstack(x)",
       .shapes = {{{3, 4}}, {{1, 2, 3}}, {{2, 1}}},
       .large = {{23, 61, 17}},
       .apply = [](Inputs x) { return stack(unstack(x[0]), 0); },
       .reference = [](const Plains& x) { return x[0]; }},
      {.op = "linear_each(x, weights, biases, result)",
       .shapes = {{{3, 4}, {5, 4}, {2, 4}, {5}, {2}},
                  {{2, 3, 4}, {2, 4}, {3, 4}, {2}, {3}},
                  {{4}, {3, 4}, {1, 4}, {3}, {1}},
                  {{0, 3}, {2, 3}, {2, 3}, {2}, {2}}},
       .large = {{5, 61, 96}, {130, 96}, {64, 96}, {130}, {64}},
       .apply =
           [](Inputs x) {
             return concat(linear_each(x[0], std::vector{x[1], x[2]}, std::vector{x[3], x[4]}, x[1].dtype()),
                           -1);
           },
       .reference =
           [](const Plains& x) {
             return beside(transformed({x[0], x[1], x[3]}), transformed({x[0], x[2], x[4]}));
           },
       .looser = 4,
       .looser_gradient = 20},
      {.op = "feed_forward(x, up, up_bias, down, down_bias)",
       .shapes = {{{3, 4}, {5, 4}, {5}, {2, 5}, {2}},
                  {{2, 3, 4}, {8, 4}, {8}, {4, 8}, {4}},
                  {{4}, {3, 4}, {3}, {1, 3}, {1}},
                  {{0, 3}, {2, 3}, {2}, {3, 2}, {3}}},
       .large = {{5, 61, 36}, {136, 36}, {136}, {36, 136}, {36}},
       .kinds = {between(-1, 1), between(-1, 1), between(-1, 1), between(-1, 1)},
       .apply = [](Inputs x) { return feed_forward(x[0], x[1], x[2], x[3], x[4]); },
       .reference =
           [](const Plains& x) {
             return transformed({bent(transformed({x[0], x[1], x[2]})), x[3], x[4]});
           },
       .looser = 16,
       .looser_gradient = 60},
      {.op = "feed_forward(x, up, up_bias, down, down_bias)",
       .note = "without biases",
       .shapes = {{{3, 4}, {8, 4}, {2, 8}}},
       .large = {{305, 36}, {136, 36}, {36, 136}},
       .kinds = {between(-1, 1), between(-1, 1), between(-1, 1)},
       .apply = [](Inputs x) { return feed_forward(x[0], x[1], Tensor(), x[2], Tensor()); },
       .reference =
           [](const Plains& x) {
             return transformed({bent(transformed({x[0], x[1]})), x[2]});
           },
       .looser = 16,
       .looser_gradient = 60},
  };
}

std::vector<OpCase> reductions() {
  const std::vector<Shapes> any = {{{2, 3, 5}}, {{7}}, {{}}, {{1, 1}}};
  const std::vector<Shapes> ranked = {{{2, 3, 5}}, {{7}}, {{1, 1}}, {{4, 1}}};
  const Shapes large = {{67, 41, 53}};
  const auto along = [](Inputs x) { return x[0].rank() > 1 ? -2 : -1; };
  const auto along_plain = [](const Plains& x) { return x[0].shape.rank() > 1 ? -2 : -1; };
  return {
      {.op = "sum(x)",
       .shapes = {{{2, 3, 5}}, {{7}}, {{}}, {{1, 1}}, {{0, 3}}},
       .large = large,
       .apply = [](Inputs x) { return sum(x[0]); },
       .reference = [](const Plains& x) { return sum_to(x[0], Shape{}); },
       .looser = 100},
      {.op = "mean(x)",
       .shapes = any,
       .large = large,
       .apply = [](Inputs x) { return mean(x[0]); },
       .reference =
           [](const Plains& x) {
             return scaled(sum_to(x[0], Shape{}), 1.0 / static_cast<double>(x[0].size()));
           }},
      {.op = "sum(x, axis)",
       .shapes = {{{2, 3, 5}}, {{7}}, {{1, 1}}, {{4, 1}}, {{0, 3}}, {{3, 0}}},
       .large = large,
       .apply = [along](Inputs x) { return sum(x[0], along(x)); },
       .reference = [along_plain](const Plains& x) { return sum_to(x[0], reduced(x[0], along_plain(x))); },
       .looser = 10},
      {.op = "sum(x, axis)",
       .note = "last axis",
       .shapes = ranked,
       .large = large,
       .apply = [](Inputs x) { return sum(x[0], -1); },
       .reference = [](const Plains& x) { return sum_to(x[0], reduced(x[0], -1)); },
       .looser = 10},
      {.op = "mean(x, axis)",
       .shapes = ranked,
       .large = large,
       .apply = [along](Inputs x) { return mean(x[0], along(x)); },
       .reference =
           [along_plain](const Plains& x) {
             const int64_t axis = along_plain(x);
             return scaled(sum_to(x[0], reduced(x[0], axis)), 1.0 / static_cast<double>(x[0].extent(axis)));
           }},
      {.op = "max(x, axis)",
       .shapes = ranked,
       .large = large,
       .kinds = {distinct(0)},
       .apply = [along](Inputs x) { return max(x[0], along(x)); },
       .reference = [along_plain](const Plains& x) { return largest(x[0], along_plain(x)); }},
      {.op = "max(x, axis)",
       .note = "last axis",
       .shapes = ranked,
       .large = large,
       .kinds = {distinct(0)},
       .apply = [](Inputs x) { return max(x[0], -1); },
       .reference = [](const Plains& x) { return largest(x[0], -1); }},
      {.op = "min(x, axis)",
       .shapes = ranked,
       .large = large,
       .kinds = {distinct(0)},
       .apply = [along](Inputs x) { return min(x[0], along(x)); },
       .reference =
           [along_plain](const Plains& x) { return scaled(largest(scaled(x[0], -1), along_plain(x)), -1); }},
      {.op = "log_sum_exp(x, axis)",
       .shapes = ranked,
       .large = large,
       .apply = [along](Inputs x) { return log_sum_exp(x[0], along(x)); },
       .reference =
           [along_plain](const Plains& x) {
             const auto power = [](double value) { return std::exp(value); };
             return map(sum_to(map(x[0], power), reduced(x[0], along_plain(x))),
                        [](double value) { return std::log(value); });
           },
       .looser = 4,
       .looser_gradient = 4},
      {.op = "sum_to(x, shape)",
       .shapes = {{{2, 4, 3}}, {{5, 4, 3}}, {{1, 1, 3}}, {{3, 2, 4, 3}}, {{0, 4, 3}}},
       .large = {{300, 71, 3}},
       .apply =
           [](Inputs x) {
             return sum_to(x[0], Shape{1, 3});
           },
       .reference =
           [](const Plains& x) {
             return sum_to(x[0], Shape{1, 3});
           },
       .looser = 100},
      {.op = "cumulative_sum(x, axis)",
       .shapes = {{{2, 3, 5}}, {{7}}, {{1, 1}}, {{4, 1}}, {{0, 3}}, {{3, 0}}},
       .large = {{67, 41, 53}},
       .apply = [along](Inputs x) { return cumulative_sum(x[0], along(x)); },
       .reference = [along_plain](const Plains& x) { return running(x[0], along_plain(x)); },
       .looser = 10,
       .looser_gradient = 10},
      {.op = "cumulative_sum(x, axis)",
       .note = "last axis",
       .shapes = ranked,
       .large = {{67, 41, 53}},
       .apply = [](Inputs x) { return cumulative_sum(x[0], -1); },
       .reference = [](const Plains& x) { return running(x[0], -1); },
       .looser = 10,
       .looser_gradient = 10},
  };
}

}  // namespace

std::vector<OpCase> shape_cases() {
  std::vector<OpCase> all = copies();
  for (auto family : {products, reductions}) {
    for (OpCase& row : family()) all.push_back(std::move(row));
  }
  return all;
}

}  // namespace heed::plain
