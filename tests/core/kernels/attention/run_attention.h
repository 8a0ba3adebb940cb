// Runs a fused attention kernel and its backward kernel on one set of heads.
#pragma once

#include "heed/core/kernels/attention/attention.h"
#include "heed/tests/any_device.h"
#include "heed/tests/core/kernels/attention_arguments_on_device.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed::test {

/// Outputs [B, H, Tq, dv], log-sum-exp of rows [B, H, Tq], and gradients in the shapes of q, k and v.
struct HeadOutputs {
  Tensor out, lse, dq, dk, dv;
};

/// Forward, then backward with x.dout, on the device of launch_here(). What the kernels leave unwritten is
/// seen: outputs begin as blank_like() makes them.
template <class Forward, class Backward, class Terms>
HeadOutputs run_attention(const HeadInputs& x, const Terms& terms) {
  HeadOutputs y{.out = blank_like(x.dout),
                .lse = Tensor({x.q.extent(0), x.q.extent(1), x.q.extent(2)}, x.q.dtype()),
                .dq = blank_like(x.q),
                .dk = blank_like(x.k),
                .dv = blank_like(x.v)};
  launch_here<Forward>(x.q, x.k, x.v, terms, y.out, y.lse);
  launch_here<Backward>(kernel::AttentionBackTensors{.q = x.q,
                                                     .k = x.k,
                                                     .v = x.v,
                                                     .out = y.out,
                                                     .lse = y.lse,
                                                     .dout = x.dout,
                                                     .dq = y.dq,
                                                     .dk = y.dk,
                                                     .dv = y.dv},
                        terms);
  return y;
}

}  // namespace heed::test
