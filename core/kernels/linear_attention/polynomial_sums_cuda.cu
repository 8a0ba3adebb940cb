// Sums of monomials over all keys on a device, by segments that are added in order; and their gradients.
#include "heed/core/kernels/linear_attention/polynomial_sums.h"

#include "heed/core/kernels/linear_attention/polynomial_backward_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// state [B, H, f, dv + 1] = sum over visible keys j of m(k_j) [v_j, 1]^T: sums of segments in parallel, then
/// their sum in order.
template <class T>
void forward(const Tensor& k, const Tensor& v, const PolynomialParams& params, const Tensor& state) {
  const PolynomialShape<T> x = polynomial_shape(Tensor(), k, v.extent(3), params, /*factored=*/true, T());
  const MappedRows<T> keys = map_rows(x, k, TokenRole::key);
  const PolynomialTokens<T> tokens{.role = TokenRole::key,
                                   .rows = keys.rows.template data<T>(),
                                   .length = x.keys,
                                   .segment = balanced_segment_length(x, x.keys),
                                   .values = HeadView<const T>(v, x.key_starts)};
  const Tensor segment_states = new_states(x, ceil_div(x.keys, tokens.segment), k);
  sum_other_segments(x, tokens, Tensor(), /*total=*/state, segment_states.data<T>());
  Count::add(2 * x.B * x.H * x.keys * x.table.num_features * (x.dv + 1));
}

/// dk and dv from dstate [B, H, f, dv + 1]: polynomial_backward_keys() with dstate in the place of the sums
/// over later queries, then from mapped keys back to k.
template <class T>
void backward(const Tensor& k, const Tensor& v, const PolynomialParams& params, const Tensor& dstate,
              const Tensor& dk, const Tensor& dv) {
  PolynomialBackCall<T> call{
      .shape = polynomial_shape(Tensor(), k, v.extent(3), params, /*factored=*/true, T()),
      .v = HeadView<const T>(v, data_or_null<int32_t>(params.keys.starts)),
      .query_states = dstate.data<T>(),
      .state_ld = dstate.extent(3),
      .segment = std::max<int64_t>(1, longest_sequence(k, params.keys)),
      .dv = HeadView<T>(dv, data_or_null<int32_t>(params.keys.starts))};
  call.shape.variables_in_shared = variables_fit_in_shared(call.shape);
  const PolynomialShape<T>& x = call.shape;
  const MappedRows<T> keys = map_rows(x, k, TokenRole::key);
  call.k = keys.rows.template data<T>();
  const Tensor dk_rows = empty_like(keys.rows);
  call.dk = dk_rows.data<T>();
  polynomial_backward_keys(call);
  start_feature_map_gradient(x, dk_rows, keys, TokenRole::key, dk);
  Count::add(4 * x.B * x.H * x.keys * x.table.num_features * (x.dv + 1));
}

}  // namespace

void PolynomialSums::cuda(const Tensor& k, const Tensor& v, const PolynomialParams& params,
                          const Tensor& state) {
  visit_float("polynomial_attention", k.dtype(), [&]<class T>(Type<T>) { forward<T>(k, v, params, state); });
}

void PolynomialSumsBack::cuda(const Tensor& k, const Tensor& v, const PolynomialParams& params,
                              const Tensor& dstate, const Tensor& dk, const Tensor& dv) {
  visit_float("polynomial_attention", k.dtype(),
              [&]<class T>(Type<T>) { backward<T>(k, v, params, dstate, dk, dv); });
}

}  // namespace heed::kernel
