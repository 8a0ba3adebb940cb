// Additive scores on the CPU: lanes are keys. The gradient goes unit by unit, so that no two pieces add to
// the same number.
#include "core/kernels/additive_score.h"
#include "core/kernels/here.h"

#include <algorithm>

#include "core/count.h"
#include "core/kernels/lanes.h"
#include "core/kernels/math.h"
#include "core/parallel.h"

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
          const T* others = r + (head * x.units + a) * x.keys + first;
          const T mine = own[a], factor = weight[a];
#pragma GCC ivdep
          for (int64_t j = 0; j < count; ++j) to[j] += factor * math::tanh(mine + others[j]);
        }
      }
    }
  });
  Count::add(4 * rows * x.units * x.keys);
}

template <class T>
void backward(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& dscore,
              const Tensor& dleft, const Tensor& dright, const Tensor& dunits) {
  const Extent x(left, right);
  const T *l = left.data<T>(), *r = right.data<T>(), *u = units.data<T>(), *slopes = dscore.data<T>();
  T *dl = dleft.data<T>(), *dr = dright.data<T>(), *du = dunits.data<T>();
  const int64_t all = x.batch * x.heads * x.units;
  parallel_rows(all, light_grain / (x.queries * x.keys + 1) + 1, [&](int64_t begin, int64_t end) {
    T weighed[block], bent[block];
    for (int64_t at = begin; at < end; ++at) {
      const int64_t head = at / x.units, a = at % x.units;
      const T factor = u[head % x.heads * x.units + a];
      const T* others = r + at * x.keys;
      T* dothers = dr + at * x.keys;
      std::fill_n(dothers, x.keys, T(0));
      double total = 0;
      for (int64_t i = 0; i < x.queries; ++i) {
        const int64_t row = head * x.queries + i;
        const T mine = l[row * x.units + a];
        T dmine = 0;
        for (int64_t first = 0; first < x.keys; first += block) {
          const int64_t count = std::min(block, x.keys - first);
          const T* slope = slopes + row * x.keys + first;
#pragma GCC ivdep
          for (int64_t j = 0; j < count; ++j) {
            const T t = math::tanh(mine + others[first + j]);
            weighed[j] = slope[j] * t;
            bent[j] = factor * slope[j] * (1 - t * t);
            dothers[first + j] += bent[j];
          }
          total += static_cast<double>(lanes::sum(weighed, count));
          dmine += lanes::sum(bent, count);
        }
        dl[row * x.units + a] = dmine;
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
void AdditiveScoreBack::cpu<here>(const Tensor& left, const Tensor& right, const Tensor& units,
                                  const Tensor& dscore, const Tensor& dleft, const Tensor& dright,
                                  const Tensor& dunits) {
  visit_float("additive_score", left.dtype(), [&](auto type) {
    backward<typename decltype(type)::type>(left, right, units, dscore, dleft, dright, dunits);
  });
}

}  // namespace heed::kernel
