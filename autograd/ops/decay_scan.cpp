// Decaying scans of gated linear attention.
#include "heed/core/kernels/linear_attention/decay_scan.h"

#include "heed/autograd/ops.h"
#include "heed/autograd/ops/fused_op_heads.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

void expect(const char* what, const Tensor& found, const Tensor& v, std::initializer_list<int64_t> extents) {
  if (!found) return;
  agree("decay_scan", v, found);
  Shape wanted;
  for (const int64_t extent : extents) wanted.push_back(extent);
  if (!(found.shape() == wanted))
    fail("decay_scan: ", what, " is ", found.shape(), "; it must be ", wanted, ".");
}

/// The inputs detached from the graph, checked.
kernel::DecayInputs settled(const kernel::DecayInputs& x) {
  if (x.q.rank() != 4 || x.v.rank() != 4)
    fail("decay_scan: q ", x.q.shape(), " and v ", x.v.shape(),
         "; they must be [B, H, T, f] and [B, H, T, d].");
  const int64_t B = x.q.extent(0), H = x.q.extent(1), length = x.q.extent(2), f = x.q.extent(3),
                d = x.v.extent(3);
  expect("q", x.q, x.v, {B, H, length, f});
  expect("k", x.k, x.v, {B, H, length, f});
  expect("v", x.v, x.v, {B, H, length, d});
  const bool shared = x.log_decay && x.log_decay.rank() == 4 && x.log_decay.extent(3) == 1;
  expect("log_decay", x.log_decay, x.v, {B, H, length, shared ? 1 : f});
  expect("beta", x.beta, x.v, {B, H, length, 1});
  expect("start", x.start, x.v, {B, H, f, d});
  return {rows(x.q), rows(x.k), rows(x.v), rows(x.log_decay), rows(x.beta), rows(x.start)};
}

}  // namespace

Tensor decay_scan(const kernel::DecayInputs& given, bool keep_end) {
  const kernel::DecayInputs x = settled(given);
  const int64_t length = x.q.extent(2), f = x.q.extent(3);
  // One result holds outputs and state, so that one node knows the gradients of both.
  const Tensor y = heads_like(x.v, length + (keep_end ? f : 0), x.v.extent(3));
  const auto out_of = [length](const Tensor& joined) { return view::slice(joined, 2, 0, length); };
  const auto end_of = [length, f, keep_end](const Tensor& joined) {
    return keep_end ? view::slice(joined, 2, length, length + f) : Tensor();
  };
  const Tensor rest = heads_like(x.beta ? x.v : Tensor());
  launch<kernel::DecayScan>(x.v.device(), x, out_of(y), end_of(y), rest);
  return record(
      "decay_scan", y, {&given.q, &given.k, &given.v, &given.log_decay, &given.beta, &given.start},
      [x, rest, out_of, end_of,
       wants_decay = given.log_decay && given.log_decay.node()](const Tensor& given_dy) -> Gradients {
        const Tensor dy = rows(given_dy);
        const kernel::DecayInputs dx{heads_like(x.q),    heads_like(x.k),
                                     heads_like(x.v),    wants_decay ? heads_like(x.log_decay) : Tensor(),
                                     heads_like(x.beta), heads_like(x.start)};
        launch<kernel::DecayScanBack>(x.v.device(), x, rest, out_of(dy), end_of(dy), dx);
        return {dx.q, dx.k, dx.v, dx.log_decay, dx.beta, dx.start};
      });
}

}  // namespace heed
