// Copies between padded rows and packed sequences, and sums of packed sequences, on the CPU.
#include "heed/core/kernels/elementwise/pack.h"

#include <algorithm>
#include <cstring>

#include "heed/core/kernels/elementwise/activation_types.h"
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

/// sums[n, :] = sum of the rows of sequence n step. One task is some sequences; the inner loop is over
/// columns.
template <>
void SumSequences::cpu<target_isa>(const Tensor& x, const PackedSequences& sequences, int64_t step,
                                   const Tensor& sums) {
  const int64_t batch = sums.extent(0), width = sums.extent(1);
  const int32_t* starts = sequences.starts.data<int32_t>();
  visit_float("sum_sequences", x.dtype(), [&]<class T>(Type<T>) {
    std::fill_n(sums.data<T>(), sums.size(), T(0));
    parallel_rows(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        T* sum = sums.data<T>() + n * width;
        for (int64_t row = starts[n * step]; row < starts[n * step + 1]; ++row) {
          const T* addend = x.data<T>() + row * width;
          for (int64_t c = 0; c < width; ++c) sum[c] += addend[c];
        }
      }
    });
  });
  Count::add(x.size());
}

/// y[row, :] = x[n, :] for the rows of sequence n step, and 0 elsewhere. One task is some sequences.
template <>
void RepeatOverSequences::cpu<target_isa>(const Tensor& x, const PackedSequences& sequences, int64_t step,
                                          const Tensor& y) {
  const int64_t batch = x.extent(0), width = x.extent(1);
  const int32_t* starts = sequences.starts.data<int32_t>();
  visit_float("sum_sequences", x.dtype(), [&]<class T>(Type<T>) {
    T* rows = y.data<T>();
    parallel_rows(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t end_row = starts[n * step + 1];
        for (int64_t row = starts[n * step]; row < end_row; ++row)
          std::copy_n(x.data<T>() + n * width, width, rows + row * width);
        std::fill(rows + end_row * width, rows + starts[(n + 1) * step] * width, T(0));
      }
    });
    const int64_t end_row = starts[batch * step];
    std::fill_n(rows + end_row * width, (y.extent(1) - end_row) * width, T(0));
  });
}

/// y = x + table, row by row. One task is some sequences.
template <>
void AddPositions::cpu<target_isa>(const Tensor& x, const Tensor& table, const PackedSequences& sequences,
                                   const Tensor& y) {
  const int64_t batch = sequences.count(), width = x.extent(2);
  const int32_t* starts = sequences.starts.data<int32_t>();
  visit_activation("add_positions", x.dtype(), [&]<class S>(Type<S>) {
    using T = Computed<S>;
    parallel_rows(batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        // The rows of a sequence and those of the table lie one after the other alike.
        const int64_t first = starts[b] * width, count = (starts[b + 1] - starts[b]) * width;
        const S* from = x.data<S>() + first;
        const T* positions = table.data<T>();
        S* to = y.data<S>() + first;
        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<S>(static_cast<T>(from[i]) + positions[i]);
      }
    });
  });
  Count::add(x.size());
}

/// dtable = sum of dy over the sequences. One task is some positions.
template <>
void AddPositionsBack::cpu<target_isa>(const Tensor& dy, const PackedSequences& sequences,
                                       const Tensor& dtable) {
  const int64_t batch = sequences.count(), width = dy.extent(2);
  const int32_t* starts = sequences.starts.data<int32_t>();
  visit_activation("add_positions", dy.dtype(), [&]<class S>(Type<S>) {
    using T = Computed<S>;
    const int64_t grain = std::max<int64_t>(1, light_grain / std::max<int64_t>(1, batch * width));
    parallel_rows(dtable.extent(0), grain, [&](int64_t begin, int64_t end) {
      T* sums = dtable.data<T>();
      std::fill(sums + begin * width, sums + end * width, T(0));
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t rows = std::min<int64_t>(end, starts[b + 1] - starts[b]);
        const S* from = dy.data<S>() + starts[b] * width;
        for (int64_t i = begin * width; i < rows * width; ++i) sums[i] += static_cast<T>(from[i]);
      }
    });
  });
  Count::add(dy.size());
}

}  // namespace heed::kernel
