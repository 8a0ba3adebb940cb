// Elementwise kernels on the CPU.
#include "heed/core/kernels/elementwise/apply.h"

#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>

#include "heed/core/kernels/elementwise/activation_types.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// A tensor that holds T, as an argument of apply_elementwise().
template <class T>
struct Operand {
  const Tensor& tensor;
  const T* data;
  explicit Operand(const Tensor& x) : tensor(x), data(x.data<T>()) {}
};

/// out = f(in...) element by element, in parallel over runs along the inner axis. All tensors have the shape
/// of out, which holds T.
template <class T, class F, class... In>
void apply_elementwise(const F& f, const Tensor& out, const Operand<In>&... in) {
  const StridedLoop<1 + sizeof...(In)> loop(out.shape(), {&out.strides(), &in.tensor.strides()...});
  const auto steps = loop.steps;
  const bool contiguous = std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
  T* const out_data = out.data<T>();
  const auto on_runs = [&]<size_t... K>(std::index_sequence<K...>) {
    for_runs(loop, [&](const auto& offsets, int64_t count) {
      T* const run = out_data + offsets[0];
      if (contiguous) return apply_contiguous(f, count, run, in.data + offsets[K + 1]...);
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i)
        run[i * steps[0]] = f(in.data[offsets[K + 1] + i * steps[K + 1]]...);
    });
  };
  on_runs(std::index_sequence_for<In...>{});
  Count::add(out.size());
}

}  // namespace

template <class F>
template <Isa>
void Map<F>::cpu(const Tensor& x, const Tensor& y) {
  visit_float("map", x.dtype(),
              [&]<class T>(Type<T>) { apply_elementwise<T>(elementwise::Value<F>{}, y, Operand<T>(x)); });
}

template <class F>
template <Isa>
void MapBack<F>::cpu(const Tensor& x, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  visit_float("map", x.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<T>(elementwise::Gradient<F>{}, dx, Operand<T>(x), Operand<T>(y), Operand<T>(dy));
  });
}

/// out[i] = F(a[i], b[i]) for every element, in parallel over runs along the inner axis. An operand of step
/// 0 repeats one number along a run: it is read once, so that the loop becomes vector code.
template <class F>
template <Isa>
void Zip<F>::cpu(const Tensor& a, const Tensor& b, const Tensor& out) {
  visit_activation("zip", out.dtype(), [&]<class T>(Type<T>) {
    const StridedLoop<3> loop(out.shape(), {&a.strides(), &b.strides(), &out.strides()});
    const int64_t a_step = loop.steps[0], b_step = loop.steps[1];
    const T *a_data = a.data<T>(), *b_data = b.data<T>();
    for_runs(loop, [&](const auto& offsets, int64_t count) {
      const T *x = a_data + offsets[0], *y = b_data + offsets[1];
      T* run = out.data<T>() + offsets[2];
      if (a_step == 1 && b_step == 1) {
        apply_contiguous(elementwise::Value<F>{}, count, run, x, y);
      } else if (a_step == 1 && b_step == 0) {
        apply_contiguous([fixed = *y](T left) { return F::value(left, fixed); }, count, run, x);
      } else if (a_step == 0 && b_step == 1) {
        apply_contiguous([fixed = *x](T right) { return F::value(fixed, right); }, count, run, y);
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) run[i] = F::value(x[i * a_step], y[i * b_step]);
      }
    });
  });
  Count::add(out.size());
}

template <>
void Affine::cpu<target_isa>(const Tensor& x, double scale, double shift, const Tensor& y) {
  visit_float("affine", x.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<T>(elementwise::ScaleAndShift<T>{static_cast<T>(scale), static_cast<T>(shift)}, y,
                         Operand<T>(x));
  });
}

template <>
void Accumulate::cpu<target_isa>(const Tensor& x, const Tensor& y) {
  visit_activation("accumulate", y.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<T>(elementwise::Increment{}, y, Operand<T>(x), Operand<T>(y));
  });
}

template <>
void Select::cpu<target_isa>(const Tensor& mask, const Tensor& x, double otherwise, const Tensor& y) {
  visit_float("where", x.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<T>(elementwise::SelectOr<T>{static_cast<T>(otherwise)}, y, Operand<uint8_t>(mask),
                         Operand<T>(x));
  });
}

template <>
void Choose::cpu<target_isa>(const Tensor& mask, const Tensor& a, const Tensor& b, const Tensor& y) {
  visit_float("where", y.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<T>(elementwise::EitherOf{}, y, Operand<uint8_t>(mask), Operand<T>(a), Operand<T>(b));
  });
}

template <>
void Power::cpu<target_isa>(const Tensor& x, double exponent, const Tensor& y) {
  visit_float("pow", x.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<T>(elementwise::RaisedTo<T>{static_cast<T>(exponent)}, y, Operand<T>(x));
  });
}

template <class F>
template <Isa>
void Compare<F>::cpu(const Tensor& a, const Tensor& b, const Tensor& out) {
  visit_comparable(a.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<uint8_t>(elementwise::Holds<F>{}, out, Operand<T>(a), Operand<T>(b));
  });
}

/// count += number of i where x[i] is NaN or infinite, in parallel over runs along the inner axis.
template <>
void CountNonFinite::cpu<target_isa>(const Tensor& x, const Tensor& count) {
  visit_float("count_non_finite", x.dtype(), [&]<class T>(Type<T>) {
    const StridedLoop<1> loop(x.shape(), {&x.strides()});
    const int64_t step = loop.steps[0];
    std::atomic<int64_t> total{0};  // an integer, so the sum does not depend on the order of runs
    for_runs(loop, [&](const auto& offsets, int64_t length) {
      const T* run = x.data<T>() + offsets[0];
      int64_t count_of_run = 0;
      for (int64_t i = 0; i < length; ++i) count_of_run += (run[i * step] - run[i * step] == T(0)) ? 0 : 1;
      if (count_of_run > 0) total.fetch_add(count_of_run, std::memory_order_relaxed);
    });
    *count.data<int64_t>() += total.load();
  });
  Count::add(x.size());
}

namespace {

/// Addresses of the kernels of all functions, which makes the compiler instantiate them.
template <class... Unary, class... Binary, class... Relation>
constexpr auto all_kernels(FunctionList<Unary...>, FunctionList<Binary...>, FunctionList<Relation...>) {
  return std::tuple{&Map<Unary>::template cpu<target_isa>..., &MapBack<Unary>::template cpu<target_isa>...,
                    &Zip<Binary>::template cpu<target_isa>...,
                    &Compare<Relation>::template cpu<target_isa>...};
}
[[maybe_unused, gnu::used]] const auto compiled =
    all_kernels(UnaryFunctions{}, BinaryFunctions{}, Comparisons{});

}  // namespace

}  // namespace heed::kernel
