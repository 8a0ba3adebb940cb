// Rows of a table, and dropout: ops that go by index or counter.
#include "autograd/ops.h"
#include "core/kernels/dropout.h"
#include "core/kernels/gather.h"
#include "core/launch.h"

namespace heed {

Tensor embedding(const Tensor& weight, const Tensor& ids) {
  if (weight.rank() != 2 || ids.dtype() != DType::i32) {
    fail("embedding: a table ", weight.shape(), " at ids of ", ids.dtype(), "; it must be [V, d] at i32.");
  }
  Shape shape = ids.shape();
  shape.push_back(weight.extent(1));
  const Tensor list = view::reshape(contiguous(ids.detach()), Shape{-1});
  const Tensor y = like(weight, shape);
  launch<kernel::Gather>(weight.device(), contiguous(weight.detach()), list,
                         view::reshape(y, Shape{list.size(), weight.extent(1)}));
  return record("embedding", y, {&weight}, [list, table = weight.shape()](const Tensor& dy) -> Gradients {
    const Tensor dtable = Tensor::zeros(table, dy.dtype(), dy.device());
    launch<kernel::ScatterAdd>(dy.device(), list, view::reshape(contiguous(dy), Shape{list.size(), table[1]}),
                               dtable);
    return {dtable};
  });
}

Tensor dropout(const Tensor& x, double p, Rng* rng) {
  if (p < 0 || p >= 1) fail("dropout: p = ", p, ". It must be at least 0 and below 1.");
  if (rng == nullptr || p == 0) return x;
  const auto drop = [p, draw = rng->next()](const Tensor& from) {
    const Tensor to = like(from);
    launch<kernel::Dropout>(from.device(), contiguous(from.detach()), p, draw, to);
    return to;
  };
  return record("dropout", drop(x), {&x}, [drop](const Tensor& dy) -> Gradients { return {drop(dy)}; });
}

}  // namespace heed
