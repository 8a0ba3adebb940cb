// Measures of queries and the selection of queries by them, on the CPU.
#include "heed/core/kernels/content/prob_sparse.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// scores[i] = q . keys[i] over d numbers, for `count` keys, at most as many as a vector has lanes.
template <class T>
void dot_with_keys(const T* q, const T* const* keys, int64_t count, int64_t d, T* scores) {
  constexpr int lanes = simd::Lanes<T>::count;
  if (d % lanes != 0) {  // loading a partial vector takes longer than single numbers
    for (int64_t i = 0; i < count; ++i) {
      T sum = 0;
      for (int64_t c = 0; c < d; ++c) sum += q[c] * keys[i][c];
      scores[i] = sum;
    }
    return;
  }
  simd::Vector<T> sums_of_lanes[lanes] = {};
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < d; c += lanes) sums_of_lanes[i] += simd::load(q + c) * simd::load(keys[i] + c);
  }
  simd::store(scores, simd::row_sums<T>(sums_of_lanes));
}

/// max_u s_u - sum_u s_u / n of one query, where s_u = q . k_j for `count` sampled keys j among the first
/// `num_keys`, and n is num_keys, or `count` with causal.
template <class T>
T measure_of(const T* q, const T* keys, int64_t key_stride, int64_t d, const T* samples, int64_t count,
             int64_t num_keys, const Sampling& sampling) {
  constexpr int at_once = simd::Lanes<T>::count;
  T max_score = -std::numeric_limits<T>::infinity(), total = 0;
  for (int64_t u = 0; u < count; u += at_once) {
    const int64_t num_sampled = std::min<int64_t>(at_once, count - u);
    const T* sampled[at_once];
    for (int64_t i = 0; i < num_sampled; ++i)
      sampled[i] = keys + sampled_key(samples[u + i], num_keys, sampling) * key_stride;
    T scores[at_once];
    dot_with_keys(q, sampled, num_sampled, d, scores);
    max_score = std::max(max_score, lanes::largest(scores, num_sampled));
    total += lanes::sum(scores, num_sampled);
  }
  return max_score - total / static_cast<T>(sampling.causal ? count : num_keys);
}

/// For every row of measure [B, H, N], which[b, h, :] = the indices that choose(row, length, indices) selects
/// among the first `length` numbers of the row, then -1. One task is some rows (b, h).
template <class Choose>
void choose_in_rows(const Tensor& measure, const Tensor& lengths, const Tensor& which, Choose&& choose) {
  const int64_t H = measure.extent(1), N = measure.extent(2), n = which.extent(2);
  const int32_t* length_of = lengths ? lengths.data<int32_t>() : nullptr;
  visit_float("prob_sparse", measure.dtype(), [&]<class T>(Type<T>) {
    parallel_rows(measure.extent(0) * H, light_grain / (N + 1) + 1, [&](int64_t begin, int64_t end) {
      std::vector<int32_t> chosen;
      for (int64_t row = begin; row < end; ++row) {
        chosen.clear();
        const int64_t length = length_of != nullptr ? std::clamp<int64_t>(length_of[row / H], 0, N) : N;
        choose(measure.data<T>() + row * N, length, chosen);
        int32_t* const out_row = which.data<int32_t>() + row * n;
        int32_t* const out_end =
            std::copy_n(chosen.begin(), std::min<int64_t>(n, std::ssize(chosen)), out_row);
        std::fill(out_end, out_row + n, -1);
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
  const int32_t* length_of = lengths ? lengths.data<int32_t>() : nullptr;
  visit_float("sampled_spread", q.dtype(), [&]<class T>(Type<T>) {
    const HeadView<const T> queries(q), keys(k);
    T* out = measure.data<T>();
    parallel_rows(measure.size(), light_grain / (U * d + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t i = row % N, h = row / N % H, b = row / N / H;
        const int64_t num_keys = length_of != nullptr ? std::clamp<int64_t>(length_of[b], 0, M) : M;
        const int64_t num_visible = sampling.causal ? std::min(num_keys, i + 1) : num_keys;
        if (num_visible == 0 || (sampling.same_tokens && i >= num_keys)) {
          out[row] = minus_infinity<T>;
          continue;
        }
        const int64_t num_samples =
            sampling.factor > 0 ? std::min(U, logarithmic(sampling.factor, num_keys)) : U;
        out[row] = measure_of(queries.at(b, h, i), keys.at(b, h, 0), k.strides()[2], d,
                              samples.data<T>() + i * U, num_samples, num_visible, sampling);
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
  choose_in_rows(measure, lengths, which,
                 [factor](const auto* measure_row, int64_t length, std::vector<int32_t>& chosen) {
                   for (int64_t i = 0; i < length; ++i) {
                     if (measure_row[i] > -HUGE_VAL) chosen.push_back(static_cast<int32_t>(i));
                   }
                   const int64_t max_chosen = logarithmic(factor, length);
                   if (std::ssize(chosen) <= max_chosen) return;
                   std::nth_element(chosen.begin(), chosen.begin() + max_chosen, chosen.end(),
                                    [measure_row](int32_t a, int32_t b) {
                                      return measure_row[a] > measure_row[b] ||
                                             (measure_row[a] == measure_row[b] && a < b);
                                    });
                   chosen.resize(static_cast<size_t>(max_chosen));
                   std::sort(chosen.begin(), chosen.end());
                 });
}

/// which[b, h, :] = the first 2 logarithmic(factor, T) indices i where fewer than `factor` numbers before i
/// are at least measure[b, h, i] > -inf, then -1. One task is some rows (b, h).
template <>
void CausalTopQueries::cpu<target_isa>(const Tensor& measure, const Tensor& lengths, int64_t factor,
                                       const Tensor& which) {
  choose_in_rows(measure, lengths, which,
                 [factor](const auto* measure_row, int64_t length, std::vector<int32_t>& chosen) {
                   std::vector<double> largest;  // min-heap of the `factor` largest numbers so far
                   const int64_t max_chosen = 2 * logarithmic(factor, length);
                   for (int64_t i = 0; i < length && std::ssize(chosen) < max_chosen; ++i) {
                     const double candidate = measure_row[i];
                     const bool is_full = std::ssize(largest) == factor;
                     if (!(candidate > -HUGE_VAL) || (is_full && candidate <= largest.front())) continue;
                     if (is_full) {
                       std::pop_heap(largest.begin(), largest.end(), std::greater<double>());
                       largest.pop_back();
                     }
                     largest.push_back(candidate);
                     std::push_heap(largest.begin(), largest.end(), std::greater<double>());
                     chosen.push_back(static_cast<int32_t>(i));
                   }
                 });
}

/// bias[b, h, i, j] = 0 where j <= which[b, h, i], else -inf. One task is some rows (b, h, i).
template <>
void PrefixBias::cpu<target_isa>(const Tensor& which, const Tensor& bias) {
  const int64_t M = bias.extent(3);
  visit_float("prefix_bias", bias.dtype(), [&]<class T>(Type<T>) {
    parallel_rows(which.size(), light_grain / (M + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t num_visible = std::min<int64_t>(which.data<int32_t>()[row] + 1, M);
        T* const bias_row = bias.data<T>() + row * M;
        std::fill_n(bias_row, num_visible, T(0));
        std::fill(bias_row + num_visible, bias_row + M, -std::numeric_limits<T>::infinity());
      }
    });
  });
  Count::add(bias.size());
}

}  // namespace heed::kernel
