// Elementwise kernels on the CPU.
#include "heed/core/kernels/elementwise/apply.h"

#include "heed/core/kernels/simd/simd.h"
#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

// One call that stays a call inside these loops would keep them from becoming vector code.

template <class F, class T>
[[gnu::flatten]] void values(const T* x, T* y, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = F::value(x[i]);
}

template <class F, class T>
[[gnu::flatten]] void gradients(const T* x, const T* y, const T* dy, T* dx, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) dx[i] = F::gradient(x[i], y[i], dy[i]);
}

}  // namespace

/// y[i] = F(x[i]) for every element, in parallel over runs along the inner axis.
template <class F>
template <Isa>
void Map<F>::cpu(const Tensor& x, const Tensor& y) {
  visit_float("map", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const StridedLoop<2> walk(y.shape(), {&x.strides(), &y.strides()});
    const int64_t step = walk.steps[0];
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for_runs(walk, [&](const auto& at, int64_t count) {
      const T* a = from + at[0];
      T* out = to + at[1];
      if (step == 1) {
        values<F>(a, out, count);
      } else {
        for (int64_t i = 0; i < count; ++i) out[i] = F::value(a[i * step]);
      }
    });
  });
  Count::add(y.size());
}

/// dx[i] = F'(x[i]) dy[i], where F may use y[i] = F(x[i]) too; in parallel over runs along the inner axis.
template <class F>
template <Isa>
void MapBack<F>::cpu(const Tensor& x, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  visit_float("map", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const StridedLoop<4> walk(dx.shape(), {&x.strides(), &y.strides(), &dy.strides(), &dx.strides()});
    const auto steps = walk.steps;
    const bool dense = steps[0] == 1 && steps[1] == 1 && steps[2] == 1;
    const T* px = x.data<T>();
    const T* py = y.data<T>();
    const T* pdy = dy.data<T>();
    T* pdx = dx.data<T>();
    for_runs(walk, [&](const auto& at, int64_t count) {
      const T* a = px + at[0];
      const T* b = py + at[1];
      const T* g = pdy + at[2];
      T* out = pdx + at[3];
      if (dense) {
        gradients<F>(a, b, g, out, count);
      } else {
        for (int64_t i = 0; i < count; ++i)
          out[i] = F::gradient(a[i * steps[0]], b[i * steps[1]], g[i * steps[2]]);
      }
    });
  });
  Count::add(dx.size());
}

/// out[i] = F(a[i], b[i]) for every element, in parallel over runs along the inner axis. A step of 0 repeats
/// one number along a run.
template <class F>
template <Isa>
void Zip<F>::cpu(const Tensor& a, const Tensor& b, const Tensor& out) {
  visit_float("zip", out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const StridedLoop<3> walk(out.shape(), {&a.strides(), &b.strides(), &out.strides()});
    const int64_t left = walk.steps[0];
    const int64_t right = walk.steps[1];
    const T* pa = a.data<T>();
    const T* pb = b.data<T>();
    T* po = out.data<T>();
    for_runs(walk, [&](const auto& at, int64_t count) {
      const T* x = pa + at[0];
      const T* y = pb + at[1];
      T* to = po + at[2];
      if (left == 1 && right == 1) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) to[i] = F::value(x[i], y[i]);
      } else if (left == 1 && right == 0) {
        const T fixed = *y;
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) to[i] = F::value(x[i], fixed);
      } else if (left == 0 && right == 1) {
        const T fixed = *x;
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) to[i] = F::value(fixed, y[i]);
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) to[i] = F::value(x[i * left], y[i * right]);
      }
    });
  });
  Count::add(out.size());
}

/// y[i] = scale x[i] + shift for every element, in parallel over runs along the inner axis.
template <>
void Affine::cpu<here>(const Tensor& x, double scale, double shift, const Tensor& y) {
  visit_float("affine", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T factor = static_cast<T>(scale);
    const T term = static_cast<T>(shift);
    const StridedLoop<2> walk(y.shape(), {&x.strides(), &y.strides()});
    const auto steps = walk.steps;
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for_runs(walk, [&](const auto& at, int64_t count) {
      const T* a = from + at[0];
      T* out = to + at[1];
      if (steps[0] == 1 && steps[1] == 1) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) out[i] = factor * a[i] + term;
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) out[i * steps[1]] = factor * a[i * steps[0]] + term;
      }
    });
  });
  Count::add(y.size());
}

/// y[i] += x[i] for every element, in parallel over runs along the inner axis.
template <>
void Accumulate::cpu<here>(const Tensor& x, const Tensor& y) {
  visit_float("accumulate", y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const StridedLoop<2> walk(y.shape(), {&x.strides(), &y.strides()});
    const auto steps = walk.steps;
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for_runs(walk, [&](const auto& at, int64_t count) {
      const T* a = from + at[0];
      T* out = to + at[1];
      if (steps[0] == 1 && steps[1] == 1) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) out[i] += a[i];
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) out[i * steps[1]] += a[i * steps[0]];
      }
    });
  });
  Count::add(y.size());
}

/// y[i] = x[i] where mask[i] is not zero, else `otherwise`; in parallel over runs along the inner axis.
template <>
void Select::cpu<here>(const Tensor& mask, const Tensor& x, double otherwise, const Tensor& y) {
  visit_float("select", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T other = static_cast<T>(otherwise);
    const StridedLoop<3> walk(y.shape(), {&mask.strides(), &x.strides(), &y.strides()});
    const auto steps = walk.steps;
    const uint8_t* masks = mask.data<uint8_t>();
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for_runs(walk, [&](const auto& at, int64_t count) {
      const uint8_t* keep = masks + at[0];
      const T* a = from + at[1];
      T* out = to + at[2];
      if (steps[0] == 1 && steps[1] == 1 && steps[2] == 1) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) out[i] = keep[i] != 0 ? a[i] : other;
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) {
          out[i * steps[2]] = keep[i * steps[0]] != 0 ? a[i * steps[1]] : other;
        }
      }
    });
  });
  Count::add(y.size());
}

/// bad += number of i where x[i] is NaN or infinite; in parallel over runs along the inner axis.
template <>
void CountBad::cpu<here>(const Tensor& x, const Tensor& bad) {
  visit_float("count_bad", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const StridedLoop<1> walk(x.shape(), {&x.strides()});
    const int64_t step = walk.steps[0];
    const T* from = x.data<T>();
    std::atomic<int64_t> total{0};  // whole numbers: their sum does not depend on the order
    for_runs(walk, [&](const auto& at, int64_t count) {
      const T* a = from + at[0];
      int64_t found = 0;
      for (int64_t i = 0; i < count; ++i) found += (a[i * step] - a[i * step] == T(0)) ? 0 : 1;
      if (found > 0) total.fetch_add(found, std::memory_order_relaxed);
    });
    *bad.data<int64_t>() += total.load();
  });
  Count::add(x.size());
}

template void Map<Exp>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Log>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Tanh>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Sigmoid>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Relu>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Gelu>::cpu<here>(const Tensor&, const Tensor&);
template void Map<GeluTanh>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Silu>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Elu>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Softplus>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Sine>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Cosine>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Square>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Sqrt>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Reciprocal>::cpu<here>(const Tensor&, const Tensor&);
template void Map<Abs>::cpu<here>(const Tensor&, const Tensor&);

template void MapBack<Exp>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Log>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Tanh>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Sigmoid>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Relu>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Gelu>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<GeluTanh>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Silu>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Elu>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Softplus>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Sine>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Cosine>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Square>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Sqrt>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Reciprocal>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Abs>::cpu<here>(const Tensor&, const Tensor&, const Tensor&, const Tensor&);

template void Zip<Add>::cpu<here>(const Tensor&, const Tensor&, const Tensor&);
template void Zip<Subtract>::cpu<here>(const Tensor&, const Tensor&, const Tensor&);
template void Zip<Multiply>::cpu<here>(const Tensor&, const Tensor&, const Tensor&);
template void Zip<Divide>::cpu<here>(const Tensor&, const Tensor&, const Tensor&);
template void Zip<Maximum>::cpu<here>(const Tensor&, const Tensor&, const Tensor&);
template void Zip<Minimum>::cpu<here>(const Tensor&, const Tensor&, const Tensor&);
template void Zip<NotLess>::cpu<here>(const Tensor&, const Tensor&, const Tensor&);

}  // namespace heed::kernel
