// PolynomialAttention on a device: mapped queries and keys, the table of monomials, and tiles of features.
#pragma once

#include <vector>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/attention/attention_device.h"
#include "heed/core/kernels/linear_attention/polynomial_attention.h"

namespace heed::kernel {

/// MonomialFactors on the device: each feature is a product of variables, of which variable d is the number
/// one. Uploaded once for each polynomial and width.
template <class T>
struct FeatureTable {
  const int32_t* variables = nullptr;  ///< [num_features, factors]
  const T* weights = nullptr;          ///< [num_features]: factors of queries' features
  int64_t num_features = 0;
  int factors = 1;  ///< factors of a feature

  /// The indices of the variables of a feature.
  __device__ const int32_t* factors_of(int64_t feature) const { return variables + feature * factors; }
  /// True for features of degree 2 and more, which dropout of monomials may drop.
  __device__ bool may_drop(int64_t feature, int64_t d) const {
    return feature < num_features && factors > 1 && factors_of(feature)[1] != d;
  }
};

/// The weight f(s) of a prescaled score s, and f'(s).
template <class T>
struct ScorePolynomial {
  static constexpr int max_low = 4;  ///< up to this many coefficients are arguments of kernels
  T low[max_low] = {}, low_derivative[max_low] = {};  ///< the first coefficients of f and of f'
  const T* all = nullptr;                             ///< all coefficients of f, in device memory
  int degree = 0;

  __device__ T weight(T s) const {
    if (degree < max_low) return ((low[3] * s + low[2]) * s + low[1]) * s + low[0];
    T y = all[degree];
    for (int l = degree; l-- > 0;) y = y * s + all[l];
    return y;
  }
  __device__ T derivative(T s) const {
    if (degree < max_low) return (low_derivative[2] * s + low_derivative[1]) * s + low_derivative[0];
    T y = T(degree) * all[degree];
    for (int l = degree - 1; l > 0; --l) y = y * s + T(l) * all[l];
    return y;
  }
};

/// Up to 64 tokens of a head, the tokens of a tile.
template <class T>
struct TileTokens {
  TokenRole role;
  const T* rows;  ///< mapped rows, row_width apart
  int count;
  uint64_t first_draw;  ///< the first random number of the first token
};

/// T of rows x [B, H, T, d], or of the longest of packed sequences [1, H, N, d]; 0 where x is empty.
inline int64_t longest_sequence(const Tensor& x, const PackedSequences& packed) {
  return !x ? 0 : packed ? packed.longest : x.extent(2);
}

/// Extents and settings of a call, as kernels read them.
template <class T>
struct PolynomialShape {
  int64_t B, H;
  int64_t queries, keys;  ///< Tq and Tk: rows of a sequence, or of the longest of packed ones
  int64_t d, dv;
  int64_t row_width;                         ///< numbers of a mapped row: d numbers, a one, and zeros
  const int32_t *query_starts, *key_starts;  ///< [B + 1]: of packed sequences; null: padded rows
  const int32_t* key_lengths;
  int64_t first_key;
  bool causal;
  FeatureMap prepare;
  T prepare_epsilon, prescale, epsilon, guard, keep_scale;
  ScorePolynomial<T> f;
  FeatureTable<T> table;
  DeviceDraw draw;
  int64_t skipped_heads;  ///< heads of earlier ranks: see core/distributed/batch_shard.h
  int64_t draws_per_token;
  PolynomialDropout drops = PolynomialDropout::monomials;
  bool variables_in_shared = false;  ///< backward: the mapped rows of a tile are in shared memory

  HEED_BOTH int64_t length(TokenRole role) const { return role == TokenRole::key ? keys : queries; }
  HEED_BOTH const int32_t* starts(TokenRole role) const {
    return role == TokenRole::key ? key_starts : query_starts;
  }
  /// Number of tokens of batch row b.
  HEED_BOTH int64_t num_tokens(TokenRole role, int64_t b) const {
    const int32_t* first = starts(role);
    return first == nullptr ? length(role) : first[b + 1] - first[b];
  }
  /// Number of visible keys of batch row b.
  HEED_BOTH int64_t visible_keys(int64_t b) const {
    const int64_t rows = num_tokens(TokenRole::key, b);
    return key_lengths == nullptr ? rows : within(key_lengths[b] - first_key, 0, rows);
  }
  /// True where dropout drops monomials.
  HEED_BOTH bool drops_monomials() const {
    return draw.threshold > 0 && drops == PolynomialDropout::monomials;
  }
  /// True where dropout drops entries of mapped rows, or whole rows.
  HEED_BOTH bool drops_rows() const { return draw.threshold > 0 && drops != PolynomialDropout::monomials; }
  /// The dropout factor of column c of the mapped row of token t: 0 or the keep scale, or 1 without dropout
  /// of rows.
  __device__ T row_dropout_factor(TokenRole role, int64_t head, int64_t t, int64_t c) const {
    if (!drops_rows()) return T(1);
    const uint64_t number =
        first_draw(role, head, t) + static_cast<uint64_t>(drops == PolynomialDropout::tokens ? 0 : c);
    return dropout_bits(draw.seed, draw.high(), number) >= draw.threshold ? keep_scale : T(0);
  }
  /// Numbers of a row of a state: dv sums, the sum column, and padding to a multiple of four.
  HEED_BOTH int64_t state_width() const { return (dv + 4) / 4 * 4; }
  /// The first random number of token t of a head. Keys draw from the upper half of the numbers.
  HEED_BOTH uint64_t first_draw(TokenRole role, int64_t head, int64_t t) const {
    return (role == TokenRole::key ? uint64_t{1} << 62 : 0) +
           static_cast<uint64_t>(((skipped_heads + head) * length(role) + t) * draws_per_token);
  }
  /// Tokens [t, t + count) of a head, from the mapped rows of all heads.
  __device__ TileTokens<T> tokens(TokenRole role, const T* rows, int64_t head, int64_t t, int count) const {
    return {.role = role,
            .rows = rows + (head * length(role) + t) * row_width,
            .count = count,
            .first_draw = first_draw(role, head, t)};
  }
  /// 1 / (sum of weights + epsilon), where the guard bounds the divisor; 0 for a query without keys.
  __device__ T inverse_weight_sum(T sum) const {
    T total = sum + epsilon;
    if (fabs(total) < guard) total = copysign(guard, total);
    return total == T(0) ? T(0) : T(1) / total;
  }
};

/// The shape of a call; with the table of features where `factored`. The last argument tells the dtype.
PolynomialShape<float> polynomial_shape(const Tensor& q, const Tensor& k, int64_t dv,
                                        const PolynomialParams& params, bool factored, float);
PolynomialShape<double> polynomial_shape(const Tensor& q, const Tensor& k, int64_t dv,
                                         const PolynomialParams& params, bool factored, double);

/// Calls f.operator()<W>() with W = 32 or 64, the columns of values that a block takes.
template <class T, class F>
void visit_columns(const PolynomialShape<T>& x, F&& f) {
  x.dv <= 32 ? f.template operator()<32>() : f.template operator()<64>();
}

/// Mapped rows of all heads, contiguous.
template <class T>
struct MappedRows {
  Tensor rows;              ///< [B H T, row_width]; rows past a packed sequence are not written
  Tensor undropped;         ///< [B H T, row_width]: before dropout; `rows` itself where rows are not dropped
  Tensor inverse_divisors;  ///< [B H T]: 1 / divisor of the feature map of each row, for the backward pass
};

/// rows[b h t, :] = [prescale (feature map of tokens[b, h, t, :]) after dropout, 1, 0, ...], row_width
/// numbers, by one warp per row; keys have a prescale of 1. `undropped` are the rows before dropout;
/// inverse_divisors[b h t] = 1 / divisor of the feature map.
template <class T>
__global__ void apply_feature_map(PolynomialShape<T> x, HeadView<const T> tokens, TokenRole role, T* rows,
                                  T* undropped, T* inverse_divisors) {
  const int64_t row = cuda::grid_warp(), length = x.length(role);
  if (row >= x.B * x.H * length) return;
  const int lane = cuda::lane_number();
  const int64_t head = row / length, t = row % length;
  if (t >= x.num_tokens(role, head / x.H)) return;  // past the end of a packed sequence
  const T* token = tokens.at(head / x.H, head % x.H, t);
  T *mapped = rows + row * x.row_width, *undropped_row = undropped + row * x.row_width;
  const T prescale = role == TokenRole::query ? x.prescale : T(1);
  T mean = T(0), divisor = T(1);
  const bool is_centred = x.prepare == FeatureMap::standard;
  if (is_centred || x.prepare == FeatureMap::unit) {
    T sum = T(0), square_sum = T(0);
    for (int64_t c = lane; is_centred && c < x.d; c += cuda::lanes) sum += token[c];
    mean = cuda::warp_sum(sum) / static_cast<T>(x.d);
    for (int64_t c = lane; c < x.d; c += cuda::lanes) square_sum += (token[c] - mean) * (token[c] - mean);
    square_sum = cuda::warp_sum(square_sum);
    const T e = x.prepare_epsilon;
    divisor = sqrt(is_centred ? square_sum / static_cast<T>(x.d) + e : square_sum + e * e);
  }
  if (lane == 0) inverse_divisors[row] = T(1) / divisor;
  for (int64_t c = lane; c < x.row_width; c += cuda::lanes) {
    T y = c == x.d ? T(1) : T(0);
    if (c < x.d) {
      y = token[c];
      if (x.prepare == FeatureMap::positive) {
        y = y > T(0) ? y + T(1) : exp2(y * static_cast<T>(log2_e));
      } else if (x.prepare != FeatureMap::none) {
        // Times 1 / divisor would round twice: a vector of one number would not become 1 or -1, and its
        // weight 1 + q . k not 0.
        y = is_centred ? (y - mean) * (T(1) / divisor) : y / divisor;
      }
      y *= prescale;
    }
    undropped_row[c] = y;
    if (c < x.d && x.drops_rows()) y *= x.row_dropout_factor(role, head, t, c);
    mapped[c] = y;
  }
}

/// The mapped rows of tokens [B, H, T, d], or of packed ones [1, H, N, d], by one warp per row.
template <class T>
MappedRows<T> map_rows(const PolynomialShape<T>& x, const Tensor& tokens, TokenRole role) {
  const int64_t rows = x.B * x.H * x.length(role);
  const auto new_rows = [&] { return Tensor(Shape{rows, x.row_width}, tokens.dtype(), tokens.device()); };
  MappedRows<T> mapped{.rows = new_rows(),
                       .undropped = Tensor(),
                       .inverse_divisors = Tensor(Shape{rows}, tokens.dtype(), tokens.device())};
  mapped.undropped = x.drops_rows() ? new_rows() : mapped.rows;
  cuda::run(apply_feature_map<T>, cuda::warp_per_row(rows), x, HeadView<const T>(tokens, x.starts(role)),
            role, mapped.rows.template data<T>(), mapped.undropped.template data<T>(),
            mapped.inverse_divisors.template data<T>());
  return mapped;
}

/// Draws the dropout mask [token, feature] of the 64 features from first_feature on. All threads of the block
/// call it, and synchronize before the mask is read.
template <class T>
__device__ inline void draw_mask(const PolynomialShape<T>& x, const TileTokens<T>& tokens,
                                 int64_t first_feature, const KeepMask& keep_mask) {
  keep_mask.draw(x.draw, tokens.count, cuda::tile_rows, [&](int token) {
    return tokens.first_draw + static_cast<uint64_t>(token * x.draws_per_token + first_feature);
  });
}

/// tile [token, 64] = the 64 features of tokens from first_feature on; zero behind the last token and the
/// last feature. With dropout of monomials, dropped features are zero and others scaled by keep_mask, which
/// draw_mask() has drawn. A thread computes one feature of every other token.
template <class T>
__device__ inline void make_features(const PolynomialShape<T>& x, const TileTokens<T>& tokens,
                                     int64_t first_feature, const KeepMask& keep_mask, T* tile) {
  constexpr int ld = cuda::tile_ld(cuda::tile_rows);
  const int column = static_cast<int>(threadIdx.x) % 64;
  const int64_t feature = first_feature + column;
  const bool is_feature = feature < x.table.num_features;
  const int32_t* variables = x.table.factors_of(feature);
  const int64_t a = is_feature ? variables[0] : x.d,
                b = is_feature && x.table.factors > 1 ? variables[1] : x.d;
  const bool is_weighted = tokens.role == TokenRole::query;
  const T weight = !is_feature ? T(0) : is_weighted ? x.table.weights[feature] : T(1);
  const bool may_drop = x.drops_monomials() && b != x.d;  // features of degree 2 and more
#pragma unroll 4
  for (int token = static_cast<int>(threadIdx.x) / 64; token < 64; token += cuda::tile_threads / 64) {
    T value = T(0);
    if (token < tokens.count) {
      const T* row = tokens.rows + token * x.row_width;
      value = row[a] * row[b];
      for (int l = 2; is_feature && l < x.table.factors; ++l) value *= row[variables[l]];
      value *= weight;
      if (may_drop) value = keep_mask.has(token, column) ? value * x.keep_scale : T(0);
    }
    tile[token * ld + column] = value;
  }
}

/// draw_mask(), where monomials are dropped, and make_features(). All threads of the block call it.
template <class T>
__device__ inline void draw_features(const PolynomialShape<T>& x, const TileTokens<T>& tokens,
                                     int64_t first_feature, const KeepMask& keep_mask, T* tile) {
  if (x.drops_monomials()) {
    draw_mask(x, tokens, first_feature, keep_mask);
    __syncthreads();
  }
  make_features(x, tokens, first_feature, keep_mask, tile);
}

}  // namespace heed::kernel
