// Rounds queries, keys, values and gradients to bf16 or tf32 for attention on the tensor cores. E is the type
// of the rounded numbers; D their number per row.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/mma.h"
#include "heed/core/kernels/attention/attention_device.h"

namespace heed::kernel {

using cuda::tf32;

/// Number of elements in 16 bytes.
template <class E>
inline constexpr int elements_per_piece = 16 / static_cast<int>(sizeof(E));
/// Distance between the rows of a tile of D numbers: 16 bytes of padding, so that eight rows lie in different
/// memory banks.
template <class E, int D>
inline constexpr int rounded_ld = D + elements_per_piece<E>;

/// The rounded copy [B, H, T, D] of heads, contiguous, whose rows are padded with zeros.
template <class E>
struct RoundedRows {
  const E* data = nullptr;
  int64_t H = 0, T = 0;

  /// From rounded_copies().
  RoundedRows(const Tensor& rounded)
      : data(static_cast<const E*>(rounded.raw())), H(rounded.extent(1)), T(rounded.extent(2)) {}
  template <int D>
  __device__ const E* at(int64_t b, int64_t h, int64_t t) const {
    return data + ((b * H + h) * T + t) * D;
  }
};

/// Columns of rounded rows for inputs of `width`: 32, 64 or 128.
inline int rounded_width(int64_t width) { return width <= 32 ? 32 : width <= 64 ? 64 : 128; }

/// One tensor of heads and its rounded copy, as an argument of round_rows().
template <class E>
struct HeadsAndCopy {
  HeadView<const float> x;                    ///< [B, H, T, width], or packed
  E* rounded_x = nullptr;                     ///< written: [B, H, T, D]
  int64_t rows = 0, H = 0, T = 0, width = 0;  ///< rows is B H T
};

/// The tensors that one launch of round_rows() rounds, one per row of blocks of its grid.
template <class E, int count>
struct AllHeadsAndCopies {
  HeadsAndCopy<E> of[count];
};

/// rounded_x [rows, D] = x [rows, width] rounded to E, padded with zeros, for rows (b, h, t). Each thread
/// writes 16 bytes; those of rows past a packed sequence write nothing.
template <class E, int count>
__global__ void round_rows(AllHeadsAndCopies<E, count> all, int D) {
  const HeadsAndCopy<E>& in = all.of[blockIdx.y];
  const int64_t first_element = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * elements_per_piece<E>;
  if (first_element >= in.rows * D) return;
  const int64_t row = first_element / D, first_column = first_element % D;
  const int64_t b = row / in.T / in.H, t = row % in.T;
  if (in.x.starts != nullptr && t >= in.x.starts[b + 1] - in.x.starts[b]) return;
  const float* x_row = in.x.at(b, row / in.T % in.H, t);
  const auto number = [&](int64_t c) { return c < in.width ? x_row[c] : 0.0F; };
  if constexpr (std::is_same_v<E, bf16>) {
    uint32_t pairs[4];
#pragma unroll
    for (int n = 0; n < 4; ++n)
      pairs[n] = cuda::rounded_pair(number(first_column + 2 * n), number(first_column + 2 * n + 1));
    *reinterpret_cast<uint4*>(in.rounded_x + first_element) =
        make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  } else {
    const auto rounded = [&](int n) { return cuda::rounded_tf32(number(first_column + n)).value; };
    *reinterpret_cast<float4*>(in.rounded_x + first_element) =
        make_float4(rounded(0), rounded(1), rounded(2), rounded(3));
  }
}

/// Heads x [B, H, T, width], or packed [1, H, N, width] with the sequences that they are.
struct HeadsToRound {
  const Tensor& x;
  PackedSequences packed = {};
};

/// Each of `heads` rounded to E, as rows of D, in one launch. Packed sequences become padded rows, of which
/// those past a sequence have any value.
template <class E, int count>
std::array<Tensor, count> rounded_copies(int D, const HeadsToRound (&heads)[count]) {
  std::array<Tensor, count> copies;
  AllHeadsAndCopies<E, count> all;
  int64_t threads = 0;  // enough for the longest tensor
  for (int n = 0; n < count; ++n) {
    const auto& [x, packed] = heads[n];
    const int64_t B = packed ? packed.count() : x.extent(0), T = packed ? packed.longest : x.extent(2);
    copies[n] = Tensor(Shape{B, x.extent(1), std::max<int64_t>(1, T), D},
                       std::is_same_v<E, bf16> ? DType::bf16 : DType::f32, x.device());
    all.of[n] = {.x = HeadView<const float>(x, data_or_null<int32_t>(packed.starts)),
                 .rounded_x = static_cast<E*>(copies[n].raw()),
                 .rows = B * x.extent(1) * T,
                 .H = x.extent(1),
                 .T = T,
                 .width = x.extent(3)};
    threads = std::max(threads, all.of[n].rows * D / elements_per_piece<E>);
  }
  cuda::run(round_rows<E, count>,
            {.blocks = dim3(static_cast<unsigned>(ceil_div(threads, 256)), count), .threads = dim3(256)}, all,
            D);
  return copies;
}

}  // namespace heed::kernel
