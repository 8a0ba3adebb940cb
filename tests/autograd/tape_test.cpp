// The tape: what it records, how gradients accumulate, and that nothing leaks.
#include "heed/autograd/tape.h"

#include <array>
#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/tests/device.h"

namespace heed {
namespace {

using Floats = std::vector<float>;

Tensor leaf_of(std::initializer_list<float> values) { return leaf(Tensor::from(values)); }

/// A step whose gradient is whatever the test says.
Tensor step(const Tensor& x, Vjp vjp) { return record("step", x.detach(), {&x}, std::move(vjp)); }

TEST_CASE("tape: nothing is recorded without a leaf, nor under NoGrad") {
  const Tensor x = Tensor::from({1, 2});
  CHECK_FALSE((x * x).node());
  const Tensor p = leaf_of({3, 4});
  CHECK((p * x).node());
  {
    const NoGrad no_grad;
    CHECK_FALSE(recording());
    CHECK_FALSE((p * x).node());
    {
      const NoGrad again;
      CHECK_FALSE(recording());
      const EnableGrad on;
      CHECK((p * x).node());
    }
    CHECK_FALSE(recording());
  }
  CHECK(recording());
  CHECK_FALSE(p.detach().node());
  CHECK_THROWS_WITH(backward(sum(x)), containing("backward: nothing was recorded"));
}

TEST_CASE("tape: a leaf keeps its gradient, and a second loss adds to it") {
  const Tensor p = leaf_of({1, -2, 3});
  CHECK_FALSE(grad_of(p));
  backward(sum(square(p)));
  CHECK(grad_of(p).to_host() == Floats{2, -4, 6});
  const Tensor held = grad_of(p);
  backward(sum(p));
  CHECK(grad_of(p).to_host() == Floats{3, -3, 7});
  CHECK(held.to_host() == Floats{2, -4, 6});  // what was handed out stays as it was
  CHECK_THROWS_WITH(grad_of(Tensor::from({1})), containing("grad_of: not a leaf"));
  CHECK_THROWS_WITH(grad_of(p * p), containing("grad_of: not a leaf"));
}

TEST_CASE("tape: a leaf may be the loss itself") {
  const Tensor p = leaf_of({5});
  backward(p);
  backward(p);
  CHECK(grad_of(p).to_host() == Floats{2});
}

TEST_CASE("tape: gradients of a shared input add up") {
  const Tensor p = leaf_of({2, 3});
  SECTION("used twice by one op") {
    backward(sum(p * p));
    CHECK(grad_of(p).to_host() == Floats{4, 6});
  }
  SECTION("handed to two inputs untouched") {
    backward(sum(p + p));
    CHECK(grad_of(p).to_host() == Floats{2, 2});
  }
  SECTION("a diamond, one side longer") {
    const Tensor h = square(p);                 // p^2
    backward(sum(exp(h * 0.0) * h + h * 2.0));  // 3 p^2
    CHECK(grad_of(p).to_host() == Floats{12, 18});
  }
  SECTION("many uses") {
    Tensor total = p;
    for (int i = 0; i < 9; ++i) total = total + p;
    backward(sum(total));
    CHECK(grad_of(p).to_host() == Floats{10, 10});
  }
}

TEST_CASE("tape: leaves own their gradients, dense, whatever the ops share") {
  const Tensor a = leaf_of({1, 2}), b = leaf_of({3, 4});
  const Tensor dy = Tensor::from({1, 1});
  backward(a + b, dy);
  CHECK(grad_of(a).storage() != grad_of(b).storage());
  CHECK(grad_of(a).storage() != dy.storage());
  const Tensor c = leaf(Tensor::full(Shape{3, 2}, 1));
  backward(sum(c));
  CHECK(grad_of(c).contiguous());
}

TEST_CASE("tape: gradients of both sides, and of one side only") {
  const Tensor a = leaf_of({1, 2}), fixed = Tensor::from({5, 6});
  backward(sum(a * fixed));
  CHECK(grad_of(a).to_host() == Floats{5, 6});
  const Tensor b = leaf_of({1, 2});
  backward(sum(fixed / b - b));
  CHECK(grad_of(b).to_host() == Floats{-6, -2.5});
}

TEST_CASE("tape: a chain of a million ops is destroyed, and differentiated, without deep recursion") {
  const int64_t before = live_nodes();
  const Tensor p = leaf_of({1, 2});
  for (const bool sweeps : {false, true}) {
    Tensor y = p;
    for (int i = 0; i < 1'000'000; ++i) y = transpose(y, 0, 0);
    CHECK(live_nodes() == before + 1'000'001);
    if (sweeps) {
      backward(y, Tensor::from({3, 4}));
      CHECK(grad_of(p).to_host() == Floats{3, 4});
      CHECK(live_nodes() == before + 2);  // p, and the one that y still holds
    }
    y = Tensor();
    CHECK(live_nodes() == before + 1);
  }
}

TEST_CASE("tape: memory falls while gradients are made") {
  const int64_t each = 1 << 20;
  const Tensor p = leaf(Tensor::full(Shape{each / 4}, 0.5));
  const int64_t start = memory_use().live;
  constexpr int count = 20;
  int64_t halfway = 0;
  {
    Tensor y = p;
    for (int i = 0; i < count; ++i) {
      if (i == count / 2) {
        y = step(y, [&](const Tensor& dy) -> Gradients {
          halfway = memory_use().live - start;
          return {dy};
        });
      }
      y = tanh(y);
    }
    CHECK(memory_use().live - start >= count * each);
    const Tensor dy = Tensor::full(p.shape(), 1);
    y = record("end", y.detach(), {&y}, [](const Tensor& up) -> Gradients { return {up}; });
    const int64_t full = memory_use().live - start;
    reset_peak();
    backward(y, dy);
    CHECK(memory_use().peak - start <= full + 2 * each);
    CHECK(halfway <= full * 7 / 10);
  }
  CHECK(memory_use().live - start <= each * 5 / 4);  // the leaf's gradient
}

TEST_CASE("tape: an op keeps only what its gradient reads") {
  const int64_t each = 1 << 20;
  const Tensor p = leaf(Tensor::full(Shape{each / 4}, 0.5));
  const int64_t start = memory_use().live;
  const Tensor y = exp(p * 2.0) + 1.0;  // exp keeps its result; the scaling and the sum keep nothing
  CHECK(memory_use().live - start <= each * 9 / 4);
}

TEST_CASE("tape: leaves in an arena are written there") {
  const Tensor arena = Tensor::full(Shape{5}, 99);
  const Tensor p = leaf_of({1, 2, 3});
  Node& node = *p.node();
  node.grad = arena.seen_as(Shape{3}, Strides{1}, 1);
  node.in_arena = true;
  node.fresh = true;
  CHECK_FALSE(grad_of(p));
  backward(sum(p * 2.0));
  CHECK(arena.to_host() == Floats{99, 2, 2, 2, 99});
  CHECK_FALSE(node.fresh);
  backward(sum(p * 3.0));
  CHECK(arena.to_host() == Floats{99, 5, 5, 5, 99});
  CHECK(grad_of(p).storage() == arena.storage());
  node.fresh = true;
  backward(sum(p) + sum(p));
  CHECK(arena.to_host() == Floats{99, 2, 2, 2, 99});
}

TEST_CASE("tape: a gradient function may write into an arena, once for each leaf") {
  const Tensor arena = Tensor::full(Shape{5}, 99);
  const Tensor p = leaf_of({1, 2, 3});
  p.node()->grad = arena.seen_as(Shape{3}, Strides{1}, 1);
  p.node()->in_arena = p.node()->fresh = true;
  std::vector<bool> in_arena;
  // y = p + 2 p, whose gradients are written in turn to where the tape says.
  const auto tripled = [&] {
    return record("tripled", p.detach() * 3.0, {&p, &p}, [&](const Tensor& dy) -> Gradients {
      Gradients gradients;
      for (const size_t i : {0, 1}) {
        const Tensor target = gradient_target(i, dy);
        for (int64_t n = 0; n < 3; ++n)
          target.data<float>()[n] = dy.data<float>()[n] * (i == 0 ? 1.0F : 2.0F);
        in_arena.push_back(target.storage() == arena.storage());
        gradients.push_back(target);
      }
      return gradients;
    });
  };
  backward(sum(tripled() * 1.0));
  CHECK(in_arena == std::vector{true, false});
  CHECK(arena.to_host() == Floats{99, 3, 3, 3, 99});
  backward(sum(tripled() * 1.0));
  CHECK(in_arena == std::vector{true, false, false, false});
  CHECK(arena.to_host() == Floats{99, 6, 6, 6, 99});
  CHECK(gradient_target(0, p).storage() != arena.storage());  // no gradient function runs
}

TEST_CASE("tape: a gradient function may add to what its input has so far") {
  const Tensor p = leaf_of({1, 2, 3});
  std::vector<bool> had_gradient;
  const auto doubled = [&](const Tensor& x) {
    return record("doubled", x.detach() * 2.0, {&x}, [&](const Tensor& dy) -> Gradients {
      const Tensor so_far = gradient_so_far(0);
      had_gradient.push_back(static_cast<bool>(so_far));
      return {so_far ? dy * 2.0 + so_far : dy * 2.0};
    });
  };
  const Tensor h = p * 5.0, y = doubled(h);
  backward(sum(y * y + h * 3.0));  // y = 2 h, so the gradient of h is 8 h + 3
  CHECK(grad_of(p).to_host() == Floats{215, 415, 615});
  backward(sum(doubled(p) + p));  // the gradient of a leaf is never handed out
  CHECK(had_gradient == std::vector{true, false});
  CHECK(grad_of(p).to_host() == Floats{218, 418, 618});
}

TEST_CASE("tape: no node is left after a loop of training steps") {
  const int64_t before = live_nodes();
  {
    Tensor w = leaf(Tensor::full(Shape{4, 3}, 0.1));
    const Tensor b = leaf(Tensor::zeros(Shape{4}));
    const Tensor x = Tensor::full(Shape{2, 3}, 0.5);
    int64_t bytes = 0;
    for (int i = 0; i < 20; ++i) {
      w.node()->grad = Tensor();
      b.node()->grad = Tensor();
      const Tensor hidden = gelu(linear(x, w, b));
      const Tensor loss = mean(square(softmax(hidden) - hidden));
      backward(loss);
      if (i == 1) bytes = memory_use().live;
      if (i > 1) CHECK(memory_use().live == bytes);
    }
    CHECK(live_nodes() == before + 2);
  }
  CHECK(live_nodes() == before);
}

TEST_CASE("tape: what cannot be swept is refused kindly") {
  const Tensor p = leaf_of({1, 2});
  CHECK_THROWS_WITH(backward(p * 2.0), containing("the loss has shape [2]. Reduce it to one number"));
  CHECK_THROWS_WITH(backward(Tensor()), containing("backward: the loss is empty"));
  const Tensor y = p * 2.0;
  CHECK_THROWS_WITH(backward(y, Tensor()), containing("empty"));
  CHECK_THROWS_WITH(backward(y, Tensor::from({1, 2, 3})), containing("f32 [3], the result f32 [2]"));
  CHECK_THROWS_WITH(backward(y, Tensor::zeros(Shape{2}, DType::f64)),
                    containing("f64 [2], the result f32 [2]"));
  CHECK_FALSE(grad_of(p));
  const Tensor loss = sum(y);
  backward(loss);
  CHECK_THROWS_WITH(backward(loss), containing("sum was already swept. Compute the loss anew"));
  CHECK(grad_of(p).to_host() == Floats{2, 2});
  CHECK_THROWS_WITH(
      backward(sum(square(grad_of(p)))),
      containing("nothing was recorded") &&
          containing("What grad_of() gives is a constant: second derivatives are not supported."));
}

TEST_CASE("tape: a loss built on a swept part is refused before any gradient moves") {
  const Tensor p = leaf_of({1, 2});
  const Tensor hidden = square(p);
  backward(sum(hidden));
  const Tensor later = sum(hidden) + sum(p);
  CHECK_THROWS_WITH(backward(later), containing("square was already swept") && containing("detach()"));
  CHECK(grad_of(p).to_host() == Floats{2, 4});
  backward(sum(hidden.detach() * p));
  CHECK(grad_of(p).to_host() == Floats{3, 8});
}

TEST_CASE("tape: an error under backward names the op and leaves nothing behind") {
  const Tensor p = leaf_of({1, 2});
  const Tensor hidden = p * 2.0;
  const Tensor wrong = step(hidden, [](const Tensor&) -> Gradients { fail(Fault::memory, "no room"); });
  const Tensor loss = sum(hidden * 3.0) + sum(wrong);  // hidden has a gradient waiting when the step fails
  try {
    backward(loss);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "backward of step: no room");
    CHECK(error.fault() == Fault::memory);
  }
  CHECK(recording());
  CHECK_FALSE(grad_of(p));
  backward(sum(hidden));
  CHECK(grad_of(p).to_host() == Floats{2, 2});
}

TEST_CASE("tape: a gradient that does not fit its input is refused") {
  const Tensor p = leaf_of({1, 2});
  const auto swept = [&](const Vjp& vjp) { backward(sum(step(p, vjp))); };
  CHECK_THROWS_WITH(swept([](const Tensor&) -> Gradients { return {Tensor::from({1})}; }),
                    containing("backward of step: the gradient of input 0 is f32 [1], the input f32 [2]"));
  CHECK_THROWS_WITH(swept([](const Tensor& dy) -> Gradients { return {cast(dy, DType::f64)}; }),
                    containing("f64 [2]"));
  CHECK_THROWS_WITH(swept([](const Tensor& dy) -> Gradients {
                      return {dy, dy};
                    }),
                    containing("2 gradients for 1 inputs"));
  CHECK_FALSE(grad_of(p));
  swept([](const Tensor&) -> Gradients { return {Tensor()}; });  // none flows
  CHECK_FALSE(grad_of(p));
}

TEST_CASE("tape: an op with parameters of its own is recorded whatever its inputs") {
  const Tensor x = Tensor::from({1, 2});
  int swept = 0;
  const Tensor y = record_always("block", x * 2.0, std::array{x}, [&](const Tensor&) -> Gradients {
    ++swept;
    return {Tensor()};
  });
  backward(sum(y));
  CHECK(swept == 1);
  const NoGrad no_grad;
  CHECK_FALSE(
      record_always("block", x * 2.0, std::array{x}, [](const Tensor&) -> Gradients { return {}; }).node());
}

TEST_CASE("tape: a change between an op and its gradient is an error") {
  const Tensor p = leaf_of({1, 2});
  const Tensor x = Tensor::from({3, 4});
  const Tensor loss = sum(p * x);
  ++x.storage()->version;
  CHECK_THROWS_WITH(backward(loss), containing("a tensor that multiply has read or made was overwritten"));
}

TEST_CASE("tape: Trace names the op and the module of the first value that is not finite") {
  const int here = 0, outer = 1;
  const auto name = [&](const void* module) -> std::string {
    return module == &here ? "decoder.2.attention" : module == &outer ? "decoder" : "";
  };
  const Tensor x = leaf_of({1, -1});
  SECTION("forward") {
    const Trace trace(name);
    const ModuleScope model(&outer);
    const Tensor y = x * 2.0;
    const ModuleScope module(&here);
    CHECK_THROWS_WITH(
        log(y),
        containing(
            "first bad value in decoder.2.attention (nan): the result of log, 1 of 2 values, shape [2]"));
    CHECK_NOTHROW(exp(y));
  }
  SECTION("backward") {
    const Tensor zero = leaf_of({0, 1});
    const Trace trace(name);
    Tensor y;
    {
      const ModuleScope module(&here);
      y = sqrt(zero);
    }
    try {
      backward(sum(y));
      FAIL("no error");
    } catch (const Error& error) {
      CHECK_THAT(error.what(),
                 containing("first bad value in decoder.2.attention (inf): a gradient of sqrt, 1 of 2"));
      CHECK(error.fault() == Fault::numeric);
    }
  }
  SECTION("errors of backward name the module too") {
    const Trace trace(name);
    Tensor y;
    {
      const ModuleScope module(&outer);
      y = step(x, [](const Tensor&) -> Gradients { fail("wrong"); });
    }
    CHECK_THROWS_WITH(backward(sum(y)), containing("backward of step in decoder: wrong"));
  }
  SECTION("masks are not errors") {
    const Trace trace(name);
    const std::vector<uint8_t> seen = {1, 0};
    const Tensor hidden = where(Tensor::of<uint8_t>(seen, Shape{2}), x, -HUGE_VAL);
    CHECK_NOTHROW(backward(sum(softmax(hidden + x))));
    CHECK(grad_of(x).to_host() == Floats{0, 0});
    CHECK_THROWS_WITH(exp(-hidden), containing("negate"));  // +inf is one
    CHECK_THROWS_WITH(log(x * 0.0), containing("log"));     // and so is -inf from finite numbers
  }
  SECTION("nothing is looked at without one") { CHECK_NOTHROW(log(x)); }
}

TEST_CASE("tape: Within nests") {
  const int a = 0, b = 0;
  CHECK(ModuleScope::innermost() == nullptr);
  {
    const ModuleScope outer(&a);
    {
      const ModuleScope inner(&b);
      CHECK(ModuleScope::innermost() == &b);
    }
    CHECK((leaf_of({1}) * 2.0).node()->module == &a);
  }
  CHECK(ModuleScope::innermost() == nullptr);
}

}  // namespace
}  // namespace heed
