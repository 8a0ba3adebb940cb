// Attention whose weights are polynomials of scores. The causal form is one kernel; the other one sums over
// keys first and then applies these sums to queries.
#include "heed/core/kernels/linear_attention/polynomial_attention.h"

#include "heed/autograd/ops.h"
#include "heed/autograd/ops/column_parts.h"
#include "heed/autograd/ops/fused_op_heads.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/linear_attention/polynomial_backward.h"
#include "heed/core/kernels/linear_attention/polynomial_sums.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

using kernel::PolynomialParams;
using kernel::PolynomialPath;

void check_keys(const char* op, const Tensor& k, const Tensor& v) {
  if (k.rank() != 4 || v.rank() != 4 || k.extent(0) != v.extent(0) || k.extent(1) != v.extent(1) ||
      k.extent(2) != v.extent(2)) {
    fail(op, ": k ", k.shape(), ", v ", v.shape(), "; they must be [B, H, Tk, d], [B, H, Tk, dv].");
  }
  agree(op, k, v);
}

/// `batch`: the number of sequences.
PolynomialParams settled(const char* op, int64_t batch, PolynomialParams params) {
  if (params.coefficients.empty()) fail(op, ": no coefficients. Give a_0 to a_p.");
  if (params.chunk < 0 || params.chunk > 256 || params.chunk % 16 != 0)
    fail(op, ": a chunk of ", params.chunk, ". It must be a multiple of 16 up to 256, or 0.");
  check_dropout(op, params.dropout, params.draw);
  if (kernel::drops_monomials(params) && params.path == PolynomialPath::dense)
    fail(op, ": monomials are dropped, but pairs are weighed without them. Leave the path to the op.");
  check_lengths(op, params.key_lengths, batch);
  if (params.key_lengths) params.key_lengths = contiguous(params.key_lengths.detach());
  return params;
}

Shape state_shape(const char* op, int64_t batch, const Tensor& x, int64_t dv,
                  const PolynomialParams& params) {
  constexpr int64_t max_size = int64_t{1} << 28;
  const int64_t features = kernel::num_polynomial_features(x.extent(3), params.coefficients);
  if (features > max_size / (dv + 1)) {
    fail(op, ": degree ", params.coefficients.size() - 1, " of ", x.extent(3), " variables has ",
         features == int64_t{1} << 50 ? "more than 10^15" : text(features),
         " monomials, too many to keep sums of. Use a lower degree, or narrower heads.");
  }
  return Shape{batch, x.extent(1), features, dv + 1};
}

/// polynomial_attention() of the sums over all keys, for queries that see all of them. One op, so that the
/// gradients of q, k and v are written where linear_each() reads them.
Tensor attention_by_sums(const Tensor& q, const Tensor& k, const Tensor& v, const PolynomialParams& params) {
  constexpr const char* op = "polynomial_attention";
  const Tensor rq = rows(q), rk = rows(k), rv = rows(v);
  const int64_t batch = batch_of(op, q, params.queries),
                longest = params.queries ? params.queries.longest : q.extent(2);
  const Tensor state = empty_like(k, state_shape(op, batch, k, v.extent(3), params));
  launch<kernel::PolynomialSums>(k.device(), rk, rv, params, state);
  const Tensor out = heads_like(q, q.extent(2), v.extent(3));
  const Tensor sums = empty_like(q, Shape{batch, q.extent(1), longest});
  const kernel::PolynomialInputs x{.q = rq, .k = {}, .v = {}, .start = state};
  launch<kernel::PolynomialAttention>(q.device(), x, params, out, sums);
  return record(op, out, {&q, &k, &v}, [x, rk, rv, params, out, sums](const Tensor& dout) -> Gradients {
    Gradients d = gradients_like({{x.q, rk, rv}});
    const kernel::PolynomialInputs dx{.q = d[0], .k = {}, .v = {}, .start = empty_like(x.start)};
    launch<kernel::PolynomialAttentionBack>(rk.device(), x, params, out, sums, rows(dout), dx);
    launch<kernel::PolynomialSumsBack>(rk.device(), rk, rv, params, dx.start, d[1], d[2]);
    return d;
  });
}

}  // namespace

Tensor polynomial_sums(const Tensor& k, const Tensor& v, const PolynomialParams& given) {
  check_keys("polynomial_sums", k, v);
  const int64_t batch = batch_of("polynomial_sums", k, given.keys);
  const PolynomialParams params = settled("polynomial_sums", batch, given);
  const Tensor rk = rows(k), rv = rows(v);
  const Tensor state = empty_like(k, state_shape("polynomial_sums", batch, k, v.extent(3), params));
  launch<kernel::PolynomialSums>(k.device(), rk, rv, params, state);
  return record("polynomial_sums", state, {&k, &v}, [rk, rv, params](const Tensor& dstate) -> Gradients {
    Gradients d = gradients_like({{rk, rv}});
    launch<kernel::PolynomialSumsBack>(rk.device(), rk, rv, params, contiguous(dstate.detach()), d[0], d[1]);
    return d;
  });
}

Tensor polynomial_attention(const Tensor& q, const Tensor& k, const Tensor& v, const PolynomialParams& given,
                            const Tensor& start) {
  if (q.rank() != 4) fail("polynomial_attention: q ", q.shape(), "; it must be [B, H, Tq, d].");
  const int64_t batch = batch_of("polynomial_attention", q, given.queries);
  PolynomialParams params = settled("polynomial_attention", batch, given);
  if (k) {
    check_keys("polynomial_attention", k, v);
    agree("polynomial_attention", q, k);
    if (batch != batch_of("polynomial_attention", k, params.keys) || q.extent(1) != k.extent(1) ||
        q.extent(3) != k.extent(3))
      fail("polynomial_attention: q ", q.shape(), ", k ", k.shape(),
           "; batch, heads and width must be the same.");
    if (params.causal && q.extent(2) != k.extent(2)) {
      fail("polynomial_attention: ", q.extent(2), " causal queries for ", k.extent(2),
           " keys. Each query has its key; give the sums over earlier ones as start.");
    }
    const int64_t longest = params.keys ? params.keys.longest : k.extent(2);
    const bool dense = !start && kernel::prefers_dense_polynomial(longest, k.extent(3), params);
    params.path = dense ? PolynomialPath::dense : PolynomialPath::factored;
    if (!dense && !params.causal && !start) return attention_by_sums(q, k, v, params);
    if (!dense && !params.causal)
      return polynomial_attention(q, Tensor(), Tensor(), params, start + polynomial_sums(k, v, params));
  } else if (!start) {
    fail("polynomial_attention: neither keys nor sums over keys. Give one of them.");
  }
  const int64_t width = k ? v.extent(3) : start.extent(3) - 1;
  if (start) {
    agree("polynomial_attention", q, start);
    const Shape wanted = state_shape("polynomial_attention", batch, q, width, params);
    if (!(start.shape() == wanted))
      fail("polynomial_attention: start is ", start.shape(), "; it must be ", wanted, ".");
  } else if (params.path == PolynomialPath::factored) {
    state_shape("polynomial_attention", batch, q, width, params);
  }
  const Tensor rq = rows(q), rk = rows(k), rv = rows(v);
  const Tensor before = start ? contiguous(start.detach()) : start;
  const Tensor out = heads_like(q, q.extent(2), width);
  const int64_t longest = params.queries ? params.queries.longest : q.extent(2);
  const Tensor sums = empty_like(q, Shape{batch, q.extent(1), longest});
  const kernel::PolynomialInputs x{.q = rq, .k = rk, .v = rv, .start = before};
  launch<kernel::PolynomialAttention>(q.device(), x, params, out, sums);
  std::vector<Tensor> inputs{q};
  if (k) inputs.insert(inputs.end(), {k, v});
  if (start) inputs.push_back(start);
  return record("polynomial_attention", out, inputs, [x, params, out, sums](const Tensor& dout) -> Gradients {
    const std::vector<Tensor> d = gradients_like({{x.q, x.k, x.v}});
    const kernel::PolynomialInputs dx{
        .q = d[0], .k = d[1], .v = d[2], .start = x.start ? empty_like(x.start) : x.start};
    launch<kernel::PolynomialAttentionBack>(x.q.device(), x, params, out, sums, rows(dout), dx);
    Gradients gradients{dx.q};
    if (dx.k) gradients.insert(gradients.end(), {dx.k, dx.v});
    if (dx.start) gradients.push_back(dx.start);
    return gradients;
  });
}

}  // namespace heed
