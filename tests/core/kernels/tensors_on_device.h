// Structs of tensors that kernels take, on another device: see Mirror.
#pragma once

#include <initializer_list>

#include "heed/core/kernels/attention/additive_score.h"
#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/attention/local_attention.h"
#include "heed/core/kernels/attention/ntm_addressing.h"
#include "heed/core/kernels/content/bucket.h"
#include "heed/core/kernels/content/tree_attention.h"
#include "heed/core/kernels/elementwise/optimizer_update.h"
#include "heed/core/kernels/elementwise/recurrent_cell.h"
#include "heed/core/kernels/linear_attention/polynomial_attention.h"
#include "heed/core/kernels/norm/cross_entropy.h"
#include "heed/core/kernels/norm/layer_norm.h"
#include "heed/tests/any_device.h"

namespace heed::kernel {

/// Replaces each tensor by its copy on the device of the mirror.
inline void mirror_all(Mirror& mirror, std::initializer_list<Tensor*> tensors) {
  for (Tensor* tensor : tensors) *tensor = mirror(*tensor);
}

inline AttentionBackTensors mirrored(Mirror& mirror, AttentionBackTensors t) {
  mirror_all(mirror, {&t.q, &t.k, &t.v, &t.out, &t.lse, &t.dout, &t.dq, &t.dk, &t.dv, &t.drelative});
  return t;
}

inline LocalAttentionBackTensors mirrored(Mirror& mirror, LocalAttentionBackTensors t) {
  mirror_all(mirror, {&t.q, &t.k, &t.v, &t.centre, &t.dout, &t.dq, &t.dk, &t.dv, &t.dcentre});
  return t;
}

inline AdditiveInputs mirrored(Mirror& mirror, AdditiveInputs t) {
  mirror_all(mirror, {&t.left, &t.right, &t.units});
  return t;
}

inline AddressingInputs mirrored(Mirror& mirror, AddressingInputs t) {
  mirror_all(mirror, {&t.content, &t.before, &t.gate, &t.shift, &t.sharp});
  return t;
}

inline TreeAttentionBackTensors mirrored(Mirror& mirror, TreeAttentionBackTensors t) {
  mirror_all(mirror, {&t.q, &t.out, &t.lse, &t.dout, &t.dq, &t.dk, &t.dv});
  return t;
}

inline BucketOrder mirrored(Mirror& mirror, BucketOrder t) {
  mirror_all(mirror, {&t.order, &t.buckets, &t.lengths});
  return t;
}

inline PolynomialInputs mirrored(Mirror& mirror, PolynomialInputs t) {
  mirror_all(mirror, {&t.q, &t.k, &t.v, &t.start});
  return t;
}

inline DropoutMask mirrored(Mirror& mirror, DropoutMask mask) {
  mask.draw = mirror(mask.draw);
  mirror_all(mirror, {&mask.places.places});
  return mask;
}

inline LayerNormTensors mirrored(Mirror& mirror, LayerNormTensors t) {
  mirror_all(mirror, {&t.x, &t.gain, &t.bias, &t.y, &t.mean, &t.rstd});
  return t;
}

inline LayerNormBackTensors mirrored(Mirror& mirror, LayerNormBackTensors t) {
  mirror_all(mirror,
             {&t.x, &t.gain, &t.mean, &t.rstd, &t.dy, &t.dx, &t.dgain, &t.dbias, &t.so_far, &t.dbranch});
  t.mask = mirrored(mirror, t.mask);
  return t;
}

inline CrossEntropyBackTensors mirrored(Mirror& mirror, CrossEntropyBackTensors t) {
  mirror_all(mirror, {&t.logits, &t.targets, &t.lse, &t.counted, &t.dloss, &t.dlogits});
  return t;
}

inline ScheduleFreeTensors mirrored(Mirror& mirror, ScheduleFreeTensors t) {
  mirror_all(mirror, {&t.values, &t.base, &t.average, &t.second});
  return t;
}

inline CellTensors mirrored(Mirror& mirror, CellTensors t) {
  mirror_all(mirror, {&t.a, &t.b, &t.state, &t.lengths, &t.gates, &t.next});
  return t;
}

inline LstmBackTensors mirrored(Mirror& mirror, LstmBackTensors t) {
  mirror_all(mirror, {&t.gates, &t.state, &t.next, &t.lengths, &t.dnext, &t.dgates, &t.dstate});
  return t;
}

inline GruBackTensors mirrored(Mirror& mirror, GruBackTensors t) {
  mirror_all(mirror, {&t.gates, &t.b, &t.state, &t.lengths, &t.dnext, &t.da, &t.db, &t.dstate});
  return t;
}

}  // namespace heed::kernel
