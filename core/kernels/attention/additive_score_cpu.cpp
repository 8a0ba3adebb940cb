// Additive scores on the CPU: vector lanes are keys. The backward pass goes unit by unit, so that no two
// tasks add to the same number.
#include "heed/core/kernels/attention/additive_score.h"

#include <algorithm>

#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

constexpr int64_t block = 256;  // number of keys at a time, whose sums stay in the nearest cache

/// score[b, h, i, j] = sum_a units[h, a] tanh(left[b, h, i, a] + right[b, h, a, j]). One task is some query
/// rows (b, h, i); each goes through its keys in blocks of 256.
template <class T>
void forward(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& score) {
  const AdditiveExtents x(left, right);
  const T *l = left.data<T>(), *r = right.data<T>(), *u = units.data<T>();
  T* out = score.data<T>();
  const int64_t rows = x.num_heads * x.queries;
  parallel_rows(rows, light_grain / (x.units * x.keys + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t head = row / x.queries;
      const T *left_row = l + row * x.units, *weight = u + head % x.heads * x.units;
      for (int64_t first = 0; first < x.keys; first += block) {
        const int64_t count = std::min(block, x.keys - first);
        T* scores = out + row * x.keys + first;
        std::fill_n(scores, count, T(0));
        for (int64_t a = 0; a < x.units; ++a) {
          const T* right_row = r + (head * x.units + a) * x.keys + first;
          const T left_unit = left_row[a], factor = weight[a];
#pragma GCC ivdep
          for (int64_t j = 0; j < count; ++j) scores[j] += factor * math::tanh(left_unit + right_row[j]);
        }
      }
    }
  });
  Count::add(4 * rows * x.units * x.keys);
}

/// Gradients of the inputs of additive scores, with t_ija = tanh(left_ia + right_aj) and g_ija = dscore_ij
/// units_a (1 - t_ija^2): dleft_ia = sum_j g_ija, dright_aj = sum_i g_ija, dunits_a = sum_ij dscore_ij t_ija.
/// One task is some units (b, h, a), each with all queries and keys.
template <class T>
void backward(const AdditiveInputs& in, const Tensor& dscore, const AdditiveInputs& din) {
  const AdditiveExtents x(in.left, in.right);
  const T *l = in.left.data<T>(), *r = in.right.data<T>(), *u = in.units.data<T>(),
          *dscores = dscore.data<T>();
  T *dl = din.left.data<T>(), *dr = din.right.data<T>(), *du = din.units.data<T>();
  const int64_t num_units = x.num_heads * x.units;
  parallel_rows(num_units, light_grain / (x.queries * x.keys + 1) + 1, [&](int64_t begin, int64_t end) {
    T dunit[block], dhidden[block];
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t head = unit / x.units, a = unit % x.units;
      const T factor = u[head % x.heads * x.units + a];
      const T* right_row = r + unit * x.keys;
      T* dright_row = dr + unit * x.keys;
      std::fill_n(dright_row, x.keys, T(0));
      double total = 0;
      // One query after the other: adds to dright [keys] and dunits, and sums dleft over the keys.
      for (int64_t i = 0; i < x.queries; ++i) {
        const int64_t row = head * x.queries + i;
        const T left_unit = l[row * x.units + a];
        T dleft_sum = 0;
        for (int64_t first = 0; first < x.keys; first += block) {
          const int64_t count = std::min(block, x.keys - first);
          const T* dscore_row = dscores + row * x.keys + first;
#pragma GCC ivdep
          for (int64_t j = 0; j < count; ++j) {
            const T t = math::tanh(left_unit + right_row[first + j]);
            dunit[j] = dscore_row[j] * t;
            dhidden[j] = factor * dscore_row[j] * (1 - t * t);
            dright_row[first + j] += dhidden[j];
          }
          total += static_cast<double>(lanes::sum(dunit, count));
          dleft_sum += lanes::sum(dhidden, count);
        }
        dl[row * x.units + a] = dleft_sum;
      }
      du[unit] = static_cast<T>(total);
    }
  });
  Count::add(10 * num_units * x.queries * x.keys);
}

}  // namespace

template <>
void AdditiveScore::cpu<target_isa>(const Tensor& left, const Tensor& right, const Tensor& units,
                                    const Tensor& score) {
  visit_float("additive_score", left.dtype(),
              [&]<class T>(Type<T>) { forward<T>(left, right, units, score); });
}

template <>
void AdditiveScoreBack::cpu<target_isa>(const AdditiveInputs& x, const Tensor& dscore,
                                        const AdditiveInputs& dx) {
  visit_float("additive_score", x.left.dtype(), [&]<class T>(Type<T>) { backward<T>(x, dscore, dx); });
}

}  // namespace heed::kernel
