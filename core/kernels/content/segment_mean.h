// Averages of segments of a sequence.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// y [B, H, m, d] = averages of runs of x [B, H, T, d], whose sizes differ by one at most: with n positions
/// and r runs, run s is [s n / r, (s + 1) n / r). Row b has n = lengths[b] positions (i32 [B]; T when empty)
/// and m runs, or n, or most[b] (i32 [B], or empty) where those are fewer; rows of y past them are 0. x has
/// last stride 1, y is contiguous.
struct SegmentMean {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& lengths, const Tensor& most, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& lengths, const Tensor& most, const Tensor& y);
};

/// dx (contiguous; overwritten) from dy (last stride 1).
struct SegmentMeanBack {
  template <Isa>
  static void cpu(const Tensor& dy, const Tensor& lengths, const Tensor& most, const Tensor& dx);
  static void cuda(const Tensor& dy, const Tensor& lengths, const Tensor& most, const Tensor& dx);
};

}  // namespace heed::kernel
