// Checks of the arguments that several ops share.
#pragma once

#include <string>

#include "heed/core/kernels/attention/attention.h"
#include "heed/core/packed_sequences.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace heed {

/// Fails for an empty tensor.
inline void check_not_empty(const char* op, const Tensor& x) {
  if (!x) fail(op, ": a tensor is empty: it has no numbers. Give it some first, say with Tensor::zeros().");
}

/// Fails unless x has numbers of f32 or f64, in which ops compute.
inline void check_float(const char* op, const Tensor& x) {
  check_not_empty(op, x);
  visit_float(op, x.dtype(), [](auto) {});
}

/// An axis counted from 0; negative ones count from the end. Fails where x has no such axis.
inline int64_t axis_of(const char* op, const Tensor& x, int64_t axis) {
  const int64_t rank = x.rank();
  if (axis < -rank || axis >= rank)
    fail(op, ": axis ", axis, " of ", x.shape(), ". ",
         rank == 0 ? std::string("A single number has no axes.")
                   : text("Axes are ", -rank, " to ", rank - 1, "."));
  return axis < 0 ? axis + rank : axis;
}

/// How to make indices i32, as a sentence that begins with a space; empty where they are.
inline std::string index_advice(const char* name, const Tensor& indices) {
  return indices.dtype() == DType::i32 ? "" : text(" Convert with cast(", name, ", DType::i32).");
}

/// Fails unless a and b have numbers of the same dtype and device.
inline void agree(const char* op, const Tensor& a, const Tensor& b) {
  check_not_empty(op, a);
  check_not_empty(op, b);
  if (a.dtype() != b.dtype()) {
    fail(op, ": ", a.dtype(), " ", a.shape(), " with ", b.dtype(), " ", b.shape(),
         ". Convert one with cast().");
  }
  if (a.device() != b.device()) {
    fail(op, ": ", a.shape(), " is on ", a.device(), ", ", b.shape(), " on ", b.device(),
         ". Move one of them.");
  }
}

/// Fails unless x holds activations of f32, f64 or bf16.
inline void check_activation(const char* op, const Tensor& x) {
  check_not_empty(op, x);
  if (x.dtype() != DType::bf16) check_float(op, x);
}

/// agree() of activations x and a parameter: x may also be bf16 where the parameter is f32.
inline void agree_as_activation(const char* op, const Tensor& x, const Tensor& parameter) {
  check_activation(op, x);
  check_not_empty(op, parameter);
  const bool is_narrow = x.dtype() == DType::bf16 && parameter.dtype() == DType::f32;
  if (!is_narrow || x.device() != parameter.device()) agree(op, x, parameter);
}

/// Fails unless `lengths` is empty or i32 [batch]; the error names them `what`.
inline void check_lengths(const char* op, const Tensor& lengths, int64_t batch,
                          const char* what = "key lengths") {
  if (lengths && (lengths.dtype() != DType::i32 || !(lengths.shape() == Shape{batch}))) {
    fail(op, ": ", what, " ", lengths.dtype(), " ", lengths.shape(), "; they must be i32 [", batch,
         "], one a sequence.");
  }
}

/// Fails unless 0 <= dropout < 1 and, where it is above 0, random numbers to draw from are given.
inline void check_dropout(const char* op, double dropout, const Draw& draw) {
  if (dropout < 0 || dropout >= 1) fail(op, ": dropout ", dropout, ". It must be at least 0 and below 1.");
  if (dropout > 0 && !draw.tick) fail(op, ": dropout needs a draw. Take one from Rng::next().");
}

/// Fails where formulas of a program are given and x is not on the CPU.
inline void check_formulas(const char* op, const Tensor& x, const PairFormulas& formulas) {
  if (formulas && x.device() != Device::cpu) {
    fail(op, ": formulas of scores and masks run on the CPU, and ", x.shape(), " is on ", x.device(),
         ". Move the tensors with to(Device::cpu), or write the formula as a bias of the scores.");
  }
}

/// The number of sequences in x [B, ...], or in packed x [1, ...]. Fails where packed sequences do not fit x:
/// they need i32 starts on the device of x, a longest one, and one batch row.
inline int64_t batch_of(const char* op, const Tensor& x, const PackedSequences& packed) {
  if (!packed) return x.extent(0);
  const Tensor& starts = packed.starts;
  if (starts.dtype() != DType::i32 || starts.rank() != 1 || starts.extent(0) < 2 || packed.longest < 1 ||
      x.extent(0) != 1)
    fail(op, ": packed sequences with starts ", starts.dtype(), " ", starts.shape(), ", the longest ",
         packed.longest, ", in ", x.shape(), "; they must be i32 [B + 1], at least 1, in [1, ...].");
  if (starts.device() != x.device())
    fail(op, ": ", x.shape(), " is on ", x.device(), ", the starts of its sequences on ", starts.device(),
         ". Move one of them.");
  return packed.count();
}

/// Fails unless q, k and v are [B, H, Tq, d], [B, H, Tk, d], [B, H, Tk, dv]. `grouped`: several heads of q
/// may use one head of k and v.
inline void check_heads(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                        bool grouped = false, const PackedSequences& queries = {},
                        const PackedSequences& keys = {}) {
  const bool heads_agree =
      q.rank() == 4 && k.rank() == 4 &&
      (q.extent(1) == k.extent(1) || (grouped && k.extent(1) > 0 && q.extent(1) % k.extent(1) == 0));
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || batch_of(op, q, queries) != batch_of(op, k, keys) ||
      !heads_agree || q.extent(3) != k.extent(3) || k.extent(0) != v.extent(0) ||
      k.extent(1) != v.extent(1) || k.extent(2) != v.extent(2)) {
    fail(op, ": q ", q.shape(), ", k ", k.shape(), ", v ", v.shape(),
         "; they must be [B, H, Tq, d], [B, H, Tk, d], [B, H, Tk, dv]",
         grouped ? ", and heads of k and v may be fewer if they divide H." : ".");
  }
  agree(op, q, k);
  agree(op, q, v);
}

}  // namespace heed
