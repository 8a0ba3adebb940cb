// Additive scores, Gaussian windows around a centre, and the addressing of neural Turing machines.
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/fused_op_heads.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/attention/additive_score.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// Key lengths detached from the graph, checked against the batch.
Tensor settled(const char* op, const Tensor& lengths, int64_t batch) {
  check_lengths(op, lengths, batch);
  return lengths ? contiguous(lengths.detach()) : lengths;
}

}  // namespace

Tensor additive_scores(const Tensor& left, const Tensor& right, const Tensor& units) {
  if (left.rank() != 4 || right.rank() != 4 || units.rank() != 2 || left.extent(0) != right.extent(0) ||
      left.extent(1) != right.extent(1) || left.extent(3) != right.extent(3) ||
      units.extent(0) != left.extent(1) || units.extent(1) != left.extent(3)) {
    fail("additive_scores: left ", left.shape(), ", right ", right.shape(), ", units ", units.shape(),
         "; they must be [B, H, Tq, A], [B, H, Tk, A], [H, A].");
  }
  agree("additive_scores", left, right);
  agree("additive_scores", left, units);
  const Tensor l = contiguous(left.detach()), u = contiguous(units.detach());
  const Tensor r = contiguous(view::transpose(right.detach(), 2, 3));  // [B, H, A, Tk]
  const Tensor score = empty_like(l, Shape{l.extent(0), l.extent(1), l.extent(2), r.extent(3)});
  launch<kernel::AdditiveScore>(l.device(), l, r, u, score);
  return record("additive_scores", score, {&left, &right, &units}, [l, r, u](const Tensor& dy) -> Gradients {
    const Tensor dl = empty_like(l), dr = empty_like(r);
    const Tensor du = empty_like(l, Shape{l.extent(0), l.extent(1), l.extent(3)});
    launch<kernel::AdditiveScoreBack>(l.device(), kernel::AdditiveInputs{.left = l, .right = r, .units = u},
                                      contiguous(dy),
                                      kernel::AdditiveInputs{.left = dl, .right = dr, .units = du});
    return {dl, view::transpose(dr, 2, 3), sum_to(du, u.shape())};
  });
}

Tensor local_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
                       const kernel::LocalParams& given) {
  const char* op = "local_attention";
  check_heads(op, q, k, v);
  const Shape per_query{q.extent(0), q.extent(1), q.extent(2)};
  if (!(centre.shape() == per_query)) fail(op, ": centre ", centre.shape(), "; it must be ", per_query, ".");
  agree(op, q, centre);
  if (given.half_width < 0)
    fail(op, ": a window of half width ", given.half_width, ". It must be at least 0.");
  if (!(given.sigma > 0)) fail(op, ": sigma = ", given.sigma, ". It must be above 0.");
  kernel::LocalParams params = given;
  params.key_lengths = settled(op, given.key_lengths, q.extent(0));
  const Tensor rq = rows(q), rk = rows(k), rv = rows(v), at = contiguous(centre.detach());
  const Tensor out = heads_like(q, q.extent(2), v.extent(3));
  launch<kernel::LocalAttention>(q.device(), rq, rk, rv, at, params, out);
  return record(op, out, {&q, &k, &v, &centre}, [rq, rk, rv, at, params](const Tensor& dout) -> Gradients {
    const Tensor dq = gradient_like(rq);
    const Tensor dk = gradient_like(rk);
    const Tensor dv = heads_like(rv), dcentre = empty_like(at);
    const kernel::LocalAttentionBackTensors t{.q = rq,
                                              .k = rk,
                                              .v = rv,
                                              .centre = at,
                                              .dout = rows(dout),
                                              .dq = dq,
                                              .dk = dk,
                                              .dv = dv,
                                              .dcentre = dcentre};
    launch<kernel::LocalAttentionBack>(rq.device(), t, params);
    return {dq, dk, dv, dcentre};
  });
}

Tensor ntm_addressing(const Tensor& content, const AddressingSteps& steps,
                      const kernel::AddressingParams& given) {
  const char* op = "ntm_addressing";
  if (content.rank() != 4) fail(op, ": content ", content.shape(), "; it must be [B, H, Tq, Tk].");
  const int64_t b = content.extent(0), h = content.extent(1), n = content.extent(2), keys = content.extent(3);
  const auto given_as = [&](const char* name, const Tensor& x, const Shape& wanted) {
    if (!x) return Tensor();
    if (!(x.shape() == wanted)) fail(op, ": ", name, " ", x.shape(), "; it must be ", wanted, ".");
    agree(op, content, x);
    return contiguous(x.detach());
  };
  const int64_t shifts = steps.shift && steps.shift.rank() == 4 ? steps.shift.extent(3) : 1;
  if (shifts % 2 == 0) fail(op, ": ", shifts, " shifts. They must be odd in number, from -r to r.");
  const Tensor c = contiguous(content.detach());
  const Tensor before = given_as("before", steps.before, Shape{b, h, keys});
  const Tensor gate = given_as("gate", steps.gate, Shape{b, h, n});
  const Tensor shift = given_as("shift", steps.shift, Shape{b, h, n, shifts});
  const Tensor sharp = given_as("sharp", steps.sharp, Shape{b, h, n});
  kernel::AddressingParams params = given;
  params.key_lengths = settled(op, given.key_lengths, b);
  const Tensor out = empty_like(c);
  const kernel::AddressingInputs x{
      .content = c, .before = before, .gate = gate, .shift = shift, .sharp = sharp};
  launch<kernel::NtmAddressing>(c.device(), x, params, out);
  const std::vector<Tensor> inputs{content, steps.before, steps.gate, steps.shift, steps.sharp};
  return record(op, out, inputs, [x, params, out](const Tensor& dout) -> Gradients {
    const auto room = [](const Tensor& input) { return input ? empty_like(input) : Tensor(); };
    const kernel::AddressingInputs dx{.content = empty_like(x.content),
                                      .before = room(x.before),
                                      .gate = room(x.gate),
                                      .shift = room(x.shift),
                                      .sharp = room(x.sharp)};
    launch<kernel::NtmAddressingBack>(x.content.device(), x, params, out, contiguous(dout), dx);
    return {dx.content, dx.before, dx.gate, dx.shift, dx.sharp};
  });
}

}  // namespace heed
