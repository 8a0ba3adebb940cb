// Ops that take activations in bf16 give what they give for the same numbers in f32, rounded once, and
// gradients near those.
#include <functional>

#include "heed/autograd/autocast.h"
#include "heed/autograd/ops.h"
#include "heed/autograd/tape.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

using Inputs = std::span<const Tensor>;

/// An op of activations and parameters.
struct Case {
  std::string name;
  std::vector<Shape> activations, parameters;
  std::function<Tensor(Inputs x, Inputs parameters)> apply;
};

/// The result of an op, and the gradients of its activations, then of its parameters.
struct Found {
  Tensor y;
  std::vector<Tensor> gradients;
};

/// The op at activations that are rounded to bf16, and stay so with `narrow`, else become f32 again.
Found run(const Case& c, bool narrow, Rounding rounding) {
  Mirror there(device_here());
  const Autocast scope(rounding);
  std::vector<Tensor> leaves, x, parameters;
  uint32_t seed = 1;
  for (const Shape& shape : c.activations) {
    const Tensor rounded = cast(there(random_tensor(shape, DType::f32, seed++)), DType::bf16);
    leaves.push_back(leaf(narrow ? rounded : cast(rounded, DType::f32)));
    x.push_back(leaves.back());
  }
  for (const Shape& shape : c.parameters) {
    leaves.push_back(leaf(there(random_tensor(shape, DType::f32, seed++))));
    parameters.push_back(leaves.back());
  }
  const Tensor y = c.apply(x, parameters);
  backward(y, cast(there(random_tensor(y.shape(), DType::f32, seed)), y.dtype()));
  Found found{y.detach(), {}};
  for (size_t i = 0; i < leaves.size(); ++i) {
    found.gradients.push_back(grad_of(leaves[i]));
    const bool is_activation = i < x.size();
    CHECK(found.gradients.back().dtype() == (narrow && is_activation ? DType::bf16 : DType::f32));
  }
  return found;
}

/// The largest difference as a share of the largest number.
double share_off(const Tensor& found, const Tensor& wanted) {
  const auto a = found.to_doubles(), b = wanted.to_doubles();
  REQUIRE(a.size() == b.size());
  double off = 0, largest = 1e-6;
  for (size_t i = 0; i < b.size(); ++i) {
    off = std::isfinite(a[i]) ? std::max(off, std::abs(a[i] - b[i])) : HUGE_VAL;
    largest = std::max(largest, std::abs(b[i]));
  }
  return off / largest;
}

Rng source() { return Rng(5, device_here()); }

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const std::string& name, std::vector<Shape> x, std::vector<Shape> parameters,
                       std::function<Tensor(Inputs, Inputs)> apply) {
    all.push_back({name, std::move(x), std::move(parameters), std::move(apply)});
  };
  for (const int64_t rows : {3, 45, 700}) {
    const std::string size = " of " + std::to_string(rows) + " rows";
    add("linear" + size, {{rows, 40}}, {{56, 40}, {56}},
        [](Inputs x, Inputs p) { return linear(x[0], p[0], p[1]); });
    add("linear without bias" + size, {{rows, 40}}, {{56, 40}},
        [](Inputs x, Inputs p) { return linear(x[0], p[0], {}); });
    add("feed_forward" + size, {{rows, 40}}, {{72, 40}, {72}, {40, 72}, {40}},
        [](Inputs x, Inputs p) { return feed_forward(x[0], p[0], p[1], p[2], p[3]); });
    add("layer_norm" + size, {{rows, 40}}, {{40}, {40}},
        [](Inputs x, Inputs p) { return layer_norm(x[0], p[0], p[1]); });
    add("rms_norm" + size, {{rows, 40}}, {{40}}, [](Inputs x, Inputs p) { return rms_norm(x[0], p[0]); });
    add("add_positions" + size, {{1, rows, 40}}, {{rows, 40}}, [rows](Inputs x, Inputs p) {
      const std::vector<int32_t> starts{0, static_cast<int32_t>(rows / 3), static_cast<int32_t>(rows)};
      return add_positions(
          x[0], p[0],
          {.starts = Tensor::of<int32_t>(starts, Shape{3}, x[0].device()), .longest = rows - rows / 3});
    });
    add("product" + size, {{rows, 40}, {rows, 40}}, {}, [](Inputs x, Inputs) { return x[0] * x[1]; });
    for (const double p_drop : {0.0, 0.3}) {
      const std::string name = size + ", dropout " + std::to_string(p_drop);
      add("dropout" + name, {{rows, 40}}, {}, [p_drop](Inputs x, Inputs) {
        Rng rng = source();
        return dropout(x[0] * x[0], p_drop, &rng);
      });
      add("gelu_dropout" + name, {{rows, 40}}, {}, [p_drop](Inputs x, Inputs) {
        Rng rng = source();
        return gelu_dropout(x[0], p_drop, &rng);
      });
      add("add_dropout" + name, {{rows, 40}, {rows, 40}}, {}, [p_drop](Inputs x, Inputs) {
        Rng rng = source();
        return add_dropout(x[0], x[1], p_drop, &rng);
      });
      add("add_dropout_norm" + name, {{rows, 40}, {rows, 40}}, {{40}, {40}}, [p_drop](Inputs x, Inputs p) {
        Rng rng = source();
        return add_dropout_norm(x[0], x[1], p_drop, &rng, {}, p[0], p[1]).normalised;
      });
    }
  }
  return all;
}

}  // namespace

TEST_CASE("bf16 activations: results are those in f32, rounded, and gradients are near") {
  const OnEachDevice here;
  const Rounding rounding = GENERATE(Rounding::none, Rounding::bf16);
  for (const Case& c : cases()) {
    CAPTURE(c.name, static_cast<int>(rounding));
    const Found narrow = run(c, true, rounding), wide = run(c, false, rounding);
    CHECK(narrow.y.dtype() == DType::bf16);
    CHECK(share_off(narrow.y, wide.y) < 0.008);  // hidden units are rounded, too
    for (size_t i = 0; i < wide.gradients.size(); ++i) {
      CAPTURE(i);
      CHECK(share_off(narrow.gradients[i], wide.gradients[i]) < 0.02);
    }
  }
}

TEST_CASE("bf16 activations: a linear layer gives f32 from bf16, and bf16 from f32") {
  const OnEachDevice here;
  const DType from = GENERATE(DType::f32, DType::bf16);
  const DType to = from == DType::f32 ? DType::bf16 : DType::f32;
  Mirror there(device_here());
  const Tensor x = leaf(cast(there(random_tensor(Shape{70, 64}, DType::f32, 1)), from)),
               w = leaf(there(random_tensor(Shape{48, 64}, DType::f32, 2))),
               b = leaf(there(random_tensor(Shape{48}, DType::f32, 3)));
  const Autocast scope(Rounding::bf16);
  const Tensor y = linear(x, w, b, to);
  CHECK(y.dtype() == to);
  const NoGrad no_grad;
  const Tensor exact = matmul(cast(x.detach(), DType::f32), transpose(w.detach(), 0, 1)) + b.detach();
  CHECK(share_off(y, exact) < 0.01);
  const EnableGrad grad;
  backward(y, cast(there(random_tensor(y.shape(), DType::f32, 4)), to));
  CHECK(grad_of(x).dtype() == from);
  CHECK(grad_of(w).dtype() == DType::f32);
}

TEST_CASE("bf16 activations: dropout that narrows is dropout, then narrowed()") {
  const OnEachDevice here;
  Mirror there(device_here());
  const Autocast scope(Rounding::bf16);
  const Tensor given = there(random_tensor(Shape{45, 40}, DType::f32, 1));
  const auto run = [&](auto&& narrow) {
    const Tensor x = leaf(given);
    Rng rng = source();
    const Tensor y = narrow(x, &rng);
    backward(sum(square(cast(y, DType::f32))));
    return std::pair(y.detach().to(Device::cpu), grad_of(x).to(Device::cpu));
  };
  const auto fused = run([](const Tensor& x, Rng* rng) { return narrowed_dropout(x, 0.3, rng); });
  const auto parts = run([](const Tensor& x, Rng* rng) { return narrowed(dropout(x, 0.3, rng)); });
  CHECK(fused.first.dtype() == DType::bf16);
  CHECK(same_bits(fused.first, parts.first));
  CHECK(same_bits(fused.second, parts.second));
  CHECK(narrowed_dropout(given, 0.3, nullptr).dtype() == DType::f32);  // nothing is dropped
}

TEST_CASE("bf16 activations: narrowed() needs an Autocast of bf16, widened() does not") {
  const Tensor x = leaf(random_tensor(Shape{4, 5}));
  CHECK(narrowed(x).dtype() == DType::f32);
  {
    const Autocast scope(Rounding::bf16);
    const Tensor y = narrowed(x);
    CHECK(y.dtype() == DType::bf16);
    CHECK(narrowed(random_tensor(Shape{2}, DType::f64)).dtype() == DType::f64);
    backward(sum(widened(y)));
  }
  CHECK(distance(grad_of(x), Tensor::full(x.shape(), 1.0)) == 0);
  CHECK(widened(x).node() == x.node());
}

TEST_CASE("bf16 activations: other ops ask for f32, parameters of another type are refused") {
  const Tensor x = cast(random_tensor(Shape{4, 5}), DType::bf16);
  CHECK_THROWS_WITH(softmax(x), containing("softmax: computes in f32 and f64, not in bf16"));
  CHECK_THROWS_WITH(linear(x, random_tensor(Shape{3, 5}, DType::f64), {}),
                    containing("linear: bf16 [4, 5] with f64 [3, 5]"));
  CHECK_THROWS_WITH(
      linear(random_tensor(Shape{4, 5}, DType::f64), random_tensor(Shape{3, 5}, DType::f64), {}, DType::f32),
      containing("linear: a result of f32 with a weight of f64"));
}
