// PolynomialAttention on a device: mapped queries and keys, the table of monomials, and tiles of features.
#pragma once

#include <vector>

#include "heed/core/kernels/attention/attention_device.h"
#include "heed/core/kernels/linear_attention/polynomial_attention.h"

namespace heed::kernel {

/// Letters and weights of all features, in the order of monomials.h: `variables` of each feature, of which d
/// stands for the number one. Made once for each degree and width, and kept on the device.
template <class T>
struct FeatureTable {
  const int32_t* variable = nullptr;  ///< [count, variables]
  const T* weight = nullptr;          ///< [count], of queries' features; those of keys have none
  int64_t count = 0;
  int variables = 1;
};

/// f(s) and f'(s) of prescaled scores.
template <class T>
struct ScorePolynomial {
  static constexpr int few = 4;
  T low[few] = {}, low_derivative[few] = {};
  const T* all = nullptr;  ///< every coefficient, where there are more than a few
  int degree = 0;

  __device__ T value(T s) const {
    if (degree < few) return ((low[3] * s + low[2]) * s + low[1]) * s + low[0];
    T y = all[degree];
    for (int l = degree; l-- > 0;) y = y * s + all[l];
    return y;
  }
  __device__ T grad(T s) const {
    if (degree < few) return (low_derivative[2] * s + low_derivative[1]) * s + low_derivative[0];
    T y = T(degree) * all[degree];
    for (int l = degree - 1; l > 0; --l) y = y * s + T(l) * all[l];
    return y;
  }
};

/// Extents and settings of a call, as kernels read them.
template <class T>
struct PolynomialShape {
  int64_t B, H, queries, keys, d, dv;
  int64_t row_width;  ///< numbers of a mapped row: d numbers, a one, zeros
  const int32_t* key_lengths;
  int64_t first_key;
  bool causal;
  FeatureMap prepare;
  T prepare_epsilon, prescale, epsilon, guard, keep_scale;
  ScorePolynomial<T> f;
  FeatureTable<T> table;
  DeviceDraw drawn;
  int64_t skipped_heads;  ///< heads of earlier ranks: see core/distributed/batch_shard.h
  int64_t drawn_row;      ///< random numbers per token
  PolynomialDropout dropped = PolynomialDropout::monomials;
  bool variables_in_shared = false;  ///< backward: the mapped rows of a tile are in shared memory

  /// Keys of batch row b.
  HEED_BOTH int64_t keys_of(int64_t b) const {
    return key_lengths == nullptr ? keys : within(key_lengths[b] - first_key, 0, keys);
  }
  /// Monomials are dropped.
  HEED_BOTH bool drops() const { return drawn.threshold > 0 && dropped == PolynomialDropout::monomials; }
  /// Entries of mapped rows are dropped, or whole rows.
  HEED_BOTH bool drops_rows() const { return drawn.threshold > 0 && dropped != PolynomialDropout::monomials; }
  /// The dropout factor of column c of the mapped row of token t.
  __device__ T kept(bool query, int64_t head, int64_t t, int64_t c) const {
    if (!drops_rows()) return T(1);
    const uint64_t number = (query ? query_number(head, t) : key_number(head, t)) +
                            static_cast<uint64_t>(dropped == PolynomialDropout::tokens ? 0 : c);
    return dropout_bits(drawn.seed, drawn.high(), number) >= drawn.threshold ? keep_scale : T(0);
  }
  HEED_BOTH int64_t state_width() const {
    return (dv + 4) / 4 * 4;
  }  ///< a row of a state: dv sums, that of ones
  /// Counters of token t of a head.
  HEED_BOTH uint64_t query_number(int64_t head, int64_t t) const {
    return static_cast<uint64_t>(((skipped_heads + head) * queries + t) * drawn_row);
  }
  HEED_BOTH uint64_t key_number(int64_t head, int64_t t) const {
    return (uint64_t{1} << 62) + static_cast<uint64_t>(((skipped_heads + head) * keys + t) * drawn_row);
  }
  /// 1 / (sum of weights + epsilon), with the guard; 0 for a query without keys.
  __device__ T inverse(T sum) const {
    T total = sum + epsilon;
    if (fabs(total) < guard) total = copysign(guard, total);
    return total == T(0) ? T(0) : T(1) / total;
  }
};

/// From the params; `factored`: with the table of features.
PolynomialShape<float> polynomial_shape(const Tensor& q, const Tensor& k, int64_t dv,
                                        const PolynomialParams& params, bool factored, float);
PolynomialShape<double> polynomial_shape(const Tensor& q, const Tensor& k, int64_t dv,
                                         const PolynomialParams& params, bool factored, double);

/// Mapped rows of all heads, contiguous.
template <class T>
struct MappedRows {
  Tensor rows;     ///< [B H T, row_width]
  Tensor whole;    ///< the same before dropout; `rows` itself where rows are not dropped
  Tensor inverse;  ///< [B H T]: 1 / norm of each row, for the backward pass
};

/// rows[b h t, :] = [feature map of from[b, h, t, :] times `prescale` after dropout, 1, 0, ...], row_width
/// numbers, by one warp per row; `whole` the same before dropout; inverses[b h t] = 1 / its divisor.
template <class T>
__global__ void apply_feature_map(PolynomialShape<T> x, HeadView<const T> from, int64_t length, bool query,
                                  T prescale, T* rows, T* whole, T* inverses) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= x.B * x.H * length) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t head = row / length;
  const T* in = from.at(head / x.H, head % x.H, row % length);
  T *to = rows + row * x.row_width, *undropped = whole + row * x.row_width;
  const auto all = [](T sum) {
#pragma unroll
    for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, bits);
    return sum;
  };
  T mean = T(0), root = T(1);
  const bool centred = x.prepare == FeatureMap::standard;
  if (centred || x.prepare == FeatureMap::unit) {
    T sum = T(0), square = T(0);
    for (int64_t c = lane; centred && c < x.d; c += 32) sum += in[c];
    mean = all(sum) / static_cast<T>(x.d);
    for (int64_t c = lane; c < x.d; c += 32) square += (in[c] - mean) * (in[c] - mean);
    square = all(square);
    const T e = x.prepare_epsilon;
    root = sqrt(centred ? square / static_cast<T>(x.d) + e : square + e * e);
  }
  if (lane == 0) inverses[row] = T(1) / root;
  for (int64_t c = lane; c < x.row_width; c += 32) {
    T y = c == x.d ? T(1) : T(0);
    if (c < x.d) {
      y = in[c];
      if (x.prepare == FeatureMap::positive) {
        y = y > T(0) ? y + T(1) : exp2(y * static_cast<T>(log2_e));
      } else if (x.prepare != FeatureMap::none) {
        // A unit vector of one number is exactly 1 or -1, so that 1 + s can be exactly 0.
        y = centred ? (y - mean) * (T(1) / root) : y / root;
      }
      y *= prescale;
    }
    undropped[c] = y;
    if (c < x.d && x.drops_rows()) y *= x.kept(query, head, row % length, c);
    to[c] = y;
  }
}

/// The mapped rows of a tensor [B, H, T, d], after dropout and before: one warp per row.
template <class T>
MappedRows<T> map_rows(const PolynomialShape<T>& x, const Tensor& from, bool query) {
  const int64_t length = from.extent(2), rows = x.B * x.H * length;
  const auto room = [&] { return Tensor(Shape{rows, x.row_width}, from.dtype(), from.device()); };
  MappedRows<T> to{room(), Tensor(), Tensor(Shape{rows}, from.dtype(), from.device())};
  to.whole = x.drops_rows() ? room() : to.rows;
  cuda::run(apply_feature_map<T>,
            {.blocks = dim3(static_cast<unsigned>((rows + 7) / 8)), .threads = dim3(256)}, x,
            HeadView<const T>(from), length, query, query ? x.prescale : T(1), to.rows.template data<T>(),
            to.whole.template data<T>(), to.inverse.template data<T>());
  return to;
}

/// The features from `first` on of up to 64 tokens, [token, 64], from prepared rows `row_width` apart;
/// zeros past `count` tokens and the last feature. With `keep_mask`, which all threads have drawn before,
/// what is dropped is zero and the rest scaled.
template <class T>
__device__ inline void make_features(const PolynomialShape<T>& x, const T* rows, int count, int64_t first,
                                     bool weighted, const KeepMask* keep_mask, T* tile) {
  constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  const int own_column = static_cast<int>(threadIdx.x) % 64;
  const int64_t feature = first + own_column;
  const bool is_feature = feature < x.table.count;
  const int32_t* variable = x.table.variable + feature * x.table.variables;
  const int64_t a = is_feature ? variable[0] : x.d,
                b = is_feature && x.table.variables > 1 ? variable[1] : x.d;
  const T weight = !is_feature ? T(0) : weighted ? x.table.weight[feature] : T(1);
  const bool drops = keep_mask != nullptr && b != x.d;  // of degree 2 and more
#pragma unroll 4
  for (int token = static_cast<int>(threadIdx.x) / 64; token < 64; token += cuda::tile_threads / 64) {
    T value = T(0);
    if (token < count) {
      const T* row = rows + token * x.row_width;
      value = row[a] * row[b];
      for (int l = 2; is_feature && l < x.table.variables; ++l) value *= row[variable[l]];
      value *= weight;
      if (drops) value = keep_mask->has(token, own_column) ? value * x.keep_scale : T(0);
    }
    tile[token * ld + own_column] = value;
  }
}

/// Draws what make_features() keeps of a tile whose first token has the counters from `number` on.
template <class T>
__device__ inline void draw_features(const PolynomialShape<T>& x, const KeepMask& keep_mask, uint64_t number,
                                     int count, int64_t first) {
  keep_mask.draw(x.drawn, count, cuda::tile_rows,
                 [&](int token) { return number + static_cast<uint64_t>(token * x.drawn_row + first); });
}

/// Rows [v, 1] or [dout / sum, c] of a head: what the features of a token are multiplied by.
template <class T>
struct Augmented {
  HeadView<const T> rows;
  const T* last = nullptr;  ///< of row n of all heads at n last_ld; null: ones
  int64_t last_ld = 0;

  __device__ T last_of(int64_t head, int64_t length, int64_t t) const {
    return last == nullptr ? T(1) : last[(head * length + t) * last_ld];
  }
};

}  // namespace heed::kernel
