// Cross entropy of an output layer, whose logits exist for some rows at a time.
#include <algorithm>
#include <utility>

#include "heed/autograd/autocast.h"
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/ceil_div.h"
#include "heed/core/kernels/content/index_errors.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/kernels/gemm/gemm_layout.h"
#include "heed/core/kernels/gemm/linear.h"
#include "heed/core/kernels/norm/cross_entropy.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// The rows of a chunk where the caller names no number. Fewer rows would make adding to dweight, which each
/// chunk reads and writes whole, slower than its products.
int64_t rows_by_size(int64_t classes, Device device) {
  const bool is_cpu = device == Device::cpu;
  const int64_t max_logits = int64_t{1} << (is_cpu ? 22 : 24), min_rows = is_cpu ? 512 : 1024;
  return std::max(max_logits / std::max<int64_t>(classes, 1), min_rows);
}

void check_output_layer(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                        double smoothing, int64_t chunk_rows) {
  const char* op = "linear_cross_entropy";
  agree_as_activation(op, x, weight);
  if (bias) agree(op, weight, bias);
  if (weight.rank() != 2 || x.rank() < 1 || x.extent(-1) != weight.extent(1) ||
      (bias && !(bias.shape() == Shape{weight.extent(0)})))
    fail(op, ": x ", x.shape(), ", weight ", weight.shape(), " and bias ",
         bias ? to_string(bias.shape()) : "none", ". They must be [..., in], [V, in] and [V] or none.");
  check_not_empty(op, targets);
  if (targets.dtype() != DType::i32 || targets.size() * x.extent(-1) != x.size())
    fail(op, ": targets ", targets.dtype(), " ", targets.shape(), " for x ", x.shape(),
         "; they must be i32 with one target a row.", index_advice("targets", targets));
  if (smoothing < 0 || smoothing >= 1)
    fail(op, ": label smoothing ", smoothing, ". It must be at least 0 and below 1.");
  if (chunk_rows < 0)
    fail(op, ": chunk_rows ", chunk_rows, ". It must be at least 1, or 0 for a number by the sizes.");
}

/// Refuses a target on the CPU that is no class, by its row among all chunks.
void check_classes(const Tensor& targets, int64_t classes, int32_t ignore) {
  if (targets.device() != Device::cpu) return;
  const int32_t* target = targets.data<int32_t>();
  for (int64_t row = 0; row < targets.size(); ++row) {
    if (target[row] != ignore && (target[row] < 0 || target[row] >= classes))
      kernel::refuse_target(target[row], row, classes, ignore);
  }
}

/// x converted to `dtype`.
Tensor converted(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const Tensor y(x.shape(), dtype, x.device());
  launch<kernel::Copy>(x.device(), x, y);
  return y;
}

/// One call, its results, and the buffers of a chunk. All tensors are detached.
struct ChunkedLoss {
  Tensor x, weight, bias, targets;  ///< [N, in], [V, in], [V] or empty, i32 [N]
  double smoothing;
  int32_t ignore;
  Rounding rounding;
  bool narrow;                ///< a device rounds each factor to bf16 once, for all of its products
  Tensor means, counts;       ///< [chunks]: the mean cost of the rows that count, and their number
  Tensor dx, dweight, dbias;  ///< gradients of the sum of all costs; empty where none is wanted
  Tensor one;                 ///< [1]: 1
  Tensor logits;              ///< [rows of the largest chunk, V]

  /// x as the products read it.
  Tensor factor(const Tensor& given) const { return narrow ? converted(given, DType::bf16) : given; }

  /// Costs of the rows begin <= n < end, and what they add to the gradients.
  void add(int64_t chunk, int64_t begin, int64_t end) const {
    const Device device = logits.device();
    const Tensor rows = view::slice(x, 0, begin, end), wanted = view::slice(targets, 0, begin, end),
                 scores = view::slice(logits, 0, 0, end - begin),
                 lse = empty_like(logits, Shape{end - begin});
    launch<kernel::Linear>(device, rows, weight, bias, Tensor(), scores, rounding);
    launch<kernel::CrossEntropy>(device, scores, wanted, smoothing, ignore, lse,
                                 view::slice(means, 0, chunk, chunk + 1),
                                 view::slice(counts, 0, chunk, chunk + 1));
    if (!dx && !dweight && !dbias) return;
    // In place: the gradient of a sum is that of a mean over one row.
    const kernel::CrossEntropyBackTensors t{
        .logits = scores, .targets = wanted, .lse = lse, .counted = one, .dloss = one, .dlogits = scores};
    launch<kernel::CrossEntropyBack>(device, t, smoothing, ignore);
    const Tensor dy = factor(scores);
    const double beta = chunk > 0 ? 1 : 0;  // the first chunk overwrites dweight
    if (dx)
      launch<kernel::LinearBack>(device, dy, weight, Tensor(), view::slice(dx, 0, begin, end), Tensor(),
                                 rounding);
    if (dweight) launch<kernel::Gemm>(device, view::transpose(dy, 0, 1), rows, dweight, 1.0, beta, rounding);
    if (!dbias) return;
    const Tensor sums = chunk > 0 ? empty_like(dbias) : dbias;
    launch<kernel::Sum>(device, scores, view::reshape(sums, Shape{1, sums.size()}));
    if (chunk > 0) launch<kernel::Accumulate>(device, sums, dbias);
  }
};

/// The mean over all rows that count, from those of the chunks; and the number of these rows, at least 1.
std::pair<Tensor, Tensor> mean_of(const Tensor& means, const Tensor& counts) {
  const NoGrad no_grad;
  const Tensor count = maximum(sum(counts), 1.0);
  return {sum(means * counts) / count, count};
}

/// scale x [...] for a scale of rank 0, written to y.
Tensor scaled(const Tensor& x, const Tensor& scale, const Tensor& y) {
  launch<kernel::Zip<Multiply>>(x.device(), x, view::expand(scale, x.shape()), y);
  return y;
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                            double smoothing, int32_t ignore, int64_t chunk_rows) {
  check_output_layer(x, weight, bias, targets, smoothing, chunk_rows);
  const int64_t N = targets.size(), in = weight.extent(1), V = weight.extent(0);
  const int64_t max_rows = chunk_rows > 0 ? chunk_rows : rows_by_size(V, x.device());
  if (N == 0 || (chunk_rows == 0 && N <= max_rows))
    return cross_entropy(linear(x, weight, bias, weight.dtype()), targets, smoothing, ignore);
  // Chunks of equal size, so that no last one is much smaller.
  const int64_t chunks = ceil_div(N, max_rows), least = N / chunks;
  const Rounding rounding = product_rounding();
  ChunkedLoss call{.x = view::reshape(contiguous(x.detach()), Shape{N, in}),
                   .weight = weight.detach(),
                   .bias = bias ? contiguous(bias.detach()) : Tensor(),
                   .targets = view::reshape(contiguous(targets.detach()), Shape{N}),
                   .smoothing = smoothing,
                   .ignore = ignore,
                   .rounding = rounding,
                   .narrow = rounding == Rounding::bf16 && weight.dtype() == DType::f32 &&
                             weight.device() != Device::cpu &&
                             std::min({least, in, V}) >= kernel::min_rounded_extent,
                   .means = empty_like(weight, Shape{chunks}),
                   .counts = empty_like(weight, Shape{chunks}),
                   .dx = {},
                   .dweight = {},
                   .dbias = {},
                   .one = Tensor::full(Shape{1}, 1, weight.dtype(), weight.device()),
                   .logits = empty_like(weight, Shape{ceil_div(N, chunks), V})};
  check_classes(call.targets, V, ignore);
  const bool records = recording();
  if (records && x.node()) call.dx = empty_like(weight, call.x.shape());
  if (records && weight.node()) call.dweight = empty_like(weight, weight.shape());
  if (records && bias && bias.node()) call.dbias = empty_like(weight, Shape{V});
  call.x = call.factor(call.x);
  call.weight = call.factor(kernel::gemm_ready(call.weight) ? call.weight : contiguous(call.weight));
  for (int64_t i = 0; i < chunks; ++i) call.add(i, N * i / chunks, N * (i + 1) / chunks);
  const auto [loss, count] = mean_of(call.means, call.counts);
  const auto vjp = [dx = call.dx, dweight = call.dweight, dbias = call.dbias, count, from = x.shape(),
                    dtype = x.dtype()](const Tensor& dy) {
    const Tensor scale = dy / count;
    Gradients gradients(3);
    if (dx) gradients[0] = view::reshape(converted(scaled(dx, scale, empty_like(dx)), dtype), from);
    if (dweight) gradients[1] = scaled(dweight, scale, gradient_target(1, dweight));
    if (dbias) gradients[2] = scaled(dbias, scale, gradient_target(2, dbias));
    return gradients;
  };
  return record("linear_cross_entropy", loss, {&x, &weight, &bias}, vjp);
}

}  // namespace heed
