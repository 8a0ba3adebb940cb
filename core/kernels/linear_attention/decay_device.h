// Fading sums on a device, step by step: rows or columns of a state fade and are written to independently of
// each other, so each of them lives in the registers of a few lanes while a block goes through all positions.
// No decay is ever divided by, and few lanes wait for each other.
#pragma once

#include "core/cuda/grid.h"
#include "core/kernels/attention_shape.h"
#include "core/kernels/decay_scan.h"
#include "core/kernels/head_rows.h"

namespace heed::kernel {

inline constexpr int decay_threads = 128;

/// L lanes hold a line of the state, R numbers each: the numbers lane, lane + L, ... of up to L R.
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

/// Rows of some positions: all numbers of each, or those that a block's lines begin at.
template <class T>
struct DecayRows {
  const T* data = nullptr;  ///< of the head; null: there are none
  int64_t ld = 0, width = 0;

  DecayRows() = default;
  __device__ DecayRows(const Heads<const T>& from, int64_t b, int64_t h, int64_t numbers)
      : data(from.data == nullptr ? nullptr : from.at(b, h, 0)), ld(from.ld), width(numbers) {}

  /// All threads: f of number c of `count` positions from t on, for c from `first` on; `wide` a position,
  /// zeros behind.
  template <class F>
  __device__ void load(T* to, int wide, int64_t first, int64_t t, int count, F f) const {
    for (int e = static_cast<int>(threadIdx.x); e < count * wide; e += decay_threads) {
      const int64_t c = first + e % wide;
      to[e] = c < width ? f(data[(t + e / wide) * ld + c]) : T(0);
    }
  }
  __device__ void load(T* to, int wide, int64_t first, int64_t t, int count) const {
    load(to, wide, first, t, count, [](T x) { return x; });
  }
};

/// The decay of one position from its logarithm.
template <class T>
__device__ inline T decay_of(T log) {
  const T x = log * static_cast<T>(log2_e), most = T(126);
  return exp2(x < most ? x : most);
}

/// The decays of positions, `wide` each, from `each` = 1 or more logarithms; 1 where nothing fades.
template <class T>
__device__ inline void load_decays(const DecayRows<T>& logs, int64_t each, T* to, int wide, int64_t first,
                                   int64_t t, int count) {
  for (int e = static_cast<int>(threadIdx.x); e < count * wide; e += decay_threads) {
    const int64_t c = each == 1 ? 0 : first + e % wide;
    T decay = T(1);
    if (logs.data != nullptr) decay = c < each ? decay_of(logs.data[(t + e / wide) * logs.ld + c]) : T(0);
    to[e] = decay;
  }
}

/// Writes what the lines of a block have made of positions, [count, lines].
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
__device__ inline void load_columns(const Line<L, R>& me, const Heads<const T>& from, int64_t b, int64_t h,
                                    int64_t f, int64_t column, int64_t d, T (&state)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool there = from.data != nullptr && me.place(r) < f && column < d;
    state[r] = there ? from.at(b, h, me.place(r))[column] : T(0);
  }
}
template <class T, int L, int R>
__device__ inline void load_rows(const Line<L, R>& me, const Heads<const T>& from, int64_t b, int64_t h,
                                 int64_t row, int64_t f, int64_t d, T (&state)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const bool there = from.data != nullptr && me.place(r) < d && row < f;
    state[r] = there ? from.at(b, h, row)[me.place(r)] : T(0);
  }
}
/// Writes columns of a state, if it is wanted.
template <class T, int L, int R>
__device__ inline void put_state(const Line<L, R>& me, const T (&state)[R], int64_t f, int64_t column,
                                 int64_t d, const Heads<T>& to, int64_t b, int64_t h) {
  if (to.data == nullptr || column >= d) return;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (me.place(r) < f) to.at(b, h, me.place(r))[column] = state[r];
  }
}

/// Positions that are brought into shared memory at once, for lines of `length` numbers.
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

/// A call as its kernels read it.
template <class T>
struct DecayCall {
  int64_t B, H, length, f, d, each;
  bool delta;
  Heads<const T> q, k, v, logs, beta, start;

  explicit DecayCall(const DecayInputs& x)
      : B(x.q.extent(0)),
        H(x.q.extent(1)),
        length(x.q.extent(2)),
        f(x.q.extent(3)),
        d(x.v.extent(3)),
        each(x.log_decay ? x.log_decay.extent(3) : 1),
        delta(static_cast<bool>(x.beta)),
        q(x.q),
        k(x.k),
        v(x.v),
        logs(x.log_decay),
        beta(x.beta),
        start(x.start) {}
  int64_t flops() const { return 2 * B * H * length * f * d * (delta ? 3 : 2); }
};

/// What a sweep whose lines are columns of the state has of some positions in shared memory: keys, queries
/// and decays, its lines of one input, and its lines of two results.
template <class T, int L, int R>
struct ColumnSweep {
  static constexpr int wide = Line<L, R>::length, lines = Line<L, R>::lines;
  const DecayCall<T>& x;
  int steps;
  int64_t b, h, first;
  DecayRows<T> q, k, given, logs, beta;
  T *k_rows, *q_rows, *decays, *given_lines, *made, *beside, *betas;

  __device__ ColumnSweep(const DecayCall<T>& call, int at_once, const Heads<const T>& input)
      : x(call),
        steps(at_once),
        b(blockIdx.x / call.H),
        h(blockIdx.x % call.H),
        first(int64_t{blockIdx.y} * lines),
        q(call.q, b, h, call.f),
        k(call.k, b, h, call.f),
        given(input, b, h, call.d),
        logs(call.logs, b, h, call.each),
        beta(call.beta, b, h, 1) {
    k_rows = cuda::shared<T>();
    q_rows = k_rows + steps * wide;
    decays = q_rows + steps * wide;
    given_lines = decays + steps * wide;
    made = given_lines + steps * lines;
    beside = made + steps * lines;
    betas = beside + steps * lines;
  }
  static int bytes(int at_once) { return at_once * (3 * wide + 3 * lines + 1) * static_cast<int>(sizeof(T)); }
  __device__ void load(int64_t t, int count) const {
    k.load(k_rows, wide, 0, t, count);
    q.load(q_rows, wide, 0, t, count);
    load_decays(logs, x.each, decays, wide, 0, t, count);
    given.load(given_lines, lines, first, t, count);
    if (x.delta) beta.load(betas, 1, 0, t, count);
    __syncthreads();
  }
};

/// The grid of a sweep whose blocks take `each` of `lines` lines of every head.
inline cuda::Grid decay_grid(int64_t heads, int64_t lines, int64_t each, int bytes) {
  return {.blocks = dim3(static_cast<unsigned>(heads), static_cast<unsigned>(cuda::pieces(lines, each))),
          .threads = dim3(decay_threads),
          .shared_bytes = bytes};
}

}  // namespace heed::kernel
