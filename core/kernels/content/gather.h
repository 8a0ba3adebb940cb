// Rows of a table by index, and their gradient.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// out[i] = table[ids[i]]; table [V, d], ids i32 (n elements, contiguous), out [n, d] contiguous. Fails on an
/// id outside the table.
struct Gather {
  template <Isa>
  static void cpu(const Tensor& table, const Tensor& ids, const Tensor& out);
  static void cuda(const Tensor& table, const Tensor& ids, const Tensor& out);
};

/// table[ids[i]] += rows[i], in the order of i for each row of the table: deterministic, without atomics.
struct ScatterAdd {
  template <Isa>
  static void cpu(const Tensor& ids, const Tensor& rows, const Tensor& table);
  static void cuda(const Tensor& ids, const Tensor& rows, const Tensor& table);
};

}  // namespace heed::kernel
