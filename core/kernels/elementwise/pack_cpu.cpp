// Copies between padded rows and packed sequences, and sums of packed sequences, on the CPU.
#include "heed/core/kernels/elementwise/pack.h"

#include <algorithm>
#include <cstring>

#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Calls f(padded row, packed row, bytes) for the rows of all sequences, and pad(padded row, bytes) for the
/// rows behind them. One task is some rows (b, t).
template <class F, class Pad>
void each_padded_row(const Tensor& padded, const Tensor& packed, const PackedSequences& sequences, F&& f,
                     Pad&& pad) {
  if (padded.size() == 0) return;
  const int64_t length = padded.extent(1), width = padded.extent(2), rows = padded.extent(0) * length;
  const auto bytes = static_cast<size_t>(width * bytes_of(padded.dtype()));
  auto* padded_bytes = static_cast<std::byte*>(padded.raw());
  auto* packed_bytes = static_cast<std::byte*>(packed.raw());
  const int32_t* starts = sequences.starts.data<int32_t>();
  parallel_rows(rows, light_grain / width + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t b = row / length, packed_row = starts[b] + row % length;
      std::byte* padded_row = padded_bytes + static_cast<size_t>(row) * bytes;
      if (packed_row < starts[b + 1])
        f(padded_row, packed_bytes + static_cast<size_t>(packed_row) * bytes, bytes);
      else
        pad(padded_row, bytes);
    }
  });
}

}  // namespace

/// padded[b, t, :] = packed[starts[b] + t, :], or 0. One task is some padded rows.
template <>
void PadPacked::cpu<target_isa>(const Tensor& packed, const PackedSequences& sequences,
                                const Tensor& padded) {
  each_padded_row(
      padded, packed, sequences,
      [](std::byte* to, const std::byte* from, size_t bytes) { std::memcpy(to, from, bytes); },
      [](std::byte* to, size_t bytes) { std::memset(to, 0, bytes); });
}

/// packed[starts[b] + t, :] = padded[b, t, :], and 0 behind the last sequence. One task is some padded rows.
template <>
void PackPadded::cpu<target_isa>(const Tensor& padded, const PackedSequences& sequences,
                                 const Tensor& packed) {
  each_padded_row(
      padded, packed, sequences,
      [](const std::byte* from, std::byte* to, size_t bytes) { std::memcpy(to, from, bytes); },
      [](std::byte*, size_t) {});
  const int64_t first = sequences.starts.data<int32_t>()[padded.extent(0)];
  const auto row_bytes = static_cast<size_t>(packed.extent(2) * bytes_of(packed.dtype()));
  std::memset(static_cast<std::byte*>(packed.raw()) + static_cast<size_t>(first) * row_bytes, 0,
              static_cast<size_t>(packed.extent(1) - first) * row_bytes);
}

/// sums[b, :] = sum of the rows of sequence b. One task is some sequences; the inner loop is over columns.
template <>
void SumSequences::cpu<target_isa>(const Tensor& x, const PackedSequences& sequences, const Tensor& sums) {
  const int64_t batch = sums.extent(0), width = sums.extent(1);
  const int32_t* starts = sequences.starts.data<int32_t>();
  visit_float("sum_sequences", x.dtype(), [&]<class T>(Type<T>) {
    std::fill_n(sums.data<T>(), sums.size(), T(0));
    parallel_rows(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        T* sum = sums.data<T>() + b * width;
        for (int64_t row = starts[b]; row < starts[b + 1]; ++row) {
          const T* addend = x.data<T>() + row * width;
          for (int64_t c = 0; c < width; ++c) sum[c] += addend[c];
        }
      }
    });
  });
  Count::add(x.size());
}

/// y[row, :] = x[b, :] for the rows of sequence b, and 0 behind them. One task is some sequences.
template <>
void RepeatOverSequences::cpu<target_isa>(const Tensor& x, const PackedSequences& sequences,
                                          const Tensor& y) {
  const int64_t batch = x.extent(0), width = x.extent(1);
  const int32_t* starts = sequences.starts.data<int32_t>();
  visit_float("sum_sequences", x.dtype(), [&]<class T>(Type<T>) {
    T* rows = y.data<T>();
    parallel_rows(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        for (int64_t row = starts[b]; row < starts[b + 1]; ++row)
          std::copy_n(x.data<T>() + b * width, width, rows + row * width);
      }
    });
    std::fill_n(rows + starts[batch] * width, (y.extent(1) - starts[batch]) * width, T(0));
  });
}

}  // namespace heed::kernel
