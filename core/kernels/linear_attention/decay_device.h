// Sums with decay on a device, position by position. Rows (or columns) of a state are independent of each
// other, so a few lanes hold each of them in registers while the block loops over all positions. Nothing
// divides by a decay.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/grid.h"
#include "heed/core/kernels/attention/attention_shape.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/linear_attention/decay_scan.h"

namespace heed::kernel {

inline constexpr int decay_threads = 128;

/// A line (row or column) of the state in the registers of L lanes, R numbers each: lane, lane + L, ...
template <int L, int R>
struct Line {
  static constexpr int length = L * R;
  static constexpr int lines = decay_threads / L;  ///< of a block
  int lane, line;
  __device__ Line() : lane(static_cast<int>(threadIdx.x) % L), line(static_cast<int>(threadIdx.x) / L) {}
  __device__ int place(int r) const { return lane + L * r; }

  /// The sum over the lanes of a line; each gets it.
  template <class T>
  __device__ T sum(T x) const {
#pragma unroll
    for (int bits = L / 2; bits > 0; bits /= 2) x += __shfl_xor_sync(0xffffffffU, x, bits);
    return x;
  }
};

/// Rows of some positions: all of their numbers, or the columns that belong to a block's lines.
template <class T>
struct DecayRows {
  const T* data = nullptr;  ///< of the head; null: there are none
  int64_t ld = 0, width = 0;

  DecayRows() = default;
  __device__ DecayRows(const HeadView<const T>& from, int64_t b, int64_t h, int64_t numbers)
      : data(from.data == nullptr ? nullptr : from.at(b, h, 0)), ld(from.ld), width(numbers) {}

  /// All threads: f of number c of `count` positions from t on, for c from `first` on; `row_width` a
  /// position, zeros behind.
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

/// The decays of positions, `row_width` each, from `num_decays` = 1 or more logarithms; 1 where nothing
/// fades.
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

/// Writes the results of a block's lines for some positions, [count, lines].
template <class T>
__device__ inline void put_lines(const T* from, int lines, int64_t first, int64_t width, int64_t t, int count,
                                 T* to, int64_t ld) {
  for (int e = static_cast<int>(threadIdx.x); e < count * lines; e += decay_threads) {
    const int64_t c = first + e % lines;
    if (c < width) to[(t + e / lines) * ld + c] = from[e];
  }
}

/// This thread's numbers of the states `from`, [B, H, f, d], of a head; zeros where there are none. Lines are
/// columns of the state, or its rows.
template <class T, int L, int R>
__device__ inline void load_columns(const Line<L, R>& me, const HeadView<const T>& from, int64_t b, int64_t h,
                                    int64_t f, int64_t column, int64_t d, T (&state)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool is_valid = from.data != nullptr && me.place(r) < f && column < d;
    state[r] = is_valid ? from.at(b, h, me.place(r))[column] : T(0);
  }
}
template <class T, int L, int R>
__device__ inline void load_rows(const Line<L, R>& me, const HeadView<const T>& from, int64_t b, int64_t h,
                                 int64_t row, int64_t f, int64_t d, T (&state)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool is_valid = from.data != nullptr && me.place(r) < d && row < f;
    state[r] = is_valid ? from.at(b, h, row)[me.place(r)] : T(0);
  }
}
/// Writes columns of a state; does nothing where `to` is null.
template <class T, int L, int R>
__device__ inline void put_state(const Line<L, R>& me, const T (&state)[R], int64_t f, int64_t column,
                                 int64_t d, const HeadView<T>& to, int64_t b, int64_t h) {
  if (to.data == nullptr || column >= d) return;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (me.place(r) < f) to.at(b, h, me.place(r))[column] = state[r];
  }
}

/// Number of positions loaded into shared memory at once, for lines of `length` numbers.
inline int decay_steps(int length) { return length <= 128 ? 16 : length <= 1024 ? 4 : 1; }

/// Calls f(Line<L, R>{}) with the smallest lines that hold `length` numbers.
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

/// Extents and pointers of a call.
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

/// Shared memory of a sweep whose lines are columns of the state: keys, queries and decays of some positions,
/// one input and two results.
template <class T, int L, int R>
struct ColumnSweep {
  static constexpr int row_width = Line<L, R>::length, lines = Line<L, R>::lines;
  const DecayCall<T>& x;
  int steps;
  int64_t b, h, first;
  DecayRows<T> q, k, input, logs, beta;
  T *k_rows, *q_rows, *decays, *input_lines, *result, *residual, *betas;

  __device__ ColumnSweep(const DecayCall<T>& call, int at_once, const HeadView<const T>& in)
      : x(call),
        steps(at_once),
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
  static int bytes(int at_once) {
    return at_once * (3 * row_width + 3 * lines + 1) * static_cast<int>(sizeof(T));
  }
  __device__ void load(int64_t t, int count) const {
    k.load(k_rows, row_width, 0, t, count);
    q.load(q_rows, row_width, 0, t, count);
    load_decays(logs, x.num_decays, decays, row_width, 0, t, count);
    input.load(input_lines, lines, first, t, count);
    if (x.delta) beta.load(betas, 1, 0, t, count);
    __syncthreads();
  }
};

/// The grid of a sweep whose blocks take `num_decays` of `lines` lines of every head.
inline cuda::Grid decay_grid(int64_t heads, int64_t lines, int64_t num_decays, int bytes) {
  return {.blocks = dim3(static_cast<unsigned>(heads), static_cast<unsigned>(ceil_div(lines, num_decays))),
          .threads = dim3(decay_threads),
          .shared_bytes = bytes};
}

}  // namespace heed::kernel
