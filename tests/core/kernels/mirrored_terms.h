// How what the kernels of attention are called with is mirrored on a device (see Mirror), and whether that is
// slow.
#pragma once

#include "core/cuda/context.h"
#include "core/kernels/attention.h"
#include "core/kernels/block_attention.h"
#include "core/kernels/decay_scan.h"
#include "core/kernels/fastmax.h"
#include "tests/any_device.h"

namespace heed {

/// True where a test case runs on a device that the CPU acts: large inputs take minutes there.
inline bool acted_here() { return device_here() != Device::cpu && cuda::acted; }

}  // namespace heed

namespace heed::kernel {

inline AttentionTerms mirrored(Mirror& mirror, AttentionTerms terms) {
  for (Tensor* each : {&terms.key_lengths, &terms.bias, &terms.relative, &terms.sink}) *each = mirror(*each);
  terms.draw = mirror(terms.draw);
  return terms;
}

inline BlockTerms mirrored(Mirror& mirror, BlockTerms terms) {
  terms.key_lengths = mirror(terms.key_lengths);
  terms.draw = mirror(terms.draw);
  return terms;
}

inline DecayInputs mirrored(Mirror& mirror, const DecayInputs& x) {
  return {mirror(x.q), mirror(x.k), mirror(x.v), mirror(x.log_decay), mirror(x.beta), mirror(x.start)};
}

inline FastmaxTerms mirrored(Mirror& mirror, FastmaxTerms terms) {
  terms.key_lengths = mirror(terms.key_lengths);
  terms.draw = mirror(terms.draw);
  return terms;
}

}  // namespace heed::kernel
