// Ops that gather and scatter rows by index.
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/fused_op_heads.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/content/gather.h"
#include "heed/core/kernels/content/segment_mean.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {

Tensor embedding(const Tensor& weight, const Tensor& ids) {
  check_float("embedding", weight);
  if (weight.rank() != 2 || ids.dtype() != DType::i32) {
    fail("embedding: a table ", weight.shape(), " at ids of ", ids.dtype(), "; it must be [V, d] at i32.",
         index_advice("ids", ids));
  }
  Shape shape = ids.shape();
  shape.push_back(weight.extent(1));
  const Tensor list = view::reshape(contiguous(ids.detach()), Shape{-1});
  const Tensor y = empty_like(weight, shape);
  launch<kernel::Gather>(weight.device(), contiguous(weight.detach()), list,
                         view::reshape(y, Shape{list.size(), weight.extent(1)}));
  return record("embedding", y, {&weight}, [list, table = weight.shape()](const Tensor& dy) -> Gradients {
    const Tensor dtable = gradient_target(0, table, dy.dtype(), dy.device());
    launch<kernel::Fill>(dy.device(), dtable, 0.0);
    launch<kernel::ScatterAdd>(dy.device(), list, view::reshape(contiguous(dy), Shape{list.size(), table[1]}),
                               dtable);
    return {dtable};
  });
}

namespace {

/// The ids as [B, H, n] of x, shared ones repeated by strides of 0.
Tensor ids_for(const char* op, const Tensor& x, const Tensor& ids) {
  const bool fits = x.rank() == 4 && ids.rank() == 3 && ids.dtype() == DType::i32 &&
                    (ids.extent(0) == 1 || ids.extent(0) == x.extent(0)) &&
                    (ids.extent(1) == 1 || ids.extent(1) == x.extent(1));
  if (!fits) {
    fail(op, ": rows ", x.shape(), " at ids of ", ids.dtype(), " ", ids.shape(),
         "; they must be [B, H, T, d] at i32 [B or 1, H or 1, n].", index_advice("ids", ids));
  }
  return view::expand(ids.detach(), Shape{x.extent(0), x.extent(1), ids.extent(2)});
}

/// Rows of x [B, H, T, d] at ids [B, H, n], detached from the graph.
Tensor gathered(const Tensor& x, const Tensor& ids) {
  const Tensor y = empty_like(x, Shape{x.extent(0), x.extent(1), ids.extent(2), x.extent(3)});
  launch<kernel::GatherRows>(x.device(), rows(x), ids, y);
  return y;
}

/// Sums of x [B, H, n, d] at ids [B, H, n] of `length` rows, detached from the graph.
Tensor scattered(const Tensor& x, const Tensor& ids, int64_t length) {
  const Tensor y = Tensor::zeros(Shape{x.extent(0), x.extent(1), length, x.extent(3)}, x.dtype(), x.device());
  launch<kernel::ScatterAddRows>(x.device(), ids, rows(x), y);
  return y;
}

}  // namespace

Tensor gather_rows(const Tensor& x, const Tensor& ids) {
  const Tensor each = ids_for("gather_rows", x, ids);
  return record(
      "gather_rows", gathered(x, each), {&x},
      [each, length = x.extent(2)](const Tensor& dy) -> Gradients { return {scattered(dy, each, length)}; });
}

namespace {

/// Fails unless each index (dense, i32) is -1 or one of the axis. On a GPU, gather_rows() finds it.
void check_gathered(const char* op, const Tensor& index, int64_t axis, const Tensor& x) {
  if (index.device() != Device::cpu) return;
  const int32_t* all = index.data<int32_t>();
  for (int64_t i = 0; i < index.size(); ++i) {
    if (all[i] < -1 || all[i] >= x.extent(axis))
      fail(op, ": index ", all[i], " is outside axis ", axis, " of x ", x.shape(), ". Indices are 0 to ",
           x.extent(axis) - 1, ", or -1 for 0.");
  }
}

}  // namespace

Tensor gather(const Tensor& x, int64_t axis, const Tensor& index) {
  check_float("gather", x);
  axis = axis_of("gather", x, axis);
  Shape wanted = x.shape();
  if (index.rank() == x.rank()) wanted[axis] = index.extent(axis);
  if (index.dtype() != DType::i32 || !(index.shape() == wanted))
    fail("gather: index ", index.dtype(), " ", index.shape(), " for axis ", axis, " of x ", x.shape(),
         "; it must be i32 ", wanted, " with any extent along the axis.", index_advice("index", index));
  const auto with_axis_last = [&](const Tensor& from) { return contiguous(transpose(from, axis, -1)); };
  const Tensor last = with_axis_last(x), ids = with_axis_last(index);
  check_gathered("gather", ids, axis, x);
  if (index.size() == 0) return reshape(slice(last, -1, 0, 0), index.shape());
  // Each row along the axis is a head of gather_rows(), whose rows are single numbers.
  const int64_t count = index.extent(axis), heads = index.size() / count;
  const Tensor numbers =
      gather_rows(reshape(last, Shape{1, heads, x.extent(axis), 1}), reshape(ids, Shape{1, heads, count}));
  return transpose(reshape(numbers, ids.shape()), axis, -1);
}

Tensor scatter_add_rows(const Tensor& x, const Tensor& ids, int64_t length) {
  const Tensor each = ids_for("scatter_add_rows", x, ids);
  if (each.extent(2) != x.extent(2)) {
    fail("scatter_add_rows: ", each.extent(2), " ids for rows ", x.shape(), ". Give one id a row.");
  }
  return record("scatter_add_rows", scattered(x, each, length), {&x},
                [each](const Tensor& dy) -> Gradients { return {gathered(dy, each)}; });
}

Tensor segment_mean(const Tensor& x, int64_t count, const Tensor& lengths, const Tensor& counts) {
  if (x.rank() != 4 || count < 1)
    fail("segment_mean: ", count, " segments of x ", x.shape(),
         "; it must be [B, H, T, d], and the segments 1 or more.");
  check_lengths("segment_mean", lengths, x.extent(0), "lengths");
  check_lengths("segment_mean", counts, x.extent(0), "counts");
  const Tensor y = empty_like(x, Shape{x.extent(0), x.extent(1), count, x.extent(3)});
  launch<kernel::SegmentMean>(x.device(), rows(x), lengths, counts, y);
  return record("segment_mean", y, {&x}, [shape = x.shape(), lengths, counts](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(dy, shape);
    launch<kernel::SegmentMeanBack>(dy.device(), rows(dy), lengths, counts, dx);
    return {dx};
  });
}

}  // namespace heed
