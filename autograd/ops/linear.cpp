// Linear layers, and two of them with GELU between.
#include "heed/core/kernels/gemm/linear.h"

#include <algorithm>
#include <memory>

#include "heed/autograd/autocast.h"
#include "heed/autograd/bf16_shadow.h"
#include "heed/autograd/joint_gradient.h"
#include "heed/autograd/narrow_weights.h"
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/column_parts.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/bf16_weight_gemm.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/kernels/gemm/gemm_layout.h"
#include "heed/core/kernels/gemm/q8_weight_gemm.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

void check_linear(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (weight.rank() != 2 || x.rank() < 1 || x.extent(-1) != weight.extent(1)) {
    fail(op, ": an input ", x.shape(), " does not fit the weight ", weight.shape(),
         " [out, in]: the last extent must be ", weight.rank() == 2 ? weight.extent(1) : 0, ".");
  }
  const int64_t out = weight.extent(0);
  if (bias && !(bias.shape() == Shape{out})) {
    fail(op, ": the bias is ", bias.shape(), " for the weight ", weight.shape(), " [out, in]; it must be [",
         out, "].");
  }
  agree_as_activation(op, x, weight);
  if (bias) agree(op, weight, bias);
}

void check_result(const char* op, const Tensor& weight, DType result) {
  if (result != weight.dtype() && (result != DType::bf16 || weight.dtype() != DType::f32))
    fail(op, ": a result of ", result, " with a weight of ", weight.dtype(),
         ". It must be that type, or bf16 where the weight is f32.");
}

/// x [..., width] as [N, width], detached from the graph.
Tensor flat(const Tensor& x) {
  const int64_t width = x.extent(-1);
  return view::reshape(contiguous(x.detach()), Shape{width > 0 ? x.size() / width : 0, width});
}

/// A layer's weight, and the precision of its three products (of y, dx and dW).
struct Layer {
  Tensor weight;  ///< [out, in]
  DType dtype;    ///< dtype of the weight and its gradient
  Rounding rounding;
  bool narrow;  ///< the products read bf16: a device rounds each factor once and keeps the copy

  Layer(const Tensor& w, int64_t rows, Rounding how) : weight(w.detach()), dtype(w.dtype()), rounding(how) {
    constexpr int64_t min_extent = kernel::min_rounded_extent;
    narrow = how == Rounding::bf16 && w.dtype() == DType::f32 && w.device() != Device::cpu &&
             rows >= min_extent && w.extent(0) >= min_extent && w.extent(1) >= min_extent;
    const Tensor rounded = narrow ? Bf16Shadow::of(weight) : Tensor();
    if (rounded) weight = rounded;
    weight = factor(kernel::gemm_ready(weight) ? weight : contiguous(weight));
  }
  /// A bias for a result of this dtype: on a device, which adds it in the type of the result, rounded.
  Tensor bias_for(const Tensor& bias, DType result) const {
    if (!bias || !narrow || result != DType::bf16) return bias.detach();
    const Tensor rounded = Bf16Shadow::of(bias);
    return rounded ? rounded : bias.detach();
  }
  /// x as the products read it: rounded to bf16 where `narrow`.
  Tensor factor(const Tensor& x) const {
    if (!narrow || x.dtype() == DType::bf16) return x;
    const Tensor rounded(x.shape(), DType::bf16, x.device());
    launch<kernel::Copy>(x.device(), x, rounded);
    return rounded;
  }
};

/// A new tensor on the device of x.
Tensor empty_as(const Tensor& x, const Shape& shape, DType dtype) { return Tensor(shape, dtype, x.device()); }

/// y = x W^T + bias, or with GELU `before` = x W^T + bias and y = gelu(before). Uses the narrow copy of the
/// weight, if there is one, for few rows without gradients.
void forward(const Layer& layer, const Tensor& weight, const Tensor& rows, const Tensor& bias,
             const Tensor& before, const Tensor& y) {
  const bool few = !recording() && rows.extent(0) <= kernel::Bf16WeightGemm::max_rows;
  const NarrowWeight* narrow = few ? narrow_copy(weight) : nullptr;
  if (narrow == nullptr)
    return launch<kernel::Linear>(y.device(), rows, layer.weight, layer.bias_for(bias, y.dtype()), before, y,
                                  layer.rounding);
  const Tensor& to = before ? before : y;
  if (bias) launch<kernel::Copy>(y.device(), view::expand(bias, to.shape()), to);
  const double beta = bias ? 1.0 : 0.0;
  if (narrow->scales)
    launch<kernel::Q8WeightGemm>(y.device(), rows, narrow->numbers, narrow->scales, to, beta);
  else
    launch<kernel::Bf16WeightGemm>(y.device(), rows, narrow->numbers, to, beta);
  if (before) launch<kernel::Map<GeluTanh>>(y.device(), before, y);
}

/// Which gradients of a layer's parameters are computed.
struct Wanted {
  bool weight, bias;
};

/// Writes the gradients of weight and bias to gradients[at] and gradients[at + 1]. dy and x are as the
/// layer's products read them, `dy_exact` is dy unrounded; both may be the same tensor.
void weight_gradients(const Layer& layer, const Wanted& wanted, const Tensor& dy, const Tensor& dy_exact,
                      const Tensor& x, Gradients& gradients, size_t at) {
  Tensor* to = &gradients[at];
  if (wanted.weight) {
    to[0] = gradient_target(at, layer.weight.shape(), layer.dtype, dy.device());
    if (wanted.bias) to[1] = gradient_target(at + 1, Shape{layer.weight.extent(0)}, layer.dtype, dy.device());
    launch<kernel::LinearWeightBack>(dy.device(), dy, x, to[0], to[1], layer.rounding);
  } else if (wanted.bias) {
    to[1] = gradient_target(at + 1, Shape{layer.weight.extent(0)}, layer.dtype, dy.device());
    launch<kernel::Sum>(dy.device(), dy_exact, view::reshape(to[1], Shape{1, to[1].size()}));
  }
}

/// Gradients of x, weight and bias of one layer, whose x [N, in] has the shape `from`.
struct Back {
  Layer layer;
  Wanted wanted;
  Tensor rows;  ///< x as the products read it
  Shape from;   ///< the shape of x
  DType dtype;  ///< the dtype of x
  bool of_x;

  Gradients operator()(const Tensor& exact) const {  // [N, out]
    const Tensor dy = layer.factor(exact);
    Gradients gradients(3);
    if (of_x) gradients[0] = dx(dy);
    weight_gradients(layer, wanted, dy, exact, rows, gradients, 1);
    return gradients;
  }
  /// The gradient of x from dy as the products read it.
  Tensor dx(const Tensor& dy) const {
    const Tensor to = empty_as(dy, Shape{dy.extent(0), layer.weight.extent(1)}, dtype);
    launch<kernel::LinearBack>(dy.device(), dy, layer.weight, Tensor(), to, Tensor(), layer.rounding);
    return view::reshape(to, from);
  }
};

/// The parts along axis 0 as one tensor: in place where they are adjacent(), else copied; empty where the
/// first one is.
Tensor joined(std::span<const Tensor> parts) {
  if (!parts.front()) return {};
  if (const Tensor whole = adjacent(parts)) return whole;
  std::vector<Tensor> constants;
  for (const Tensor& part : parts) constants.push_back(part.detach());
  return concat(constants, 0);
}

bool any_recorded(std::span<const Tensor> tensors) {
  return std::ranges::any_of(tensors, [](const Tensor& x) { return x.node() != nullptr; });
}

/// Back of several layers in one product. The vjp's inputs are x, all weights and all biases.
struct BackOfEach {
  Back back;                   ///< treats the layers as one
  std::vector<int64_t> parts;  ///< outputs of each layer
  DType dtype;                 ///< type of the results

  Gradients operator()(PartGradients& dys) const {
    const Layer& layer = back.layer;
    const bool reads_narrow = layer.narrow && back.wanted.weight;
    const Tensor exact = dys.joined(reads_narrow ? DType::bf16 : dtype), dy = layer.factor(exact);
    const size_t count = parts.size();
    Gradients gradients(1 + 2 * count);
    if (back.of_x) gradients[0] = back.dx(dy);
    Tensor dweight, dbias;
    if (back.wanted.weight) {
      dweight = joint_gradient_target(1, count, layer.weight.shape(), layer.dtype, dy.device());
      if (back.wanted.bias)
        dbias = joint_gradient_target(1 + count, count, Shape{dweight.extent(0)}, layer.dtype, dy.device());
      launch<kernel::LinearWeightBack>(dy.device(), dy, back.rows, dweight, dbias, layer.rounding);
    } else if (back.wanted.bias) {
      dbias =
          joint_gradient_target(1 + count, count, Shape{layer.weight.extent(0)}, layer.dtype, dy.device());
      launch<kernel::Sum>(dy.device(), exact, view::reshape(dbias, Shape{1, dbias.size()}));
    }
    int64_t begin = 0;
    for (size_t i = 0; i < count; ++i) {
      const int64_t end = begin + parts[i];
      if (dweight) gradients[1 + i] = view::slice(dweight, 0, begin, end);
      if (dbias) gradients[1 + count + i] = view::slice(dbias, 0, begin, end);
      begin = end;
    }
    return gradients;
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear(x, weight, bias, x.dtype());
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, DType result) {
  check_linear("linear", x, weight, bias);
  check_result("linear", weight, result);
  const Tensor given = flat(x);  // [N, in]
  const Layer layer(weight, given.extent(0), product_rounding());
  const Tensor rows = layer.factor(given);
  Shape shape = x.shape();
  shape[-1] = weight.extent(0);
  const Tensor y = empty_as(given, Shape{given.extent(0), weight.extent(0)}, result);  // [N, out]
  forward(layer, weight, rows, bias.detach(), Tensor(), y);
  const Wanted wanted{weight.node() != nullptr, bias.node() != nullptr};
  const Back back{layer, wanted, wanted.weight ? rows : Tensor(), x.shape(), x.dtype(), x.node() != nullptr};
  return record("linear", view::reshape(y, shape), {&x, &weight, &bias},
                [back](const Tensor& dy) { return back(flat(dy)); });
}

std::vector<Tensor> linear_each(const Tensor& x, std::span<const Tensor> weights,
                                std::span<const Tensor> biases, DType result) {
  if (weights.empty() || weights.size() != biases.size())
    fail("linear_each: ", weights.size(), " weights and ", biases.size(),
         " biases. Give at least one weight, and a bias for each; all biases may be empty.");
  std::vector<Tensor> inputs{x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  inputs.insert(inputs.end(), biases.begin(), biases.end());
  std::vector<int64_t> columns;
  for (size_t i = 0; i < weights.size(); ++i) {
    check_linear("linear_each", x, weights[i], biases[i]);
    if (bool(biases[i]) != bool(biases[0]))
      fail("linear_each: weight ", i, " has ", biases[i] ? "a" : "no", " bias, weight 0 has ",
           biases[0] ? "one" : "none", ". Give all of them one, or none.");
    columns.push_back(weights[i].extent(0));
  }
  check_result("linear_each", weights[0], result);
  // Without gradients, copying weights that lie apart is not worth it, and layers may have copies in bf16.
  const bool is_recorded = recording() && any_recorded(inputs);
  if (!is_recorded && (narrow_copy(weights[0]) != nullptr || !adjacent(weights))) {
    std::vector<Tensor> parts;
    for (size_t i = 0; i < weights.size(); ++i) parts.push_back(linear(x, weights[i], biases[i], result));
    return parts;
  }
  const Tensor given = flat(x), weight = joined(weights);
  const Layer layer(weight, given.extent(0), product_rounding());
  const Tensor rows = layer.factor(given);
  Shape shape = x.shape();
  shape[-1] = weight.extent(0);
  const Tensor y = empty_as(given, Shape{given.extent(0), weight.extent(0)}, result);  // [N, sum of out]
  launch<kernel::Linear>(y.device(), rows, layer.weight, layer.bias_for(joined(biases), result), Tensor(), y,
                         layer.rounding);
  const Wanted wanted{any_recorded(weights), any_recorded(biases)};
  const auto dys = std::make_shared<PartGradients>(shape, columns);
  const BackOfEach back{
      {layer, wanted, wanted.weight ? rows : Tensor(), x.shape(), x.dtype(), x.node() != nullptr},
      columns,
      result};
  const Tensor whole = record("linear_each", view::reshape(y, shape), inputs,
                              [back, dys](const Tensor&) { return back(*dys); });
  return column_parts("linear_each", whole, dys);
}

Tensor feed_forward(const Tensor& x, const Tensor& up, const Tensor& up_bias, const Tensor& down,
                    const Tensor& down_bias) {
  check_linear("feed_forward", x, up, up_bias);
  const Tensor given = flat(x);  // [N, in]
  const int64_t N = given.extent(0), hidden = up.extent(0);
  check_linear("feed_forward", view::expand(empty_like(given, Shape{1, 1}), Shape{N, hidden}), down,
               down_bias);
  const Layer first(up, N, product_rounding()), second(down, N, product_rounding());
  // Only the products of the second layer read this, so it is written in their precision.
  const bool narrow = first.narrow && second.narrow;
  const Tensor before(Shape{N, hidden}, narrow ? DType::bf16 : given.dtype(), given.device()),
      after = empty_like(before);
  const Tensor rows = first.factor(given);
  forward(first, up, rows, up_bias.detach(), before, after);
  const Tensor inner = second.factor(after);
  Shape shape = x.shape();
  shape[-1] = down.extent(0);
  const Tensor y = empty_like(given, Shape{N, down.extent(0)});
  forward(second, down, inner, down_bias.detach(), Tensor(), y);
  const Wanted of_down{down.node() != nullptr, down_bias.node() != nullptr};
  const bool of_up_bias = up_bias.node() != nullptr;
  // The kernel of GELU's gradient also gives the sums for the first bias.
  const Back back{first,
                  {up.node() != nullptr, false},
                  up.node() ? rows : Tensor(),
                  x.shape(),
                  x.dtype(),
                  x.node() != nullptr};
  const auto vjp = [back, second, of_down, of_up_bias, before,
                    inner = of_down.weight ? inner : Tensor()](const Tensor& given_dy) {
    const Tensor exact = flat(given_dy), dy = second.factor(exact);  // [N, out]
    Gradients gradients(5);
    weight_gradients(second, of_down, dy, exact, inner, gradients, 3);
    if (!back.of_x && !back.wanted.weight && !of_up_bias) return gradients;
    const Tensor dbefore = empty_like(before);
    if (of_up_bias) gradients[2] = gradient_target(2, Shape{before.extent(1)}, second.dtype, dy.device());
    launch<kernel::LinearBack>(dy.device(), dy, second.weight, before, dbefore, gradients[2],
                               second.rounding);
    Gradients of_first = back(dbefore);
    gradients[0] = std::move(of_first[0]);
    gradients[1] = std::move(of_first[1]);
    return gradients;
  };
  return record("feed_forward", view::reshape(y, shape), {&x, &up, &up_bias, &down, &down_bias}, vjp);
}

}  // namespace heed
