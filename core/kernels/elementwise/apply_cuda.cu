// Elementwise kernels on the GPU.
#include "heed/core/kernels/elementwise/apply.h"

#include <utility>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/cuda/device/view.h"
#include "heed/core/cuda/device/visit.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::Places;

// A thread takes four neighbours where all operands are dense: one load of 16 bytes for f32.
constexpr int together = 4;

template <class T>
using Pack = cuda::Pack<T, together>;

template <class F, class T, class... In>
__device__ Pack<T> apply(const F& f, const Pack<In>&... in) {
  Pack<T> out;
  for (int k = 0; k < together; ++k) out.x[k] = f(in.x[k]...);
  return out;
}

/// out[i] = f(in[i]...) where all are dense and begin at a whole pack.
template <class F, class T, class... In>
__global__ void dense(int64_t size, F f, T* out, const In*... in) {
  const int64_t packs = size / together;
  for (int64_t i = cuda::global_thread(); i < packs; i += cuda::grid_size()) {
    reinterpret_cast<Pack<T>*>(out)[i] = apply<F, T, In...>(f, reinterpret_cast<const Pack<In>*>(in)[i]...);
  }
  const int64_t i = packs * together + cuda::global_thread();
  if (i < size) out[i] = f(in[i]...);
}

template <class F, class T, class... In, size_t... K>
__device__ void apply_at(std::index_sequence<K...>, const int64_t* at, const F& f, T* out, const In*... in) {
  out[at[0]] = f(in[at[K + 1]]...);
}

/// The same with strides; place 0 is that of `out`.
template <class F, class T, class... In>
__global__ void strided(Places<1 + static_cast<int>(sizeof...(In))> places, F f, T* out, const In*... in) {
  for (int64_t i = cuda::global_thread(); i < places.size; i += cuda::grid_size()) {
    const auto at = places.at(i);
    apply_at(std::index_sequence_for<In...>{}, at.of, f, out, in...);
  }
}

/// out = f(in...), element by element. All tensors are of one shape and hold T, but for `In` of the first.
template <class T, class First, class F, class... Tensors>
void each(F f, const Tensor& out, const Tensor& first, const Tensors&... rest) {
  const auto places = cuda::places(out, first, rest...);
  T* to = out.data<T>();
  const auto start = [&](const auto*... in) {
    if (places.dense() && cuda::packs<together>(to) && (cuda::packs<together>(in) && ...)) {
      return cuda::run(dense<F, T, std::remove_cvref_t<decltype(*in)>...>,
                       cuda::line(ceil_div(places.size, together)), places.size, f, to, in...);
    }
    cuda::run(strided<F, T, std::remove_cvref_t<decltype(*in)>...>, cuda::line(places.size), places, f, to,
              in...);
  };
  start(static_cast<const First*>(first.data<First>()), static_cast<const T*>(rest.template data<T>())...);
}

template <class F>
struct Value {
  template <class... T>
  HEED_BOTH auto operator()(T... x) const {
    return F::value(x...);
  }
};

template <class F>
struct Slope {
  template <class T>
  HEED_BOTH T operator()(T x, T y, T dy) const {
    return F::gradient(x, y, dy);
  }
};

template <class T>
struct Line {
  T factor, term;
  HEED_BOTH T operator()(T x) const { return factor * x + term; }
};

struct Plus {
  template <class T>
  HEED_BOTH T operator()(T x, T y) const {
    return y + x;
  }
};

template <class T>
struct Chosen {
  T otherwise;
  HEED_BOTH T operator()(uint8_t keep, T x) const { return keep != 0 ? x : otherwise; }
};

/// bad += number of elements of x that are NaN or infinite: each thread counts in steps of the grid, and each
/// block adds its count once.
template <class T>
__global__ void count_bad(Places<1> places, const T* x, unsigned long long* bad) {
  int found = 0;
  for (int64_t i = cuda::global_thread(); i < places.size; i += cuda::grid_size()) {
    const T value = x[places.at(i).of[0]];
    found += value - value == T(0) ? 0 : 1;
  }
  __shared__ int scratch[cuda::lanes];
  found = cuda::block_sum(found, scratch);
  // Whole numbers: their sum does not depend on the order.
  if (threadIdx.x == 0 && found > 0) atomicAdd(bad, static_cast<unsigned long long>(found));
}

}  // namespace

template <class F>
void Map<F>::cuda(const Tensor& x, const Tensor& y) {
  cuda::visit_real("map", x.dtype(), [&]<class T>(Type<T>) { each<T, T>(Value<F>{}, y, x); });
  Count::add(y.size());
}

template <class F>
void MapBack<F>::cuda(const Tensor& x, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  cuda::visit_real("map", x.dtype(), [&]<class T>(Type<T>) { each<T, T>(Slope<F>{}, dx, x, y, dy); });
  Count::add(dx.size());
}

template <class F>
void Zip<F>::cuda(const Tensor& a, const Tensor& b, const Tensor& out) {
  cuda::visit_real("zip", out.dtype(), [&]<class T>(Type<T>) { each<T, T>(Value<F>{}, out, a, b); });
  Count::add(out.size());
}

void Affine::cuda(const Tensor& x, double scale, double shift, const Tensor& y) {
  cuda::visit_real("affine", x.dtype(), [&]<class T>(Type<T>) {
    each<T, T>(Line<T>{static_cast<T>(scale), static_cast<T>(shift)}, y, x);
  });
  Count::add(y.size());
}

void Accumulate::cuda(const Tensor& x, const Tensor& y) {
  cuda::visit_real("accumulate", y.dtype(), [&]<class T>(Type<T>) { each<T, T>(Plus{}, y, x, y); });
  Count::add(y.size());
}

void Select::cuda(const Tensor& mask, const Tensor& x, double otherwise, const Tensor& y) {
  cuda::visit_real("select", x.dtype(), [&]<class T>(Type<T>) {
    each<T, uint8_t>(Chosen<T>{static_cast<T>(otherwise)}, y, mask, x);
  });
  Count::add(y.size());
}

void CountBad::cuda(const Tensor& x, const Tensor& bad) {
  cuda::visit_real("count_bad", x.dtype(), [&]<class T>(Type<T>) {
    const Places<1> places = cuda::places(x);
    cuda::run(count_bad<T>, cuda::line(places.size, 256, 1024), places, x.data<T>(),
              reinterpret_cast<unsigned long long*>(bad.data<int64_t>()));
  });
  Count::add(x.size());
}

template void Map<Exp>::cuda(const Tensor&, const Tensor&);
template void Map<Log>::cuda(const Tensor&, const Tensor&);
template void Map<Tanh>::cuda(const Tensor&, const Tensor&);
template void Map<Sigmoid>::cuda(const Tensor&, const Tensor&);
template void Map<Relu>::cuda(const Tensor&, const Tensor&);
template void Map<Gelu>::cuda(const Tensor&, const Tensor&);
template void Map<GeluTanh>::cuda(const Tensor&, const Tensor&);
template void Map<Silu>::cuda(const Tensor&, const Tensor&);
template void Map<Elu>::cuda(const Tensor&, const Tensor&);
template void Map<Softplus>::cuda(const Tensor&, const Tensor&);
template void Map<Sine>::cuda(const Tensor&, const Tensor&);
template void Map<Cosine>::cuda(const Tensor&, const Tensor&);
template void Map<Square>::cuda(const Tensor&, const Tensor&);
template void Map<Sqrt>::cuda(const Tensor&, const Tensor&);
template void Map<Reciprocal>::cuda(const Tensor&, const Tensor&);
template void Map<Abs>::cuda(const Tensor&, const Tensor&);

template void MapBack<Exp>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Log>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Tanh>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Sigmoid>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Relu>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Gelu>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<GeluTanh>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Silu>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Elu>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Softplus>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Sine>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Cosine>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Square>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Sqrt>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Reciprocal>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
template void MapBack<Abs>::cuda(const Tensor&, const Tensor&, const Tensor&, const Tensor&);

template void Zip<Add>::cuda(const Tensor&, const Tensor&, const Tensor&);
template void Zip<Subtract>::cuda(const Tensor&, const Tensor&, const Tensor&);
template void Zip<Multiply>::cuda(const Tensor&, const Tensor&, const Tensor&);
template void Zip<Divide>::cuda(const Tensor&, const Tensor&, const Tensor&);
template void Zip<Maximum>::cuda(const Tensor&, const Tensor&, const Tensor&);
template void Zip<Minimum>::cuda(const Tensor&, const Tensor&, const Tensor&);
template void Zip<NotLess>::cuda(const Tensor&, const Tensor&, const Tensor&);

}  // namespace heed::kernel
