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
inline bool acted_here() { return device_here() != Device::cpu && cuda::emulated; }

}  // namespace heed

namespace heed::kernel {

inline AttentionTerms mirrored(Mirror& mirror, AttentionTerms terms) {
  for (Tensor* each : {&terms.key_lengths, &terms.bias, &terms.relative, &terms.sink}) *each = mirror(*each);
  terms.draw = mirror(terms.draw);
  return terms;
}

inline PatternTerms mirrored(Mirror& mirror, PatternTerms terms) {
  terms.key_lengths = mirror(terms.key_lengths);
  terms.draw = mirror(terms.draw);
  return terms;
}

inline DecayInputs mirrored(Mirror& mirror, const DecayInputs& x) {
  return {mirror(x.q), mirror(x.k), mirror(x.v), mirror(x.log_decay), mirror(x.beta), mirror(x.start)};
}

inline PolynomialTerms mirrored(Mirror& mirror, PolynomialTerms terms) {
  terms.key_lengths = mirror(terms.key_lengths);
  terms.draw = mirror(terms.draw);
  return terms;
}

}  // namespace heed::kernel
