// Gather and scatter-add of rows by index: of one table, or of each head with ids of its own.
#pragma once

#include "heed/core/host_device.h"
#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// out[i, :] = table[ids[i], :]. table [V, d] of any strides, ids i32 (n elements, contiguous), out [n, d]
/// contiguous. Fails on an id outside the table.
struct Gather {
  template <Isa>
  static void cpu(const Tensor& table, const Tensor& ids, const Tensor& out);
  static void cuda(const Tensor& table, const Tensor& ids, const Tensor& out);
};

/// table[ids[i], :] += rows[i, :], in the order of i for each row of the table: deterministic, without
/// atomics. ids i32 (n elements), rows [n, d] and table [V, d] are contiguous. Fails on an id outside the
/// table.
struct ScatterAdd {
  template <Isa>
  static void cpu(const Tensor& ids, const Tensor& rows, const Tensor& table);
  static void cuda(const Tensor& ids, const Tensor& rows, const Tensor& table);
};

/// out[b, h, i, :] = x[b, h, ids[b, h, i], :]; an id of -1 gives a row of zeros. x [B, H, T, d] with last
/// stride 1, ids i32 [B, H, n] of any strides (0 where heads share them), out [B, H, n, d] contiguous. Fails
/// on any other id outside x.
struct GatherRows {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& ids, const Tensor& out);
  static void cuda(const Tensor& x, const Tensor& ids, const Tensor& out);
};

/// y[b, h, ids[b, h, i], :] += rows[b, h, i, :], in the order of i: deterministic, without atomics. An id of
/// -1 adds nothing. rows [B, H, n, d] with last stride 1, y [B, H, T, d] contiguous.
struct ScatterAddRows {
  template <Isa>
  static void cpu(const Tensor& ids, const Tensor& rows, const Tensor& y);
  static void cuda(const Tensor& ids, const Tensor& rows, const Tensor& y);
};

/// View of ids [B, H, n] of any strides.
struct HeadIds {
  const int32_t* data;
  int64_t batch_stride, head_stride, stride;
  int64_t heads;  ///< H
  int64_t count;  ///< n

  /// From ids [B, H, n].
  static HeadIds of_heads(const Tensor& ids) {
    return {.data = ids.data<int32_t>(),
            .batch_stride = ids.strides()[0],
            .head_stride = ids.strides()[1],
            .stride = ids.strides()[2],
            .heads = ids.extent(1),
            .count = ids.extent(2)};
  }
  /// A contiguous list of n ids as those of a single head.
  static HeadIds of_list(const Tensor& ids) {
    return {.data = ids.data<int32_t>(),
            .batch_stride = 0,
            .head_stride = 0,
            .stride = 1,
            .heads = 1,
            .count = ids.size()};
  }
  /// Id i of head `head` of the whole batch, 0 <= head < B H.
  HEED_BOTH int32_t at(int64_t head, int64_t i) const {
    return data[head / heads * batch_stride + head % heads * head_stride + i * stride];
  }
};

}  // namespace heed::kernel
