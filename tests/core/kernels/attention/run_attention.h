// Runs a fused attention kernel and its backward kernel on one set of heads.
#pragma once

#include "heed/core/kernels/attention/attention.h"
#include "heed/tests/any_device.h"
#include "heed/tests/core/kernels/attention_arguments_on_device.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed::test {

/// Outputs [B, H, Tq, dv], log-sum-exp of rows [B, H, Tq] or as [2, B, H, Tq] with its rounding errors,
/// gradients in the shapes of q, k and v, and that of relative biases, if any.
struct HeadOutputs {
  Tensor out, lse, dq, dk, dv, drelative;
};

/// Forward, then backward with x.dout, on `device`; x has q, k, v and dout. What the kernels leave unwritten
/// is seen: outputs begin as blank_like() makes them. `drelative` gets the gradient of relative biases.
/// `lse`: memory for the log-sum-exps; empty: [B, H, Tq] is made.
template <class Forward, class Backward, class Inputs, class Params>
HeadOutputs run_attention_on(Device device, const Inputs& x, const Params& params,
                             const Tensor& drelative = {}, const Tensor& lse = {}) {
  HeadOutputs y{.out = blank_like(x.dout),
                .lse = lse ? lse : Tensor({x.q.extent(0), x.q.extent(1), x.q.extent(2)}, x.q.dtype()),
                .dq = blank_like(x.q),
                .dk = blank_like(x.k),
                .dv = blank_like(x.v),
                .drelative = drelative};
  launch_on<Forward>(device, x.q, x.k, x.v, params, y.out, y.lse);
  launch_on<Backward>(device,
                      kernel::AttentionBackTensors{.q = x.q,
                                                   .k = x.k,
                                                   .v = x.v,
                                                   .out = y.out,
                                                   .lse = y.lse,
                                                   .dout = x.dout,
                                                   .dq = y.dq,
                                                   .dk = y.dk,
                                                   .dv = y.dv,
                                                   .drelative = y.drelative},
                      params);
  return y;
}

/// Runs run_attention_on() on the device of launch_here().
template <class Forward, class Backward, class Params>
HeadOutputs run_attention(const HeadInputs& x, const Params& params) {
  return run_attention_on<Forward, Backward>(device_here(), x, params);
}

}  // namespace heed::test
