// The addressing of a neural Turing machine's head: from weights by content to weights by content and place.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Who may be looked at, as in AttentionParams.
struct AddressingParams {
  bool causal = false;
  int64_t first_query = 0;
  Tensor key_lengths = {};  ///< i32 [B] or empty
};

/// What addressing reads, or the gradients of it. Each but `content` may be empty; its step is then left out.
struct AddressingInputs {
  Tensor content;  ///< [B, H, Tq, Tk]: rows that sum to one
  Tensor before;   ///< [B, H, Tk]: the weights of the query before the first
  Tensor gate;     ///< [B, H, Tq]
  Tensor shift;    ///< [B, H, Tq, 2r + 1]: from -r to r
  Tensor sharp;    ///< [B, H, Tq]
};

/// Graves et al. 2014, arXiv 1410.5401, equations 7 to 9, for one query after the other:
///
///   w_g = gate c_i + (1 - gate) w_(i-1);  w~(j) = sum over s of shift_s w_g(j - s);  w_i = w~^sharp / sum
///
/// where places go round among the n keys that query i may see. content [B, H, Tq, Tk]: rows that sum to one.
/// Each of the rest may be empty, and its step is then left out: gate [B, H, Tq], before [B, H, Tk] (w of the
/// query before the first; without it the first query takes its content alone), shift [B, H, Tq, 2r + 1]
/// (from -r to r), sharp [B, H, Tq]. out [B, H, Tq, Tk]. All contiguous. A query without keys gets zeros.
struct NtmAddressing {
  template <Isa>
  static void cpu(const AddressingInputs& x, const AddressingParams& params, const Tensor& out);
  static void cuda(const AddressingInputs& x, const AddressingParams& params, const Tensor& out);
};

/// Gradients (overwritten) from dout, of what is not empty.
struct NtmAddressingBack {
  template <Isa>
  static void cpu(const AddressingInputs& x, const AddressingParams& params, const Tensor& out,
                  const Tensor& dout, const AddressingInputs& dx);
  static void cuda(const AddressingInputs& x, const AddressingParams& params, const Tensor& out,
                   const Tensor& dout, const AddressingInputs& dx);
};

}  // namespace heed::kernel
