// Measures of queries and the selection of queries by them, on the CPU.
#include "heed/core/kernels/content/prob_sparse.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// scores[i] = q . keys[i] over d numbers, for `count` keys, at most as many as a vector has lanes.
template <class T>
void dot_with_keys(const T* q, const T* const* keys, int64_t count, int64_t d, T* scores) {
  constexpr int n = simd::Lanes<T>::count;
  if (d % n != 0) {  // loading a partial vector takes longer than single numbers
    for (int64_t i = 0; i < count; ++i) {
      const T* k = keys[i];
      T sum = 0;
      for (int64_t c = 0; c < d; ++c) sum += q[c] * k[c];
      scores[i] = sum;
    }
    return;
  }
  simd::Vector<T> parts[n] = {};
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < d; c += n) parts[i] += simd::load(q + c) * simd::load(keys[i] + c);
  }
  simd::store(scores, simd::row_sums<T>(parts));
}

/// max_u s_u - sum_u s_u / n of one query, where s_u = q . k_j for `count` sampled keys j among the first
/// `num_keys`, and n is num_keys, or `count` with causal.
template <class T>
T measure_of(const T* q, const T* keys, int64_t stride, int64_t d, const T* samples, int64_t count,
             int64_t num_keys, const Sampling& sampling) {
  constexpr int n = simd::Lanes<T>::count;
  T max_score = minus_infinity<T>, total = 0;
  for (int64_t u = 0; u < count; u += n) {
    const int64_t left = std::min<int64_t>(n, count - u);
    const T* sampled[n];
    for (int64_t i = 0; i < left; ++i) {
      sampled[i] = keys + sampled_key(samples[u + i], num_keys, sampling) * stride;
    }
    T scores[n];
    dot_with_keys(q, sampled, left, d, scores);
    max_score = std::max(max_score, lanes::largest(scores, left));
    total += lanes::sum(scores, left);
  }
  return max_score - total / static_cast<T>(sampling.causal ? count : num_keys);
}

/// For every row of measure [B, H, N], writes the indices that choose(row, length, indices) selects among its
/// first `length` numbers, then -1. One task is some rows (b, h).
template <class F>
void each_row(const Tensor& measure, const Tensor& lengths, const Tensor& which, F&& choose) {
  const int64_t H = measure.extent(1), N = measure.extent(2), n = which.extent(2);
  const int32_t* length = lengths ? lengths.data<int32_t>() : nullptr;
  visit_float("prob_sparse", measure.dtype(), [&](auto type) {
    const auto* value = measure.data<typename decltype(type)::type>();
    int32_t* out = which.data<int32_t>();
    parallel_rows(measure.extent(0) * H, light_grain / (N + 1) + 1, [&](int64_t begin, int64_t end) {
      std::vector<int32_t> chosen;
      for (int64_t row = begin; row < end; ++row) {
        chosen.clear();
        choose(value + row * N, length != nullptr ? std::clamp<int64_t>(length[row / H], 0, N) : N, chosen);
        const auto last =
            std::copy_n(chosen.begin(), std::min(n, static_cast<int64_t>(chosen.size())), out + row * n);
        std::fill(last, out + (row + 1) * n, -1);
      }
    });
  });
  Count::add(measure.size());
}

}  // namespace

/// measure[b, h, i] = max_u s_iu - sum_u s_iu / n over the sampled keys of query i (see SparsityMeasure);
/// -inf for a padded query and where there are no keys. One task is some queries (b, h, i).
template <>
void SparsityMeasure::cpu<target_isa>(const Tensor& q, const Tensor& k, const Tensor& samples,
                                      const Tensor& lengths, const Sampling& sampling,
                                      const Tensor& measure) {
  const int64_t H = q.extent(1), N = q.extent(2), d = q.extent(3), M = k.extent(2), U = samples.extent(1);
  const int32_t* length = lengths ? lengths.data<int32_t>() : nullptr;
  visit_float("sampled_spread", q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *queries = q.data<T>(), *keys = k.data<T>(), *sample = samples.data<T>();
    T* out = measure.data<T>();
    parallel_rows(measure.size(), light_grain / (U * d + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t i = row % N, h = row / N % H, b = row / N / H;
        const int64_t num_keys = length != nullptr ? std::clamp<int64_t>(length[b], 0, M) : M;
        const int64_t num_visible = sampling.causal ? std::min(num_keys, i + 1) : num_keys;
        if (num_visible == 0 || (sampling.same_tokens && i >= num_keys)) {
          out[row] = minus_infinity<T>;
          continue;
        }
        out[row] =
            measure_of(queries + b * q.strides()[0] + h * q.strides()[1] + i * q.strides()[2],
                       keys + b * k.strides()[0] + h * k.strides()[1], k.strides()[2], d, sample + i * U,
                       sampling.factor > 0 ? std::min(U, logarithmic(sampling.factor, num_keys)) : U,
                       num_visible, sampling);
      }
    });
  });
  Count::add(2 * measure.size() * U * d);
}

/// which[b, h, :] = indices of the logarithmic(factor, T) greatest of measure[b, h, :T] above -inf, in
/// ascending order, then -1. One task is some rows (b, h).
template <>
void TopQueries::cpu<target_isa>(const Tensor& measure, const Tensor& lengths, int64_t factor,
                                 const Tensor& which) {
  each_row(
      measure, lengths, which, [factor](const auto* value, int64_t length, std::vector<int32_t>& chosen) {
        for (int64_t i = 0; i < length; ++i) {
          if (value[i] > -HUGE_VAL) chosen.push_back(static_cast<int32_t>(i));
        }
        const int64_t max_chosen = logarithmic(factor, length);
        if (static_cast<int64_t>(chosen.size()) <= max_chosen) return;
        std::nth_element(
            chosen.begin(), chosen.begin() + max_chosen, chosen.end(),
            [value](int32_t a, int32_t b) { return value[a] > value[b] || (value[a] == value[b] && a < b); });
        chosen.resize(static_cast<size_t>(max_chosen));
        std::sort(chosen.begin(), chosen.end());
      });
}

/// which[b, h, :] = the first 2 logarithmic(factor, T) indices i where fewer than `factor` numbers before i
/// are at least measure[b, h, i] > -inf, then -1. One task is some rows (b, h).
template <>
void CausalTopQueries::cpu<target_isa>(const Tensor& measure, const Tensor& lengths, int64_t factor,
                                       const Tensor& which) {
  each_row(measure, lengths, which,
           [factor](const auto* value, int64_t length, std::vector<int32_t>& chosen) {
             std::vector<double> largest;  // min-heap of the `factor` largest numbers so far
             const int64_t max_chosen = 2 * logarithmic(factor, length);
             for (int64_t i = 0; i < length && static_cast<int64_t>(chosen.size()) < max_chosen; ++i) {
               const double x = value[i];
               const bool is_full = static_cast<int64_t>(largest.size()) == factor;
               if (!(x > -HUGE_VAL) || (is_full && x <= largest.front())) continue;
               if (is_full) {
                 std::pop_heap(largest.begin(), largest.end(), std::greater<double>());
                 largest.pop_back();
               }
               largest.push_back(x);
               std::push_heap(largest.begin(), largest.end(), std::greater<double>());
               chosen.push_back(static_cast<int32_t>(i));
             }
           });
}

/// bias[b, h, i, j] = 0 where j <= which[b, h, i], else -inf. One task is some rows (b, h, i).
template <>
void PrefixBias::cpu<target_isa>(const Tensor& which, const Tensor& bias) {
  const int64_t M = bias.extent(3);
  visit_float("look_back", bias.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const int32_t* last = which.data<int32_t>();
    T* out = bias.data<T>();
    parallel_rows(which.size(), light_grain / (M + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t num_visible = std::min<int64_t>(last[row] + 1, M);
        std::fill_n(out + row * M, num_visible, T(0));
        std::fill(out + row * M + num_visible, out + (row + 1) * M, minus_infinity<T>);
      }
    });
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel
