// Sums of monomials over all keys on a device, by segments that are added in order; and their gradients.
#include "core/kernels/fastmax_sums.h"

#include "core/count.h"
#include "core/kernels/fastmax_back_device.h"

namespace heed::kernel {
namespace {

template <class T>
void forward(const Tensor& k, const Tensor& v, const FastmaxTerms& terms, const Tensor& state) {
  const FastmaxShape<T> x = fastmax_shape(Tensor(), k, v.extent(3), terms, true, T());
  const PreparedRows<T> keys = prepared(x, k, T(1));
  const int64_t segment = fastmax_share(x, x.keys), segments = segments_of(x.keys, segment);
  const Tensor parts(Shape{std::max<int64_t>(1, x.B * x.H * segments * x.table.count), x.state_wide()},
                     k.dtype(), k.device());
  const FastmaxTokens<T> tokens{.rows = keys.rows.template data<T>(),
                                .with = {Heads<const T>(v)},
                                .length = x.keys,
                                .segment = segment,
                                .query = false};
  start_feature_sums(x, tokens, parts.data<T>());
  start_pass_states_on(parts.data<T>(), x.B, x.H, segments, x.table.count, x.dv + 1, x.state_wide(), Tensor(),
                       state, false);
  Count::add(2 * x.B * x.H * x.keys * x.table.count * (x.dv + 1));
}

template <class T>
void backward(const Tensor& k, const Tensor& v, const FastmaxTerms& terms, const Tensor& dstate,
              const Tensor& dk, const Tensor& dv) {
  FastmaxBackCall<T> call{.shape = fastmax_shape(Tensor(), k, v.extent(3), terms, true, T()),
                          .v = Heads<const T>(v),
                          .after = dstate.data<T>(),
                          .state_ld = dstate.extent(3),
                          .segment = std::max<int64_t>(1, k.extent(2)),
                          .dv = Heads<T>(dv)};
  call.shape.letters_near = letters_fit(call.shape);
  const FastmaxShape<T>& x = call.shape;
  const PreparedRows<T> keys = prepared(x, k, T(1));
  call.k = keys.rows.template data<T>();
  const Tensor dk_rows = like(keys.rows);
  call.dk = dk_rows.data<T>();
  fastmax_back_keys(call);
  unprepare(x, dk_rows, keys, false, T(1), dk);
  Count::add(4 * x.B * x.H * x.keys * x.table.count * (x.dv + 1));
}

}  // namespace

void FastmaxSums::cuda(const Tensor& k, const Tensor& v, const FastmaxTerms& terms, const Tensor& state) {
  visit_float("fastmax", k.dtype(),
              [&](auto type) { forward<typename decltype(type)::type>(k, v, terms, state); });
}

void FastmaxSumsBack::cuda(const Tensor& k, const Tensor& v, const FastmaxTerms& terms, const Tensor& dstate,
                           const Tensor& dk, const Tensor& dv) {
  visit_float("fastmax", k.dtype(),
              [&](auto type) { backward<typename decltype(type)::type>(k, v, terms, dstate, dk, dv); });
}

}  // namespace heed::kernel
