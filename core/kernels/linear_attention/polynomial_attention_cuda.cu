// PolynomialAttention forward on a device, all tiles of queries in parallel: the state before a tile's
// segment covers earlier segments, the polynomial of the scores covers the keys of its own segment.
#include "heed/core/kernels/linear_attention/polynomial_attention.h"

#include <map>
#include <mutex>

#include "heed/core/ceil_div.h"
#include "heed/core/constant_table.h"
#include "heed/core/cuda/runtime/context.h"
#include "heed/core/kernels/linear_attention/monomial_list.h"
#include "heed/core/kernels/linear_attention/polynomial_state_device.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::rows_per_thread;
using cuda::tile_rows;

/// The tables of a polynomial on the device.
template <class T>
struct PolynomialTables {
  FeatureTable<T> table;
  const T* coefficients = nullptr;
  std::vector<Tensor> memory;
};

/// Copies a list to the device and keeps its memory.
template <class X>
const X* uploaded(const std::vector<X>& list, std::vector<Tensor>& memory) {
  memory.push_back(constant_bytes(list, Device::cuda));
  return static_cast<const X*>(memory.back().raw());
}

/// Builds the tables on first use and caches them.
template <class T>
const PolynomialTables<T>& tables_of(int64_t d, const std::vector<double>& coefficients, bool factored) {
  static std::mutex mutex;
  // Never destroyed: the device may shut down before static objects do.
  static auto* all = new std::map<std::tuple<int64_t, std::vector<double>, bool>, PolynomialTables<T>>;
  const std::lock_guard lock(mutex);
  const std::tuple key{d, coefficients, factored};
  if (const auto found = all->find(key); found != all->end()) return found->second;
  PolynomialTables<T> tables;  // cached once all of them are built
  tables.coefficients = uploaded(std::vector<T>(coefficients.begin(), coefficients.end()), tables.memory);
  if (!factored) return all->emplace(key, std::move(tables)).first->second;
  const MonomialFactors monomials(d, coefficients);
  const std::vector<T> weights(monomials.weights.begin(), monomials.weights.end());
  tables.table = {.variables = uploaded(monomials.variables, tables.memory),
                  .weights = uploaded(weights, tables.memory),
                  .num_features = static_cast<int64_t>(weights.size()),
                  .factors = monomials.factors_per_monomial};
  return all->emplace(key, std::move(tables)).first->second;
}

/// Extents, settings and tables of a call. Where a_1 is not 0, coefficients a_l are divided by a_1^l and
/// queries get the factor a_1 scale instead of scale, so features of degree 1 need no weight.
template <class T>
PolynomialShape<T> shape_of(const Tensor& q, const Tensor& k, int64_t dv, const PolynomialParams& params,
                            bool factored) {
  const Tensor& any = q ? q : k;
  const auto degree = params.coefficients.size() - 1;
  const double linear = degree >= 1 && params.coefficients[1] != 0 ? params.coefficients[1] : 1;
  std::vector<double> coefficients = params.coefficients;
  for (size_t l = 0; l <= degree; ++l) coefficients[l] /= std::pow(linear, static_cast<double>(l));
  const PolynomialTables<T>& tables = tables_of<T>(any.extent(3), coefficients, factored);
  const int64_t B = params.queries ? params.queries.count()
                    : params.keys  ? params.keys.count()
                                   : any.extent(0);
  PolynomialShape<T> x{.B = B,
                       .H = any.extent(1),
                       .queries = longest_sequence(q, params.queries),
                       .keys = longest_sequence(k, params.keys),
                       .d = any.extent(3),
                       .dv = dv,
                       .row_width = any.extent(3) / 4 * 4 + 4,
                       .query_starts = data_or_null<int32_t>(params.queries.starts),
                       .key_starts = data_or_null<int32_t>(params.keys.starts),
                       .key_lengths = data_or_null<int32_t>(params.key_lengths),
                       .first_key = params.first_key,
                       .causal = params.causal,
                       .prepare = params.prepare,
                       .prepare_epsilon = static_cast<T>(params.prepare_epsilon),
                       .prescale = static_cast<T>(linear * params.scale),
                       .epsilon = static_cast<T>(params.epsilon),
                       .guard = static_cast<T>(params.guard),
                       .keep_scale = static_cast<T>(dropout_scale(params.dropout)),
                       .f = {},
                       .table = tables.table,
                       .draw = DeviceDraw(params.dropout, params.draw),
                       .skipped_heads = static_cast<int64_t>(skipped_draws(B * any.extent(1))),
                       .draws_per_token = 0,
                       .drops = params.drops};
  const int64_t items = x.drops_monomials()                         ? x.table.num_features
                        : params.drops == PolynomialDropout::tokens ? 1
                                                                    : x.d;
  x.draws_per_token = ceil_div(items, 16) * 16;  // whole Philox blocks
  // The first coefficients of f and of its derivative are passed by value; all of f lie on the device.
  x.f.degree = static_cast<int>(degree);
  x.f.all = tables.coefficients;
  for (size_t l = 0; l <= degree && l < ScorePolynomial<T>::max_low; ++l) {
    x.f.low[l] = static_cast<T>(coefficients[l]);
    if (l > 0) x.f.low_derivative[l - 1] = static_cast<T>(static_cast<double>(l) * coefficients[l]);
  }
  return x;
}

/// Arguments of forward().
template <class T>
struct ForwardCall {
  PolynomialShape<T> shape;
  const T *q = nullptr, *k = nullptr;  ///< mapped rows; k null: there are no keys
  HeadView<const T> v;
  const T* states = nullptr;  ///< [heads, segments, features, state_ld]: before each segment; null: none
  int64_t state_ld = 0;
  int64_t segment;  ///< queries that share a state
  HeadView<T> out;
  T* sums;
};

/// out of 64 queries of a head and W columns of the values, by one block: features of the queries times the
/// state before their segment, then the pairs of the segment, tile by tile: scores = q k^T, weights =
/// f(scores) or with dropout of monomials (query features) (key features)^T, weighted_values += weights v,
/// weight_sum += sums of weights over keys. W is also the width of a slice of q and k.
template <class T, int W>
__global__ void __launch_bounds__(cuda::tile_threads) forward(ForwardCall<T> call) {
  constexpr int ld = cuda::tile_ld(tile_rows), ldw = cuda::tile_ld(W), C = W / 16;
  const PolynomialShape<T>& x = call.shape;
  T* left = cuda::shared<T>();                               // features of queries, or slices of queries
  T* right = left + cuda::tile_size(tile_rows);              // features of keys, or slices of keys
  T* values = right + cuda::tile_size(tile_rows);            // rows of a state, or values
  T* weight_tile = values + cuda::tile_size(W);              // [query, key]
  T* sum_column = weight_tile + cuda::tile_size(tile_rows);  // [feature]: of a state
  const KeepMask query_mask{reinterpret_cast<uint8_t*>(sum_column + tile_rows)},
      key_mask{query_mask.byte + KeepMask::bytes};
  const cuda::TileThread thread;
  const int64_t tiles = cuda::tiles_of(x.queries), head = blockIdx.x / tiles, b = head / x.H, h = head % x.H;
  const int64_t first = blockIdx.x % tiles * tile_rows, column = int64_t{blockIdx.y} * W;
  const int num_queries =
      static_cast<int>(min(x.num_tokens(TokenRole::query, b) - first, int64_t{tile_rows}));
  if (num_queries <= 0) return;  // past the end of a packed sequence
  const int64_t segment = first / call.segment, segments = ceil_div(x.queries, call.segment);
  const TileTokens<T> queries = x.tokens(TokenRole::query, call.q, head, first, num_queries);
  T weighted_values[rows_per_thread][C], weight_sum[rows_per_thread] = {};
  cuda::clear(weighted_values);

  // Earlier segments, 64 features at a time: weighted_values [64, W] += features times the state, weight_sum
  // [64] += features times its sum column.
  for (int64_t feature = 0; call.states != nullptr && feature < x.table.num_features; feature += tile_rows) {
    const T* state =
        call.states + ((head * segments + segment) * x.table.num_features + feature) * call.state_ld;
    const int64_t count = min(x.table.num_features - feature, int64_t{tile_rows});
    cuda::fetch_tile<T, W>(values, state + column, call.state_ld, count, x.dv - column);
    cuda::commit_copies();
    draw_features(x, queries, feature, query_mask, left);
    if (static_cast<int>(threadIdx.x) < tile_rows)
      sum_column[threadIdx.x] =
          static_cast<int>(threadIdx.x) < count ? state[threadIdx.x * call.state_ld + x.dv] : T(0);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(thread, left, values, tile_rows, weighted_values);
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
#pragma unroll
      for (int n = 0; n < 4; ++n)
        weight_sum[r] += left[thread.row(r) * ld + thread.key(n)] * sum_column[thread.key(n)];
    }
    __syncthreads();
  }

  // Keys of the segment, 64 at a time.
  const int64_t visible = call.k == nullptr ? 0 : x.visible_keys(b);
  const int64_t begin = x.causal ? segment * call.segment : 0;
  const int64_t end = x.causal ? min(first + num_queries, visible) : visible;
  for (int64_t j = begin; j < end; j += tile_rows) {
    const int num_keys = static_cast<int>(min(end - j, int64_t{tile_rows}));
    const TileTokens<T> keys = x.tokens(TokenRole::key, call.k, head, j, num_keys);
    T weights[rows_per_thread][4];  // at first scores
    cuda::clear(weights);
    if (x.drops_monomials()) {
      for (int64_t feature = 0; feature < x.table.num_features; feature += tile_rows) {
        draw_features(x, queries, feature, query_mask, left);
        draw_features(x, keys, feature, key_mask, right);
        __syncthreads();
        cuda::dots<T, ld, ld>(thread, left, right, tile_rows, weights);
        __syncthreads();
      }
    } else {
      cuda::dots_of_slices<T, tile_rows>(
          thread, left, right, x.d,
          [&](int64_t c) {
            cuda::fetch_tile<T, tile_rows>(left, queries.rows + c, x.row_width, num_queries, x.d - c);
          },
          [&](int64_t c) {
            cuda::fetch_tile<T, tile_rows>(right, keys.rows + c, x.row_width, num_keys, x.d - c);
          },
          weights);
    }
    cuda::fetch_tile<T, W>(values, call.v.at(b, h, j) + column, call.v.ld, num_keys, x.dv - column);
    cuda::commit_copies();
#pragma unroll
    for (int r = 0; r < rows_per_thread; ++r) {
      const int64_t query = first + thread.row(r);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t key = j + thread.key(n);
        const bool is_visible = key < end && (!x.causal || key <= query);
        const T score = weights[r][n];
        weights[r][n] = !is_visible ? T(0) : x.drops_monomials() ? score : x.f.weight(score);
        weight_sum[r] += weights[r][n];
      }
    }
    cuda::put_map(thread, weights, weight_tile);
    cuda::wait_for_copies<0>();
    __syncthreads();
    cuda::gather<T, ld, ldw>(thread, weight_tile, values, tile_rows, weighted_values);
    __syncthreads();
  }
  // out = weighted_values / weight_sum, and the sum of weights of each query.
#pragma unroll
  for (int r = 0; r < rows_per_thread; ++r) {
    const T sum = cuda::sum_of_row(weight_sum[r]), inverse = x.inverse_weight_sum(sum);
    if (thread.row(r) >= num_queries) continue;
    const int64_t query = first + thread.row(r);
#pragma unroll
    for (int n = 0; n < C; ++n) weighted_values[r][n] *= inverse;
    cuda::put_columns(thread, weighted_values[r], x.dv - column, call.out.at(b, h, query) + column);
    if (thread.x == 0 && column == 0) call.sums[head * x.queries + query] = sum;
  }
}

/// out and sums: maps queries and keys, computes the states before segments unless the call is dense, and
/// starts one block per 64 queries of a head and W columns of the values.
template <class T>
void run(const PolynomialInputs& in, const PolynomialParams& params, const Tensor& out, const Tensor& sums) {
  const bool dense =
      in.k && prefers_dense_polynomial(longest_sequence(in.k, params.keys), in.q.extent(3), params);
  ForwardCall<T> call{.shape = polynomial_shape(in.q, in.k, out.extent(3), params, !dense, T()),
                      .v = HeadView<const T>(in.v, data_or_null<int32_t>(params.keys.starts)),
                      .segment = std::max<int64_t>(1, longest_sequence(in.q, params.queries)),
                      .out = HeadView<T>(out, data_or_null<int32_t>(params.queries.starts)),
                      .sums = sums.data<T>()};
  const PolynomialShape<T>& x = call.shape;
  // Mapped rows of queries and keys [B H T, row_width].
  const MappedRows<T> queries = map_rows(x, in.q, TokenRole::query);
  call.q = queries.rows.template data<T>();
  MappedRows<T> keys;
  if (in.k) {
    keys = map_rows(x, in.k, TokenRole::key);
    call.k = keys.rows.template data<T>();
  }
  // States [B, H, segments, features, dv + 1] before each segment, in place of one segment of all queries;
  // without keys the start alone.
  Tensor states;
  if (in.k && !dense) {
    call.segment = polynomial_segment_length(x);
    states = polynomial_prefixes(x, keys, in.v, in.start, call.segment);
    call.state_ld = x.state_width();
    call.states = states ? states.data<T>() : nullptr;
  } else if (!in.k) {
    call.states = in.start.data<T>();
    call.state_ld = x.dv + 1;
  }
  const int64_t keys_per_query = dense ? x.keys : std::min(call.segment, x.keys);
  // A dense call has no features.
  Count::add(2 * x.B * x.H * x.queries *
             (x.table.num_features * (x.dv + 1) +
              (x.causal ? (keys_per_query + 1) / 2 : keys_per_query) * (x.d + x.dv)));
  visit_columns(x, [&]<int W>() {
    const int numbers = 3 * cuda::tile_size(tile_rows) + cuda::tile_size(W) + tile_rows;
    cuda::run(forward<T, W>,
              {.blocks = dim3(static_cast<unsigned>(x.B * x.H * cuda::tiles_of(x.queries)),
                              static_cast<unsigned>(std::max<int64_t>(1, ceil_div(x.dv, W)))),
               .threads = dim3(cuda::tile_threads),
               .shared_bytes = numbers * static_cast<int>(sizeof(T)) + 2 * KeepMask::bytes},
              call);
  });
}

}  // namespace

PolynomialShape<float> polynomial_shape(const Tensor& q, const Tensor& k, int64_t dv,
                                        const PolynomialParams& params, bool factored, float) {
  return shape_of<float>(q, k, dv, params, factored);
}
PolynomialShape<double> polynomial_shape(const Tensor& q, const Tensor& k, int64_t dv,
                                         const PolynomialParams& params, bool factored, double) {
  return shape_of<double>(q, k, dv, params, factored);
}

void PolynomialAttention::cuda(const PolynomialInputs& x, const PolynomialParams& params, const Tensor& out,
                               const Tensor& sums) {
  visit_float("polynomial_attention", x.q.dtype(), [&]<class T>(Type<T>) { run<T>(x, params, out, sums); });
}

}  // namespace heed::kernel
