// Attention to windows on a GPU: a warp takes a query. Gradients of keys and values come from the queries
// whose window holds the key: with queries in the order of their windows these lie together.
#include "heed/core/kernels/attention/local_attention.h"

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/sort.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

template <class T>
struct Call {
  int64_t batch, heads, queries, keys, d, dv, most, reach, first_query;
  T scale, narrow;  // narrow: 1 / sigma^2
  double sigma;
  WindowCentre window;
  Gauss gauss;
  bool causal;
  const int32_t* lengths;
  HeadView<const T> q, k, v;
  const T* centres;

  Call(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& centre,
       const LocalParams& t)
      : batch(query.extent(0)),
        heads(query.extent(1)),
        queries(query.extent(2)),
        keys(key.extent(2)),
        d(query.extent(3)),
        dv(value.extent(3)),
        most(std::min(2 * std::min(t.reach, keys) + 1, keys)),
        reach(t.reach),
        first_query(t.first_query),
        scale(static_cast<T>(t.scale)),
        narrow(static_cast<T>(1 / (t.sigma * t.sigma))),
        sigma(t.sigma),
        window(t.window),
        gauss(t.gauss),
        causal(t.causal),
        lengths(cuda::pointer<int32_t>(t.key_lengths)),
        q(query),
        k(key),
        v(value),
        centres(centre.data<T>()) {}

  int64_t rows() const { return batch * heads * queries; }
  int64_t flops_of_row() const { return most * (2 * (d + dv) + 8); }
};

/// The keys of one query.
struct Span {
  int64_t first = 0, count = 0;
  double centre = 0;
  bool broken = false;  ///< a centre that is no number gives no window
};

/// The window of query i of sequence b: keys within `reach` of its centre, or of the floor of its centre, as
/// WindowCentre says, among the first keys that the length and the causal mask leave. Empty where the centre
/// is NaN.
template <class T>
__device__ Span span_of(const Call<T>& call, int64_t b, int64_t i, T centre) {
  Span out;
  out.broken = centre != centre;
  out.centre = static_cast<double>(centre);
  int64_t open = call.keys;
  if (call.lengths != nullptr) open = std::clamp<int64_t>(call.lengths[b], 0, open);
  if (call.causal) open = std::clamp<int64_t>(call.first_query + i + 1, 0, open);
  if (out.broken || open == 0) return out;
  const auto far = static_cast<double>(call.keys + call.reach) + 2, reach = static_cast<double>(call.reach);
  const double middle = std::clamp(out.centre, -far, far);
  const bool real = call.window == WindowCentre::real;
  const auto begin = static_cast<int64_t>(real ? std::ceil(middle - reach) : std::floor(middle) - reach);
  const auto last = static_cast<int64_t>(real ? std::floor(middle + reach) : std::floor(middle) + reach);
  out.first = std::max<int64_t>(begin, 0);
  out.count = std::max<int64_t>(std::min(last + 1, open) - out.first, 0);
  return out;
}

/// The weights of one query over its window and what their gradient needs; memory [4, most] of a warp.
template <class T>
struct Window {
  T *weights, *bell, *scores, *soft;

  __device__ Window(T* memory, int64_t most)
      : weights(memory), bell(memory + most), scores(memory + 2 * most), soft(memory + 3 * most) {}

  __device__ void look(const Call<T>& call, const Span& span, int64_t b, int64_t h, const T* q) {
    const bool before = call.gauss == Gauss::pre_score, after = call.gauss == Gauss::post;
    for (int64_t c = 0; c < span.count; ++c) {
      const T score = call.scale * cuda::warp_dot(q, call.k.at(b, h, span.first + c), call.d);
      if (cuda::lane() == c % cuda::lanes) scores[c] = score;
    }
    T most = cuda::lowest<T>(), total = 0;
    for (int64_t c = cuda::lane(); c < span.count; c += cuda::lanes) {
      const double off = static_cast<double>(span.first + c) - span.centre;
      bell[c] = call.gauss == Gauss::none
                    ? T(1)
                    : static_cast<T>(std::exp(-off * off / (2 * call.sigma * call.sigma)));
      soft[c] = before ? scores[c] * bell[c] : scores[c];
      most = std::max(most, soft[c]);
    }
    most = cuda::warp_max(most);
    for (int64_t c = cuda::lane(); c < span.count; c += cuda::lanes)
      total += soft[c] = std::exp(soft[c] - most);
    total = cuda::warp_sum(total);
    for (int64_t c = cuda::lane(); c < span.count; c += cuda::lanes) {
      soft[c] /= total;
      weights[c] = after ? soft[c] * bell[c] : soft[c];
    }
    __syncwarp();
  }

  /// From the gradients of `weights` to those of the scaled products (in place); returns that of the centre.
  __device__ T bend(const Call<T>& call, const Span& span, T* dweights) {
    const bool before = call.gauss == Gauss::pre_score, post = call.gauss == Gauss::post;
    T inner = 0, dcentre = 0;
    for (int64_t c = cuda::lane(); c < span.count; c += cuda::lanes) inner += weights[c] * dweights[c];
    inner = cuda::warp_sum(inner);
    for (int64_t c = cuda::lane(); c < span.count; c += cuda::lanes) {
      const T pull = static_cast<T>(static_cast<double>(span.first + c) - span.centre) * call.narrow;
      if (post) dcentre += weights[c] * dweights[c] * pull;
      const T dscore = soft[c] * ((post ? bell[c] : T(1)) * dweights[c] - inner);
      if (before) dcentre += dscore * scores[c] * bell[c] * pull;
      dweights[c] = before ? dscore * bell[c] : dscore;
    }
    __syncwarp();
    return cuda::warp_sum(dcentre);
  }
};

/// out[b, h, i, :] = sum_j w_ij v_j over the window of query i. A warp takes query rows (b, h, i) in turn;
/// memory [warps of the grid, 4, most] holds its window.
template <class T>
__global__ void __launch_bounds__(cuda::block) attend(Call<T> call, T* memory, HeadView<T> out) {
  Window<T> window(memory + cuda::grid_warp() * 4 * call.most, call.most);
  for (int64_t row = cuda::grid_warp(); row < call.batch * call.heads * call.queries;
       row += cuda::grid_warps()) {
    const int64_t i = row % call.queries, head = row / call.queries, b = head / call.heads,
                  h = head % call.heads;
    const Span span = span_of(call, b, i, call.centres[row]);
    window.look(call, span, b, h, call.q.at(b, h, i));
    T* to = out.at(b, h, i);
    for (int64_t e = cuda::lane(); e < call.dv; e += cuda::lanes) {
      T sum = span.broken ? static_cast<T>(nan("")) : T(0);
      for (int64_t c = 0; c < span.count; ++c) sum += window.weights[c] * call.v.at(b, h, span.first + c)[e];
      to[e] = sum;
    }
    __syncwarp();
  }
}

/// What the backward pass saves of each query: weights and score gradients [rows, most], first key and number
/// of keys.
template <class T>
struct SavedRows {
  T *weights, *dscores;
  int32_t *first, *count;
};

/// dq and dcentre of each query; its weights and score gradients go to `saved`. A warp takes query rows (b,
/// h, i) in turn; memory [warps of the grid, 4, most] holds its window.
template <class T>
__global__ void __launch_bounds__(cuda::block) back_queries(Call<T> call, T* memory, HeadView<const T> dout,
                                                            SavedRows<T> saved, HeadView<T> dq, T* dcentre) {
  Window<T> window(memory + cuda::grid_warp() * 4 * call.most, call.most);
  for (int64_t row = cuda::grid_warp(); row < call.batch * call.heads * call.queries;
       row += cuda::grid_warps()) {
    const int64_t i = row % call.queries, head = row / call.queries, b = head / call.heads,
                  h = head % call.heads;
    const Span span = span_of(call, b, i, call.centres[row]);
    const T *own = call.q.at(b, h, i), *dout_view = dout.at(b, h, i);
    T* dweights = saved.dscores + row * call.most;
    // Weights of the window, and dweights_c = dout . v for each of its keys.
    window.look(call, span, b, h, own);
    for (int64_t c = 0; c < span.count; ++c) {
      const T dweight = cuda::warp_dot(dout_view, call.v.at(b, h, span.first + c), call.dv);
      if (cuda::lane() == c % cuda::lanes) dweights[c] = dweight;
    }
    // dweights becomes the gradient of the scaled products, and then of q . k.
    const T pull = window.bend(call, span, dweights);
    for (int64_t c = cuda::lane(); c < span.count; c += cuda::lanes) {
      saved.weights[row * call.most + c] = window.weights[c];
      dweights[c] *= call.scale;
    }
    __syncwarp();
    // dq = sum_c dweights_c k_c over the window; lanes are columns.
    T* to = dq.at(b, h, i);
    for (int64_t e = cuda::lane(); e < call.d; e += cuda::lanes) {
      T sum = 0;
      for (int64_t c = 0; c < span.count; ++c) sum += dweights[c] * call.k.at(b, h, span.first + c)[e];
      to[e] = sum;
    }
    if (cuda::lane() == 0) {
      dcentre[row] = pull;
      saved.first[row] = static_cast<int32_t>(span.count > 0 ? span.first : call.keys);
      saved.count[row] = static_cast<int32_t>(span.count);
    }
    __syncwarp();
  }
}

/// dk_j = sum_i dscore_ij q_i and dv_j = sum_i w_ij dout_i, by one warp per key j of a head, over the queries
/// whose window begins at j or less than `most` keys before it.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    back_keys(Call<T> call, HeadView<const T> dout, SavedRows<T> saved, const int32_t* order, HeadView<T> dk,
              HeadView<T> dv) {
  const int64_t at = cuda::grid_warp(), j = at % call.keys, head = at / call.keys;
  if (head >= call.batch * call.heads) return;
  const int64_t b = head / call.heads, h = head % call.heads, base = head * call.queries;
  const auto first_from = [&](int64_t least) {  // the first place whose window begins at `least` or later
    int64_t low = 0, high = call.queries;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (saved.first[base + order[base + middle]] < least)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  const int64_t begin = first_from(j - call.most + 1), end = first_from(j + 1);
  const auto add = [&](HeadView<const T> rows, const T* factors, int64_t width, T* to) {
    for (int64_t e = cuda::lane(); e < width; e += cuda::lanes) {
      T sum = 0;
      for (int64_t place = begin; place < end; ++place) {
        const int64_t i = order[base + place], c = j - saved.first[base + i];
        if (c < saved.count[base + i]) sum += factors[(base + i) * call.most + c] * rows.at(b, h, i)[e];
      }
      to[e] = sum;
    }
  };
  add(call.q, saved.dscores, call.d, dk.at(b, h, j));
  add(dout, saved.weights, call.dv, dv.at(b, h, j));
}

/// Number of warps that work on this many rows at the same time.
int64_t working(int64_t rows) { return std::min(rows, cuda::max_warps); }

template <class T>
Tensor memory_of(const Tensor& like_this, const Call<T>& call) {
  const int64_t warps =
      ceil_div(working(call.rows()), cuda::block / cuda::lanes) * (cuda::block / cuda::lanes);
  return empty_like(like_this, Shape{warps, 4, call.most});
}

}  // namespace

void LocalAttention::cuda(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
                          const LocalParams& params, const Tensor& out) {
  visit_float("local_attention", q.dtype(), [&]<class T>(Type<T>) {
    const Call<T> call(q, k, v, centre, params);
    const Tensor memory = memory_of(q, call);
    cuda::run(attend<T>, cuda::warps(working(call.rows())), call, memory.data<T>(), HeadView<T>(out));
    Count::add(call.rows() * call.flops_of_row());
  });
}

/// Gradients of LocalAttention: a warp per query gives dq and dcentre and saves its weights and score
/// gradients [B H Tq, most]. The queries of each head are then sorted by the first key of their window, and a
/// warp per key gives dk and dv.
void LocalAttentionBack::cuda(const LocalAttentionBackTensors& t, const LocalParams& params) {
  visit_float("local_attention", t.q.dtype(), [&]<class T>(Type<T>) {
    const Call<T> call(t.q, t.k, t.v, t.centre, params);
    const Tensor memory = memory_of(t.q, call), weights = empty_like(t.q, Shape{call.rows(), call.most}),
                 dscores = empty_like(weights);
    const Tensor spans(Shape{3, call.rows()}, DType::i32, Device::cuda);
    int32_t* const span = spans.data<int32_t>();
    const SavedRows<T> saved{weights.data<T>(), dscores.data<T>(), span, span + call.rows()};
    int32_t* const order = span + 2 * call.rows();
    const HeadView<const T> dout_view(t.dout);
    cuda::run(back_queries<T>, cuda::warps(working(call.rows())), call, memory.data<T>(), dout_view, saved,
              HeadView<T>(t.dq), t.dcentre.data<T>());
    cuda::sort_rows(reinterpret_cast<const uint32_t*>(span), call.batch * call.heads, call.queries,
                    cuda::bits_of(call.keys), order);
    cuda::run(back_keys<T>, cuda::warps(call.batch * call.heads * call.keys), call, dout_view, saved,
              static_cast<const int32_t*>(order), HeadView<T>(t.dk), HeadView<T>(t.dv));
    Count::add(call.rows() * (call.flops_of_row() + call.most * 4 * (call.d + call.dv)));
  });
}

}  // namespace heed::kernel
