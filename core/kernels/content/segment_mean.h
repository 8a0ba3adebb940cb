// Means of contiguous segments of a sequence.
#pragma once

#include "heed/core/host_device.h"
#include "heed/core/isa.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// y[b, h, s, :] = mean of x[b, h, t, :] over the positions t of segment s. Sequence b has n = lengths[b]
/// positions (i32 [B]; T when empty), cut into r = min(m, n, max_segments[b]) segments (i32 [B], or empty)
/// whose sizes differ by at most one: segment s covers positions [s n / r, (s + 1) n / r). Rows s >= r of y
/// are 0. x [B, H, T, d] has last stride 1, y [B, H, m, d] is contiguous.
struct SegmentMean {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& lengths, const Tensor& max_segments, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& lengths, const Tensor& max_segments, const Tensor& y);
};

/// Gradient of SegmentMean: dx[b, h, t, :] = dy[b, h, s, :] / (size of segment s) for the positions t of
/// segment s, else 0. dy has last stride 1, dx is contiguous and overwritten.
struct SegmentMeanBack {
  template <Isa>
  static void cpu(const Tensor& dy, const Tensor& lengths, const Tensor& max_segments, const Tensor& dx);
  static void cuda(const Tensor& dy, const Tensor& lengths, const Tensor& max_segments, const Tensor& dx);
};

/// How a call cuts each sequence of its batch into segments.
struct SegmentBounds {
  int64_t heads, positions, segments;  ///< H, T and m of SegmentMean
  const int32_t *lengths, *max_segments;

  /// From x [B, H, T, d], or a tensor of its shape, and m segments.
  SegmentBounds(const Tensor& x, int64_t m, const Tensor& lengths_, const Tensor& max_segments_)
      : heads(x.extent(1)),
        positions(x.extent(2)),
        segments(m),
        lengths(data_or_null<int32_t>(lengths_)),
        max_segments(data_or_null<int32_t>(max_segments_)) {}
  /// n, the number of positions of sequence b.
  HEED_BOTH int64_t num_positions(int64_t b) const {
    if (lengths == nullptr) return positions;
    return lengths[b] < 0 ? 0 : lengths[b] < positions ? lengths[b] : positions;
  }
  /// r, the number of segments of sequence b.
  HEED_BOTH int64_t num_segments(int64_t b) const {
    const int64_t n = num_positions(b), limit = segments < n ? segments : n;
    return max_segments != nullptr && max_segments[b] < limit ? max_segments[b] : limit;
  }
  /// Positions [begin, end) of segment s; none where there is no such segment.
  struct Range {
    int64_t begin, end;
  };
  HEED_BOTH Range range(int64_t b, int64_t s) const {
    const int64_t n = num_positions(b), r = num_segments(b);
    return s < r ? Range{s * n / r, (s + 1) * n / r} : Range{n, n};
  }
};

}  // namespace heed::kernel
