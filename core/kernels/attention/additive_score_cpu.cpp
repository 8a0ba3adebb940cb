// Additive scores on the CPU: lanes are keys. The gradient goes unit by unit, so that no two pieces add to
// the same number.
#include "heed/core/kernels/attention/additive_score.h"

#include <algorithm>

#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

constexpr int64_t block = 256;  // keys at a time: their sums stay in the nearest cache

struct Extent {
  int64_t batch, heads, queries, units, keys;
  Extent(const Tensor& left, const Tensor& right)
      : batch(left.extent(0)),
        heads(left.extent(1)),
        queries(left.extent(2)),
        units(left.extent(3)),
        keys(right.extent(3)) {}
};

/// score[b, h, i, j] = sum_a units[h, a] tanh(left[b, h, i, a] + right[b, h, a, j]). One task is some query
/// rows (b, h, i); each goes through its keys in blocks of 256.
template <class T>
void forward(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& score) {
  const Extent x(left, right);
  const T *l = left.data<T>(), *r = right.data<T>(), *u = units.data<T>();
  T* out = score.data<T>();
  const int64_t rows = x.batch * x.heads * x.queries;
  parallel_rows(rows, light_grain / (x.units * x.keys + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t head = row / x.queries;
      const T *own = l + row * x.units, *weight = u + head % x.heads * x.units;
      for (int64_t first = 0; first < x.keys; first += block) {
        const int64_t count = std::min(block, x.keys - first);
        T* to = out + row * x.keys + first;
        std::fill_n(to, count, T(0));
        for (int64_t a = 0; a < x.units; ++a) {
          const T* right_row = r + (head * x.units + a) * x.keys + first;
          const T own_left = own[a], factor = weight[a];
#pragma GCC ivdep
          for (int64_t j = 0; j < count; ++j) to[j] += factor * math::tanh(own_left + right_row[j]);
        }
      }
    }
  });
  Count::add(4 * rows * x.units * x.keys);
}

/// Gradients of the score above, with t = tanh and g_ija = dscore_ij units_a (1 - t_ija^2): dleft_ia = sum_j
/// g_ija, dright_aj = sum_i g_ija, dunits_a = sum_ij dscore_ij t_ija. One task is some units (b, h, a), each
/// with all queries and keys.
template <class T>
void backward(const AdditiveInputs& in, const Tensor& dscore, const AdditiveInputs& din) {
  const Extent x(in.left, in.right);
  const T *l = in.left.data<T>(), *r = in.right.data<T>(), *u = in.units.data<T>(),
          *dscores = dscore.data<T>();
  T *dl = din.left.data<T>(), *dr = din.right.data<T>(), *du = din.units.data<T>();
  const int64_t all = x.batch * x.heads * x.units;
  parallel_rows(all, light_grain / (x.queries * x.keys + 1) + 1, [&](int64_t begin, int64_t end) {
    T dunit[block], dinner[block];
    for (int64_t at = begin; at < end; ++at) {
      const int64_t head = at / x.units, a = at % x.units;
      const T factor = u[head % x.heads * x.units + a];
      const T* right_row = r + at * x.keys;
      T* dright_row = dr + at * x.keys;
      std::fill_n(dright_row, x.keys, T(0));
      double total = 0;
      // One query after the other: adds to dright [keys] and dunits, and sums dleft over the keys.
      for (int64_t i = 0; i < x.queries; ++i) {
        const int64_t row = head * x.queries + i;
        const T own_left = l[row * x.units + a];
        T dleft_sum = 0;
        for (int64_t first = 0; first < x.keys; first += block) {
          const int64_t count = std::min(block, x.keys - first);
          const T* dscore_row = dscores + row * x.keys + first;
#pragma GCC ivdep
          for (int64_t j = 0; j < count; ++j) {
            const T t = math::tanh(own_left + right_row[first + j]);
            dunit[j] = dscore_row[j] * t;
            dinner[j] = factor * dscore_row[j] * (1 - t * t);
            dright_row[first + j] += dinner[j];
          }
          total += static_cast<double>(lanes::sum(dunit, count));
          dleft_sum += lanes::sum(dinner, count);
        }
        dl[row * x.units + a] = dleft_sum;
      }
      du[at] = static_cast<T>(total);
    }
  });
  Count::add(10 * all * x.queries * x.keys);
}

}  // namespace

template <>
void AdditiveScore::cpu<here>(const Tensor& left, const Tensor& right, const Tensor& units,
                              const Tensor& score) {
  visit_float("additive_score", left.dtype(),
              [&](auto type) { forward<typename decltype(type)::type>(left, right, units, score); });
}

template <>
void AdditiveScoreBack::cpu<here>(const AdditiveInputs& x, const Tensor& dscore, const AdditiveInputs& dx) {
  visit_float("additive_score", x.left.dtype(),
              [&](auto type) { backward<typename decltype(type)::type>(x, dscore, dx); });
}

}  // namespace heed::kernel
