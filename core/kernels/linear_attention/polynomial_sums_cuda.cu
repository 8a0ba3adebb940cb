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
  const PolynomialShape<T> x = polynomial_shape(Tensor(), k, v.extent(3), params, true, T());
  const MappedRows<T> keys = map_rows(x, k, false);
  const int64_t segment = balanced_segment_length(x, x.keys), segments = ceil_div(x.keys, segment);
  const Tensor parts(Shape{std::max<int64_t>(1, x.B * x.H * segments * x.table.count), x.state_width()},
                     k.dtype(), k.device());
  const PolynomialTokens<T> tokens{.rows = keys.rows.template data<T>(),
                                   .augmented = {HeadView<const T>(v)},
                                   .length = x.keys,
                                   .segment = segment,
                                   .query = false};
  start_feature_sums(x, tokens, parts.data<T>());
  start_accumulate_segments(parts.data<T>(), x.B, x.H, segments, x.table.count, x.dv + 1, x.state_width(),
                            Tensor(), state, false);
  Count::add(2 * x.B * x.H * x.keys * x.table.count * (x.dv + 1));
}

/// dk and dv from dstate [B, H, f, dv + 1]: polynomial_backward_keys() with dstate in the place of sums over
/// later queries, then from mapped keys back to k.
template <class T>
void backward(const Tensor& k, const Tensor& v, const PolynomialParams& params, const Tensor& dstate,
              const Tensor& dk, const Tensor& dv) {
  PolynomialBackCall<T> call{.shape = polynomial_shape(Tensor(), k, v.extent(3), params, true, T()),
                             .v = HeadView<const T>(v),
                             .after = dstate.data<T>(),
                             .state_ld = dstate.extent(3),
                             .segment = std::max<int64_t>(1, k.extent(2)),
                             .dv = HeadView<T>(dv)};
  call.shape.variables_in_shared = variables_fit_in_shared(call.shape);
  const PolynomialShape<T>& x = call.shape;
  const MappedRows<T> keys = map_rows(x, k, false);
  call.k = keys.rows.template data<T>();
  const Tensor dk_rows = empty_like(keys.rows);
  call.dk = dk_rows.data<T>();
  polynomial_backward_keys(call);
  unmap_gradients(x, dk_rows, keys, false, dk);
  Count::add(4 * x.B * x.H * x.keys * x.table.count * (x.dv + 1));
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
