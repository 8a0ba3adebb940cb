// PolynomialAttention on a device: mapped queries and keys, the table of monomials, and tiles of features.
#pragma once

#include <vector>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/attention/attention_device.h"
#include "heed/core/kernels/linear_attention/polynomial_attention.h"

namespace heed::kernel {

/// MonomialFactors on the device: the variables and weights of all features. Variable d stands for the number
/// one. Uploaded once for each degree and width.
template <class T>
struct FeatureTable {
  const int32_t* variable = nullptr;  ///< [count, variables]
  const T* weight = nullptr;          ///< [count], factors of queries' features
  int64_t count = 0;
  int variables = 1;
};

/// f(s) and f'(s) of prescaled scores.
template <class T>
struct ScorePolynomial {
  static constexpr int max_low = 4;
  T low[max_low] = {}, low_derivative[max_low] = {};  ///< the first coefficients of f and of f'
  const T* all = nullptr;                             ///< all coefficients of f, in device memory
  int degree = 0;

  __device__ T value(T s) const {
    if (degree < max_low) return ((low[3] * s + low[2]) * s + low[1]) * s + low[0];
    T y = all[degree];
    for (int l = degree; l-- > 0;) y = y * s + all[l];
    return y;
  }
  __device__ T grad(T s) const {
    if (degree < max_low) return (low_derivative[2] * s + low_derivative[1]) * s + low_derivative[0];
    T y = T(degree) * all[degree];
    for (int l = degree - 1; l > 0; --l) y = y * s + T(l) * all[l];
    return y;
  }
};

/// Extents and settings of a call, as kernels read them.
template <class T>
struct PolynomialShape {
  int64_t B, H, queries, keys, d, dv;
  int64_t row_width;  ///< numbers of a mapped row: d numbers, a one, and zeros
  const int32_t* key_lengths;
  int64_t first_key;
  bool causal;
  FeatureMap prepare;
  T prepare_epsilon, prescale, epsilon, guard, keep_scale;
  ScorePolynomial<T> f;
  FeatureTable<T> table;
  DeviceDraw drawn;
  int64_t skipped_heads;  ///< heads of earlier ranks: see core/distributed/batch_shard.h
  int64_t draws_per_token;
  PolynomialDropout dropped = PolynomialDropout::monomials;
  bool variables_in_shared = false;  ///< backward: the mapped rows of a tile are in shared memory

  /// Number of visible keys of batch row b.
  HEED_BOTH int64_t keys_of(int64_t b) const {
    return key_lengths == nullptr ? keys : within(key_lengths[b] - first_key, 0, keys);
  }
  /// True where dropout drops monomials.
  HEED_BOTH bool drops_monomials() const {
    return drawn.threshold > 0 && dropped == PolynomialDropout::monomials;
  }
  /// True where dropout drops entries of mapped rows, or whole rows.
  HEED_BOTH bool drops_rows() const { return drawn.threshold > 0 && dropped != PolynomialDropout::monomials; }
  /// The dropout factor of column c of the mapped row of token t: 0 or the keep scale, or 1 without dropout
  /// of rows.
  __device__ T row_dropout_factor(bool query, int64_t head, int64_t t, int64_t c) const {
    if (!drops_rows()) return T(1);
    const uint64_t number = (query ? query_number(head, t) : key_number(head, t)) +
                            static_cast<uint64_t>(dropped == PolynomialDropout::tokens ? 0 : c);
    return dropout_bits(drawn.seed, drawn.high(), number) >= drawn.threshold ? keep_scale : T(0);
  }
  /// Numbers of a row of a state: dv sums, the sum of weights, and padding to a multiple of four.
  HEED_BOTH int64_t state_width() const { return (dv + 4) / 4 * 4; }
  /// The first random number of token t of a head.
  HEED_BOTH uint64_t query_number(int64_t head, int64_t t) const {
    return static_cast<uint64_t>(((skipped_heads + head) * queries + t) * draws_per_token);
  }
  HEED_BOTH uint64_t key_number(int64_t head, int64_t t) const {
    return (uint64_t{1} << 62) + static_cast<uint64_t>(((skipped_heads + head) * keys + t) * draws_per_token);
  }
  /// 1 / (sum of weights + epsilon), with the guard; 0 for a query without keys.
  __device__ T inverse(T sum) const {
    T total = sum + epsilon;
    if (fabs(total) < guard) total = copysign(guard, total);
    return total == T(0) ? T(0) : T(1) / total;
  }
};

/// The shape of a call; with the table of features where `factored`.
PolynomialShape<float> polynomial_shape(const Tensor& q, const Tensor& k, int64_t dv,
                                        const PolynomialParams& params, bool factored, float);
PolynomialShape<double> polynomial_shape(const Tensor& q, const Tensor& k, int64_t dv,
                                         const PolynomialParams& params, bool factored, double);

/// Mapped rows of all heads, contiguous.
template <class T>
struct MappedRows {
  Tensor rows;       ///< [B H T, row_width]
  Tensor undropped;  ///< [B H T, row_width]: before dropout; `rows` itself where rows are not dropped
  Tensor inverse;    ///< [B H T]: 1 / norm of each row, for the backward pass
};

/// rows[b h t, :] = [prescale (feature map of from[b, h, t, :]) after dropout, 1, 0, ...], row_width numbers,
/// by one warp per row; `undropped` are the rows before dropout; inverses[b h t] = 1 / divisor of the feature
/// map.
template <class T>
__global__ void apply_feature_map(PolynomialShape<T> x, HeadView<const T> from, int64_t length, bool query,
                                  T prescale, T* rows, T* undropped, T* inverses) {
  const int64_t row = cuda::grid_warp();
  if (row >= x.B * x.H * length) return;
  const int lane = cuda::lane_number();
  const int64_t head = row / length;
  const T* in = from.at(head / x.H, head % x.H, row % length);
  T *to = rows + row * x.row_width, *to_undropped = undropped + row * x.row_width;
  T mean = T(0), divisor = T(1);
  const bool is_centred = x.prepare == FeatureMap::standard;
  if (is_centred || x.prepare == FeatureMap::unit) {
    T sum = T(0), square = T(0);
    for (int64_t c = lane; is_centred && c < x.d; c += 32) sum += in[c];
    mean = cuda::warp_sum(sum) / static_cast<T>(x.d);
    for (int64_t c = lane; c < x.d; c += 32) square += (in[c] - mean) * (in[c] - mean);
    square = cuda::warp_sum(square);
    const T e = x.prepare_epsilon;
    divisor = sqrt(is_centred ? square / static_cast<T>(x.d) + e : square + e * e);
  }
  if (lane == 0) inverses[row] = T(1) / divisor;
  for (int64_t c = lane; c < x.row_width; c += 32) {
    T y = c == x.d ? T(1) : T(0);
    if (c < x.d) {
      y = in[c];
      if (x.prepare == FeatureMap::positive) {
        y = y > T(0) ? y + T(1) : exp2(y * static_cast<T>(log2_e));
      } else if (x.prepare != FeatureMap::none) {
        // A unit vector of one number is exactly 1 or -1, so that 1 + s can be exactly 0.
        y = is_centred ? (y - mean) * (T(1) / divisor) : y / divisor;
      }
      y *= prescale;
    }
    to_undropped[c] = y;
    if (c < x.d && x.drops_rows()) y *= x.row_dropout_factor(query, head, row % length, c);
    to[c] = y;
  }
}

/// The mapped rows of a tensor [B, H, T, d], by one warp per row.
template <class T>
MappedRows<T> map_rows(const PolynomialShape<T>& x, const Tensor& from, bool query) {
  const int64_t length = from.extent(2), rows = x.B * x.H * length;
  const auto new_rows = [&] { return Tensor(Shape{rows, x.row_width}, from.dtype(), from.device()); };
  MappedRows<T> to{new_rows(), Tensor(), Tensor(Shape{rows}, from.dtype(), from.device())};
  to.undropped = x.drops_rows() ? new_rows() : to.rows;
  cuda::run(apply_feature_map<T>, cuda::warp_per_row(rows), x, HeadView<const T>(from), length, query,
            query ? x.prescale : T(1), to.rows.template data<T>(), to.undropped.template data<T>(),
            to.inverse.template data<T>());
  return to;
}

/// tile [token, 64] = the features from `first` on of up to 64 tokens, from mapped rows `row_width` apart;
/// zero behind `count` tokens and the last feature. With `keep_mask`, which draw_features() has drawn,
/// dropped features are zero and others scaled. A thread computes one feature of every other token.
template <class T>
__device__ inline void make_features(const PolynomialShape<T>& x, const T* rows, int count, int64_t first,
                                     bool weighted, const KeepMask* keep_mask, T* tile) {
  constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  const int column = static_cast<int>(threadIdx.x) % 64;
  const int64_t feature = first + column;
  const bool is_feature = feature < x.table.count;
  const int32_t* variable = x.table.variable + feature * x.table.variables;
  const int64_t a = is_feature ? variable[0] : x.d,
                b = is_feature && x.table.variables > 1 ? variable[1] : x.d;
  const T weight = !is_feature ? T(0) : weighted ? x.table.weight[feature] : T(1);
  const bool may_drop = keep_mask != nullptr && b != x.d;  // features of degree 2 and more
#pragma unroll 4
  for (int token = static_cast<int>(threadIdx.x) / 64; token < 64; token += cuda::tile_threads / 64) {
    T value = T(0);
    if (token < count) {
      const T* row = rows + token * x.row_width;
      value = row[a] * row[b];
      for (int l = 2; is_feature && l < x.table.variables; ++l) value *= row[variable[l]];
      value *= weight;
      if (may_drop) value = keep_mask->has(token, column) ? value * x.keep_scale : T(0);
    }
    tile[token * ld + column] = value;
  }
}

/// Draws the keep mask of make_features() for a tile whose first token draws from random number `number` on.
template <class T>
__device__ inline void draw_features(const PolynomialShape<T>& x, const KeepMask& keep_mask, uint64_t number,
                                     int count, int64_t first) {
  keep_mask.draw(x.drawn, count, cuda::tile_rows, [&](int token) {
    return number + static_cast<uint64_t>(token * x.draws_per_token + first);
  });
}

/// Rows [v, 1] of keys, or [dout / sum, c] of queries, by which the features of a token are multiplied.
template <class T>
struct AugmentedRows {
  HeadView<const T> rows;
  const T* last = nullptr;  ///< last number of row n of all heads at n last_ld; null: ones
  int64_t last_ld = 0;

  __device__ T last_of(int64_t head, int64_t length, int64_t t) const {
    return last == nullptr ? T(1) : last[(head * length + t) * last_ld];
  }
};

}  // namespace heed::kernel
