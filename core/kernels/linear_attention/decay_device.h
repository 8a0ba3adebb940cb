// Sums with decay on a device, position by position. The rows (or columns) of a state are independent of each
// other, so a few lanes hold each of them in registers while the block loops over all positions. No formula
// divides by a decay.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/grid.h"
#include "heed/core/kernels/attention/attention_shape.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/linear_attention/decay_scan.h"

namespace heed::kernel {

inline constexpr int decay_threads = 128;

/// A line (row or column) of the state in the registers of L lanes. A lane holds R of its numbers: lane, lane
/// + L, ...
template <int L, int R>
struct Line {
  static constexpr int length = L * R;
  static constexpr int lines = decay_threads / L;  ///< lines of a block
  int lane, number;                                ///< lane in the line, and line in the block
  __device__ Line() : lane(static_cast<int>(threadIdx.x) % L), number(static_cast<int>(threadIdx.x) / L) {}
  /// Index in the line of this lane's number r.
  __device__ int index(int r) const { return lane + L * r; }

  /// The sum over the lanes of a line; each gets it.
  template <class T>
  __device__ T sum(T x) const {
#pragma unroll
    for (int bits = L / 2; bits > 0; bits /= 2) x += __shfl_xor_sync(0xffffffffU, x, bits);
    return x;
  }
};

/// Rows of a head, one per position.
template <class T>
struct DecayRows {
  const T* data = nullptr;  ///< null: there are no rows
  int64_t ld = 0, width = 0;

  DecayRows() = default;
  __device__ DecayRows(const HeadView<const T>& from, int64_t b, int64_t h, int64_t numbers)
      : data(from.data == nullptr ? nullptr : from.at(b, h, 0)), ld(from.ld), width(numbers) {}

  /// to[i, c] = f(number first + c of position t + i) for `count` positions and row_width numbers c; zero
  /// behind the last number. All threads of the block call it.
  template <class F>
  __device__ void load(T* to, int row_width, int64_t first, int64_t t, int count, F f) const {
    for (int e = static_cast<int>(threadIdx.x); e < count * row_width; e += decay_threads) {
      const int64_t c = first + e % row_width;
      to[e] = c < width ? f(data[(t + e / row_width) * ld + c]) : T(0);
    }
  }
  __device__ void load(T* to, int row_width, int64_t first, int64_t t, int count) const {
    load(to, row_width, first, t, count, [](T x) { return x; });
  }
};

/// The decay of one position from its logarithm.
template <class T>
__device__ inline T decay_of(T log) {
  const T x = log * static_cast<T>(log2_e), max_exponent = T(126);
  return exp2(x < max_exponent ? x : max_exponent);
}

/// to[i, c] = decay first + c of position t + i, for `count` positions and row_width numbers c; 1 where there
/// are no logarithms. With num_decays = 1 all decays of a position are equal.
template <class T>
__device__ inline void load_decays(const DecayRows<T>& logs, int64_t num_decays, T* to, int row_width,
                                   int64_t first, int64_t t, int count) {
  for (int e = static_cast<int>(threadIdx.x); e < count * row_width; e += decay_threads) {
    const int64_t c = num_decays == 1 ? 0 : first + e % row_width;
    T decay = T(1);
    if (logs.data != nullptr)
      decay = c < num_decays ? decay_of(logs.data[(t + e / row_width) * logs.ld + c]) : T(0);
    to[e] = decay;
  }
}

/// Writes the results [count, lines] of a block's lines for positions from t on.
template <class T>
__device__ inline void store_lines(const T* from, int lines, int64_t first, int64_t width, int64_t t,
                                   int count, T* to, int64_t ld) {
  for (int e = static_cast<int>(threadIdx.x); e < count * lines; e += decay_threads) {
    const int64_t c = first + e % lines;
    if (c < width) to[(t + e / lines) * ld + c] = from[e];
  }
}

/// Loads this lane's numbers of a column of the state of a head, from states [B, H, f, d]; zeros where there
/// are none.
template <class T, int L, int R>
__device__ inline void load_columns(const Line<L, R>& line, const HeadView<const T>& from, int64_t b,
                                    int64_t h, int64_t f, int64_t column, int64_t d, T (&state)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool is_valid = from.data != nullptr && line.index(r) < f && column < d;
    state[r] = is_valid ? from.at(b, h, line.index(r))[column] : T(0);
  }
}
/// Loads this lane's numbers of a row of the state of a head, from states [B, H, f, d]; zeros where there are
/// none.
template <class T, int L, int R>
__device__ inline void load_rows(const Line<L, R>& line, const HeadView<const T>& from, int64_t b, int64_t h,
                                 int64_t row, int64_t f, int64_t d, T (&state)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool is_valid = from.data != nullptr && line.index(r) < d && row < f;
    state[r] = is_valid ? from.at(b, h, row)[line.index(r)] : T(0);
  }
}
/// Writes this lane's numbers of a column of the state of a head; does nothing where `to` is empty.
template <class T, int L, int R>
__device__ inline void store_columns(const Line<L, R>& line, const T (&state)[R], int64_t f, int64_t column,
                                     int64_t d, const HeadView<T>& to, int64_t b, int64_t h) {
  if (to.data == nullptr || column >= d) return;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (line.index(r) < f) to.at(b, h, line.index(r))[column] = state[r];
  }
}

/// Number of positions loaded into shared memory at once, for lines of `length` numbers.
inline int decay_steps(int length) { return length <= 128 ? 16 : length <= 1024 ? 4 : 1; }

/// Calls f(std::type_identity<Line<L, R>>) with the smallest lines that hold `length` numbers.
template <class T, class F>
void visit_lines(int64_t length, F&& f) {
  if (length <= 64) {
    if constexpr (sizeof(T) == 4) {
      if (length <= 32) return f(std::type_identity<Line<4, 8>>{});
    }
    return f(std::type_identity<Line<4, 16>>{});
  }
  if constexpr (sizeof(T) == 4) {
    if (length <= 128) return f(std::type_identity<Line<4, 32>>{});
  }
  if (length <= 256) return f(std::type_identity<Line<32, 8>>{});
  if (length <= 1024) return f(std::type_identity<Line<32, 32>>{});
  if (length <= 4096) return f(std::type_identity<Line<32, 128>>{});
  fail("decay_scan: a state with ", length,
       " numbers a line; a device holds up to 4096. Use narrower heads.");
}

/// Extents and pointers of a call. `delta`: the delta rule, with beta.
template <class T>
struct DecayCall {
  int64_t B, H, length, f, d, num_decays;
  bool delta;
  HeadView<const T> q, k, v, logs, beta, start;

  explicit DecayCall(const DecayInputs& x)
      : B(x.q.extent(0)),
        H(x.q.extent(1)),
        length(x.q.extent(2)),
        f(x.q.extent(3)),
        d(x.v.extent(3)),
        num_decays(x.log_decay ? x.log_decay.extent(3) : 1),
        delta(static_cast<bool>(x.beta)),
        q(x.q),
        k(x.k),
        v(x.v),
        logs(x.log_decay),
        beta(x.beta),
        start(x.start) {}
  int64_t flops() const { return 2 * B * H * length * f * d * (delta ? 3 : 2); }
};

/// Shared memory of a block whose lines are columns of the state: keys, queries and decays of some positions,
/// one input and two results.
template <class T, int L, int R>
struct ColumnSweep {
  static constexpr int row_width = Line<L, R>::length, lines = Line<L, R>::lines;
  const DecayCall<T>& x;
  int steps;
  int64_t b, h, first;
  DecayRows<T> q, k, input, logs, beta;
  T *k_rows, *q_rows, *decays, *input_lines, *result, *residual, *betas;

  __device__ ColumnSweep(const DecayCall<T>& call, int num_steps, const HeadView<const T>& in)
      : x(call),
        steps(num_steps),
        b(blockIdx.x / call.H),
        h(blockIdx.x % call.H),
        first(int64_t{blockIdx.y} * lines),
        q(call.q, b, h, call.f),
        k(call.k, b, h, call.f),
        input(in, b, h, call.d),
        logs(call.logs, b, h, call.num_decays),
        beta(call.beta, b, h, 1) {
    k_rows = cuda::shared<T>();
    q_rows = k_rows + steps * row_width;
    decays = q_rows + steps * row_width;
    input_lines = decays + steps * row_width;
    result = input_lines + steps * lines;
    residual = result + steps * lines;
    betas = residual + steps * lines;
  }
  static int bytes(int num_steps) {
    return num_steps * (3 * row_width + 3 * lines + 1) * static_cast<int>(sizeof(T));
  }
  /// Loads positions [t, t + count). All threads call it.
  __device__ void load(int64_t t, int count) const {
    k.load(k_rows, row_width, 0, t, count);
    q.load(q_rows, row_width, 0, t, count);
    load_decays(logs, x.num_decays, decays, row_width, 0, t, count);
    input.load(input_lines, lines, first, t, count);
    if (x.delta) beta.load(betas, 1, 0, t, count);
    __syncthreads();
  }
};

/// The grid of a kernel whose blocks handle lines_per_block of the `lines` lines of every head.
inline cuda::Grid decay_grid(int64_t heads, int64_t lines, int64_t lines_per_block, int bytes) {
  return {
      .blocks = dim3(static_cast<unsigned>(heads), static_cast<unsigned>(ceil_div(lines, lines_per_block))),
      .threads = dim3(decay_threads),
      .shared_bytes = bytes};
}

}  // namespace heed::kernel
