// Rotary position embedding.
#include "heed/core/kernels/attention/rotary.h"

#include "heed/autograd/ops.h"
#include "heed/autograd/ops/fused_op_heads.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/launch.h"

namespace heed {

Tensor rotary(const Tensor& x, const Tensor& table, kernel::RotaryPairs pairs) {
  agree("rotary", x, table);
  if (x.rank() != 4 || table.rank() != 2 || table.extent(0) != x.extent(2) || table.extent(1) % 2 != 0 ||
      table.extent(1) > x.extent(3)) {
    fail("rotary: a table ", table.shape(), " for x ", x.shape(),
         ". It must be [T, n]: cosines and sines of n / 2 angles, n even and at most d.");
  }
  const auto turned = [angles = contiguous(table.detach()), pairs](const Tensor& from, bool back) {
    const Tensor to = heads_like(from, from.extent(2), from.extent(3));
    launch<kernel::Rotary>(from.device(), rows(from), angles, pairs, back, to);
    return to;
  };
  return record("rotary", turned(x, false), {&x},
                [turned](const Tensor& dy) -> Gradients { return {turned(dy, true)}; });
}

}  // namespace heed
