// Tests linear_cross_entropy() beside the two ops that it stands for. Values in plain loops and gradients by
// central differences: the table of ops.
#include "heed/autograd/autocast.h"
#include "heed/autograd/node.h"
#include "heed/autograd/ops.h"
#include "heed/core/memory/storage.h"
#include "heed/tests/core/numbers.h"

namespace heed {
namespace {

constexpr int64_t rows = 77, in = 40, classes = 65;

/// random_tensor() and random_ids() on the CPU, whatever the default device is.
template <class... Arguments>
Tensor numbers_of(const Arguments&... arguments) {
  const DefaultDevice host(Device::cpu);
  return random_tensor(arguments...);
}
template <class... Arguments>
Tensor ids_of(const Arguments&... arguments) {
  const DefaultDevice host(Device::cpu);
  return random_ids(arguments...);
}

/// The inputs of a loss as leaves, and the loss times 3 with its gradients.
struct Result {
  Tensor loss, dx, dweight, dbias;

  template <class F>
  Result(DType dtype, bool has_bias, const F& f) {
    const Tensor x = leaf(numbers_of(Shape{7, 11, in}, dtype, 1, -2, 2).to(default_device)),
                 weight = leaf(numbers_of(Shape{classes, in}, dtype, 2).to(default_device)),
                 bias = has_bias ? leaf(numbers_of(Shape{classes}, dtype, 3).to(default_device)) : Tensor();
    const Tensor y = f(x, weight, bias);
    backward(y * 3.0);
    loss = y.detach();
    dx = grad_of(x);
    dweight = grad_of(weight);
    if (bias) dbias = grad_of(bias);
  }

  double distance_to(const Result& other) const {
    double worst =
        std::max({distance(loss, other.loss), distance(dx, other.dx), distance(dweight, other.dweight)});
    if (dbias) worst = std::max(worst, distance(dbias, other.dbias));
    return worst;
  }
};

/// Targets [7, 11], of which those equal to 5 may be ignored.
Tensor some_targets() { return ids_of(Shape{7, 11}, 9, 4).to(default_device); }

}  // namespace

TEST_CASE("linear cross entropy: chunks of any size give what the two ops give") {
  const DefaultDevice device(any_device());
  const bool has_bias = GENERATE(false, true);
  const double smoothing = GENERATE(0.0, 0.1);
  const Tensor targets = some_targets();
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Result two(dtype, has_bias, [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
      return cross_entropy(linear(x, weight, bias), targets, smoothing, 5);
    });
    for (const int64_t chunk : {1, 10, 76, 77, 1000}) {
      CAPTURE(chunk, to_string(dtype));
      const Result one(dtype, has_bias, [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
        return linear_cross_entropy(x, weight, bias, targets, smoothing, 5, chunk);
      });
      CHECK(one.distance_to(two) < (dtype == DType::f64 ? 1e-13 : 2e-6));
    }
  }
}

TEST_CASE("linear cross entropy: few rows have the bits of the two ops") {
  const Tensor targets = some_targets();
  const Result two(DType::f32, true, [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return cross_entropy(linear(x, weight, bias), targets, 0.1);
  });
  const Result one(DType::f32, true, [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return linear_cross_entropy(x, weight, bias, targets, 0.1);
  });
  CHECK(one.distance_to(two) == 0);
}

TEST_CASE("linear cross entropy: products round as those of linear()") {
  const DefaultDevice device(any_device());
  const Tensor targets = some_targets();
  const auto with = [&](Rounding rounding, bool chunked) {
    return Result(DType::f32, true, [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
      const Autocast scope(rounding);
      return chunked ? linear_cross_entropy(x, weight, bias, targets, 0, -1, 40)
                     : cross_entropy(linear(x, weight, bias), targets);
    });
  };
  const Result exact = with(Rounding::none, false), two = with(Rounding::bf16, false),
               one = with(Rounding::bf16, true);
  // The gradient of the logits is rounded before it is scaled, not after.
  CHECK(one.distance_to(two) < 2e-3);
  CHECK(distance(one.loss, two.loss) < 1e-6);
  CHECK(distance(one.loss, exact.loss) > 1e-6);
  CHECK(distance(one.dx, exact.dx) > 1e-6);
  CHECK(distance(one.dweight, exact.dweight) > 1e-6);
}

TEST_CASE("linear cross entropy: activations in bf16 have logits and a loss in f32") {
  const DefaultDevice device(any_device());
  const Tensor targets = some_targets();
  const auto with = [&](int64_t chunk_rows) {
    return Result(DType::f32, true, [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
      const Tensor narrow = cast(x, DType::bf16);
      return chunk_rows < 0 ? cross_entropy(linear(narrow, weight, bias, DType::f32), targets)
                            : linear_cross_entropy(narrow, weight, bias, targets, 0, -1, chunk_rows);
    });
  };
  const Result two = with(-1), one = with(40), by_size = with(0);
  CHECK(one.loss.dtype() == DType::f32);
  CHECK(distance(one.loss, two.loss) < 1e-6);
  CHECK(distance(one.dweight, two.dweight) < 1e-6);
  CHECK(distance(one.dx, two.dx) < 1e-3);  // bf16
  CHECK(by_size.distance_to(two) == 0);
}

TEST_CASE("linear cross entropy: rows that do not count give a loss and gradients of zero") {
  const DefaultDevice device(any_device());
  const Tensor none = Tensor::full(Shape{7, 11}, -1, DType::i32);
  const Result result(DType::f32, true, [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return linear_cross_entropy(x, weight, bias, none, 0.1, -1, 10);
  });
  CHECK(result.loss.item() == 0);
  for (const Tensor& each : {result.dx, result.dweight, result.dbias}) {
    for (const double value : each.to_doubles()) CHECK(value == 0);
  }
}

TEST_CASE("linear cross entropy: only gradients that are wanted are computed") {
  const Tensor x = numbers_of(Shape{rows, in}), weight = numbers_of(Shape{classes, in}, DType::f32, 2);
  const Tensor targets = reshape(some_targets(), Shape{rows});
  const Tensor input = leaf(x), table = leaf(weight);
  CHECK_FALSE(linear_cross_entropy(x, weight, {}, targets, 0, -1, 10).node());
  backward(linear_cross_entropy(input, weight, {}, targets, 0, -1, 10));
  backward(linear_cross_entropy(x, table, {}, targets, 0, -1, 10));
  const Tensor both = leaf(x), all = leaf(weight);
  backward(cross_entropy(linear(both, all, {}), targets));
  CHECK(distance(grad_of(input), grad_of(both)) < 1e-6);
  CHECK(distance(grad_of(table), grad_of(all)) < 1e-6);
  // A frozen table of 640 KiB keeps no gradient of that size until the backward pass.
  const Tensor large = numbers_of(Shape{4096, in}), few = leaf(numbers_of(Shape{4, in}));
  const int64_t before = memory_use().live;
  const Tensor loss = linear_cross_entropy(few, large, {}, ids_of(Shape{4}, 9), 0, -1, 2);
  CHECK(memory_use().live - before < large.bytes() / 2);
  const NoGrad no_grad;
  CHECK_FALSE(linear_cross_entropy(both, all, {}, targets, 0, -1, 10).node());
}

TEST_CASE("linear cross entropy: a table that is the embedding too gets both gradients, in the arena") {
  const Tensor arena = Tensor::full(Shape{classes * in + 1}, 99);
  const Tensor ids = ids_of(Shape{rows}, classes, 6), targets = ids_of(Shape{rows}, classes, 7);
  const Tensor table = leaf(numbers_of(Shape{classes, in}, DType::f32, 2)), other = leaf(table);
  table.node()->grad = arena.seen_as(Shape{classes, in}, Strides::contiguous(Shape{classes, in}), 1);
  table.node()->in_arena = table.node()->fresh = true;
  backward(linear_cross_entropy(embedding(table, ids), table, {}, targets, 0, -1, 10));
  backward(cross_entropy(linear(embedding(other, ids), other, {}), targets));
  CHECK(grad_of(table).storage() == arena.storage());
  CHECK(distance(grad_of(table), grad_of(other)) < 1e-6);
  CHECK(arena.to_host()[0] == 99);
}

TEST_CASE("linear cross entropy: the logits of all rows never exist") {
  const int64_t N = 4096, V = 2048;  // 32 MiB of logits; by size 2,048 rows at a time
  const Tensor x = leaf(numbers_of(Shape{N, 8})), weight = leaf(numbers_of(Shape{V, 8}, DType::f32, 2));
  const Tensor targets = ids_of(Shape{N}, V);
  const auto peak_of = [&](const auto& loss) {
    reset_peak();
    const int64_t before = memory_use().live;
    backward(loss());
    return memory_use().peak - before;
  };
  const int64_t logits = N * V * 4;
  CHECK(peak_of([&] { return cross_entropy(linear(x, weight, {}), targets); }) >= 2 * logits);
  CHECK(peak_of([&] { return linear_cross_entropy(x, weight, {}, targets); }) < logits * 6 / 10);
}

TEST_CASE("linear cross entropy: what does not fit together is refused") {
  const Tensor x = numbers_of(Shape{3, 2}), weight = numbers_of(Shape{4, 2});
  const std::vector<int32_t> three = {0, 1, 5};
  const Tensor targets = Tensor::of<int32_t>(three, Shape{3});
  CHECK_THROWS_WITH(linear_cross_entropy(x, weight, {}, targets, 0, -1, 1),
                    containing("target 5 of row 2 is none of the 4 classes"));
  CHECK_THROWS_WITH(linear_cross_entropy(x, numbers_of(Shape{4, 3}), {}, targets),
                    containing("x [3, 2], weight [4, 3] and bias none"));
  CHECK_THROWS_WITH(linear_cross_entropy(x, weight, numbers_of(Shape{3}), targets),
                    containing("bias [3]. They must be [..., in], [V, in] and [V] or none."));
  CHECK_THROWS_WITH(linear_cross_entropy(numbers_of(Shape{2, 2}), weight, {}, targets),
                    containing("targets i32 [3] for x [2, 2]"));
  CHECK_THROWS_WITH(linear_cross_entropy(x, weight, {}, x),
                    containing("Convert with cast(targets, DType::i32)"));
  CHECK_THROWS_WITH(linear_cross_entropy(x, weight, {}, targets, 1.0), containing("label smoothing 1"));
  CHECK_THROWS_WITH(linear_cross_entropy(x, weight, {}, targets, 0, -1, -2), containing("chunk_rows -2"));
  CHECK_THROWS_WITH(linear_cross_entropy(x, Tensor(), {}, targets), containing("a tensor is empty"));
}

}  // namespace heed
