// Copies the argument structs of attention kernels to a device (see Mirror), and tells if that is emulated.
#pragma once

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/attention/pattern_attention.h"
#include "heed/core/kernels/linear_attention/decay_scan.h"
#include "heed/core/kernels/linear_attention/polynomial_attention.h"
#include "heed/tests/any_device.h"
#include "heed/tests/core/kernels/tensors_on_device.h"

namespace heed {

/// True if the test runs on the emulated device, where large inputs take minutes.
inline bool is_emulated() { return device_here() != Device::cpu && cuda::emulated; }

}  // namespace heed

namespace heed::kernel {

inline AttentionParams mirrored(Mirror& mirror, AttentionParams params) {
  for (Tensor* each : {&params.key_lengths, &params.bias, &params.relative, &params.sink,
                       &params.queries.starts, &params.keys.starts})
    *each = mirror(*each);
  params.draw = mirror(params.draw);
  return params;
}

inline PatternParams mirrored(Mirror& mirror, PatternParams params) {
  params.key_lengths = mirror(params.key_lengths);
  params.draw = mirror(params.draw);
  return params;
}

inline DecayInputs mirrored(Mirror& mirror, const DecayInputs& x) {
  return {mirror(x.q), mirror(x.k), mirror(x.v), mirror(x.log_decay), mirror(x.beta), mirror(x.start)};
}

inline PolynomialParams mirrored(Mirror& mirror, PolynomialParams params) {
  for (Tensor* each : {&params.key_lengths, &params.queries.starts, &params.keys.starts})
    *each = mirror(*each);
  params.draw = mirror(params.draw);
  return params;
}

}  // namespace heed::kernel
