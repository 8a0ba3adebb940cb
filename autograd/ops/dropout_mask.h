// What the ops with dropout share: the draw of a mask, and the record of a sum with a dropped branch.
#pragma once

#include <memory>

#include "heed/autograd/ops.h"
#include "heed/core/kernels/elementwise/dropout.h"

namespace heed {

/// The mask of a dropout of x by the next draw of rng; p = 0 in it where nothing is dropped, since p is 0 or
/// rng is null. A null rng is noted in the node of x, for the optimizer to warn of. Fails unless 0 <= p < 1,
/// and for places that are not those of x [1, N, W].
kernel::DropoutMask draw_dropout(const char* op, const Tensor& x, double p, Rng* rng,
                                 const PaddedPlaces& places);

/// Fails unless x and branch are floats of one shape, dtype and device.
void check_branch(const char* op, const Tensor& x, const Tensor& branch);

/// Records `sum` = x + dropout(branch) under this mask. `dbranch`: the norm of the sum may store the gradient
/// of the branch there; where it is empty, the vjp computes that gradient.
Tensor record_sum(const Tensor& sum, const Tensor& x, const Tensor& branch, const kernel::DropoutMask& mask,
                  const std::shared_ptr<Tensor>& dbranch = nullptr);

}  // namespace heed
