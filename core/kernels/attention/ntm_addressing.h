// Addressing of a neural Turing machine: turns weights by content into weights by content and location.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// The keys that a query sees; the members are those of AttentionParams.
struct AddressingParams {
  bool causal = false;
  int64_t first_query = 0;
  Tensor key_lengths = {};  ///< i32 [B] or empty
};

/// Inputs of addressing, or their gradients. All but `content` may be empty, and their step is then skipped.
struct AddressingInputs {
  Tensor content;  ///< [B, H, Tq, Tk]: rows that sum to one
  Tensor before;   ///< [B, H, Tk]: the initial weights w_(-1)
  Tensor gate;     ///< [B, H, Tq]
  Tensor shift;    ///< [B, H, Tq, 2r + 1]: from -r to r
  Tensor sharp;    ///< [B, H, Tq]
};

/// Graves et al. 2014, arXiv 1410.5401, equations 7 to 9, for one query after the other:
///
///   w_g = gate c_i + (1 - gate) w_(i-1);  w~(j) = sum over s of shift_s w_g(j - s);  w_i = w~^sharp / sum
///
/// where indices j - s are taken modulo n, the number of keys that query i sees. Shapes as in
/// AddressingInputs, out [B, H, Tq, Tk], all contiguous. Without `before` the first query takes its content
/// alone. A query without keys gets zeros.
struct NtmAddressing {
  template <Isa>
  static void cpu(const AddressingInputs& x, const AddressingParams& params, const Tensor& out);
  static void cuda(const AddressingInputs& x, const AddressingParams& params, const Tensor& out);
};

/// Gradients of the inputs that are not empty (overwritten) from dout.
struct NtmAddressingBack {
  template <Isa>
  static void cpu(const AddressingInputs& x, const AddressingParams& params, const Tensor& out,
                  const Tensor& dout, const AddressingInputs& dx);
  static void cuda(const AddressingInputs& x, const AddressingParams& params, const Tensor& out,
                   const Tensor& dout, const AddressingInputs& dx);
};

}  // namespace heed::kernel
