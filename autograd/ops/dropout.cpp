// Dropout, alone and fused with the work around it. No mask is stored: the backward pass draws it again.
#include "heed/autograd/autocast.h"
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/dropout_mask.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/elementwise/functions.h"
#include "heed/core/launch.h"

namespace heed {

kernel::DropoutMask draw_dropout(const char* op, const Tensor& x, double p, Rng* rng,
                                 const PaddedPlaces& places) {
  if (p < 0 || p >= 1) fail(op, ": p = ", p, ". It must be at least 0 and below 1.");
  if (p == 0) return {};
  if (rng == nullptr) {
    if (recording() && x.node() && !x.node()->leaf) x.node()->omitted_dropout = p;
    return {};
  }
  if (places.places && (x.rank() != 3 || x.extent(0) != 1 || x.extent(1) != places.places.extent(0)))
    fail(op, ": x ", x.shape(), " with places ", places.places.shape(),
         ". Places are for packed sequences [1, N, W], one for each of the N rows.");
  return {.p = p, .draw = rng->next(), .places = places};
}

void check_branch(const char* op, const Tensor& x, const Tensor& branch) {
  agree(op, x, branch);
  check_activation(op, x);
  if (!(x.shape() == branch.shape()))
    fail(op, ": x ", x.shape(), " and a branch ", branch.shape(),
         "; they must have one shape. Use expand() where one of them is meant to broadcast.");
}

namespace {

Tensor dropped(const Tensor& x, const kernel::DropoutMask& mask, DType dtype) {
  const Tensor y(x.shape(), dtype, x.device());
  launch<kernel::Dropout>(x.device(), contiguous(x.detach()), mask, y);
  return y;
}

/// dropout(F(x)), of which x alone is kept; `activation` is F as an op.
template <class F>
Tensor dropped_activation(const char* op, Tensor (*activation)(const Tensor&), const Tensor& x, double p,
                          Rng* rng, const PaddedPlaces& places) {
  check_activation(op, x);
  if (x.dtype() != DType::bf16 && (p == 0 || rng == nullptr)) return dropout(activation(x), p, rng, places);
  const auto mask = draw_dropout(op, x, p, rng, places);
  const Tensor given = contiguous(x.detach()), y = empty_like(given);
  launch<kernel::ActivationDropout<F>>(x.device(), given, mask, y);
  return record(op, y, {&x}, [given, mask](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(given);
    launch<kernel::ActivationDropoutBack<F>>(given.device(), given, contiguous(dy), mask, dx);
    return {dx};
  });
}

}  // namespace

Tensor record_sum(const Tensor& sum, const Tensor& x, const Tensor& branch, const kernel::DropoutMask& mask,
                  const std::shared_ptr<Tensor>& dbranch) {
  return record(
      mask.p > 0 ? "add_dropout" : "add", sum, {&x, &branch},
      [mask, of_x = x.node() != nullptr, of_branch = branch.node() != nullptr, dbranch](const Tensor& dy) {
        Gradients gradients(2);
        if (of_x) gradients[0] = dy;
        if (!of_branch) return gradients;
        if (dbranch) gradients[1] = std::exchange(*dbranch, Tensor());
        if (!gradients[1]) gradients[1] = mask.p > 0 ? dropped(dy, mask, dy.dtype()) : dy;
        return gradients;
      });
}

namespace {

/// dropout(x) as numbers of `dtype`.
Tensor dropout_as(DType dtype, const Tensor& x, double p, Rng* rng, const PaddedPlaces& places) {
  const auto mask = draw_dropout("dropout", x, p, rng, places);
  if (mask.p == 0) return x;
  check_activation("dropout", x);
  return record(
      "dropout", dropped(x, mask, dtype), {&x},
      [mask, dtype = x.dtype()](const Tensor& dy) -> Gradients { return {dropped(dy, mask, dtype)}; });
}

}  // namespace

Tensor dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places) {
  return dropout_as(x.dtype(), x, p, rng, places);
}

Tensor narrowed_dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places) {
  const bool narrows = product_rounding() == Rounding::bf16 && x.dtype() == DType::f32;
  return dropout_as(narrows ? DType::bf16 : x.dtype(), x, p, rng, places);
}

Tensor add_dropout(const Tensor& x, const Tensor& branch, double p, Rng* rng, const PaddedPlaces& places) {
  check_branch("add_dropout", x, branch);
  const auto mask = draw_dropout("add_dropout", branch, p, rng, places);
  if (mask.p == 0 && x.dtype() != DType::bf16) return x + branch;
  const Tensor sum = empty_like(x);
  launch<kernel::AddDropout>(x.device(), contiguous(x.detach()), contiguous(branch.detach()), mask, sum);
  return record_sum(sum, x, branch, mask);
}

Tensor relu_dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places) {
  return dropped_activation<Relu>("relu_dropout", relu, x, p, rng, places);
}
Tensor gelu_dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places) {
  return dropped_activation<Gelu>("gelu_dropout", gelu, x, p, rng, places);
}
Tensor gelu_tanh_dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places) {
  return dropped_activation<GeluTanh>("gelu_tanh_dropout", gelu_tanh, x, p, rng, places);
}
Tensor silu_dropout(const Tensor& x, double p, Rng* rng, const PaddedPlaces& places) {
  return dropped_activation<Silu>("silu_dropout", silu, x, p, rng, places);
}

}  // namespace heed
