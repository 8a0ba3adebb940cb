// Elementwise kernels on the GPU.
#include "heed/core/kernels/elementwise/apply.h"

#include <tuple>
#include <utility>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/cuda/device/strided_offsets.h"
#include "heed/core/kernels/elementwise/activation_types.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::StridedOffsets;

/// Consecutive elements that a thread handles at once where all operands are contiguous: 16 bytes of f32.
constexpr int pack_size = 4;

template <class T>
using Pack = cuda::Pack<T, pack_size>;

/// out.x[k] = f(in.x[k]...) for the elements k of a pack.
template <class F, class T, class... In>
__device__ Pack<T> apply_to_packs(const F& f, const Pack<In>&... in) {
  Pack<T> out;
  for (int k = 0; k < pack_size; ++k) out.x[k] = f(in.x[k]...);
  return out;
}

/// out[i] = f(in[i]...) for contiguous operands that begin at a pack boundary: a thread handles whole packs
/// in steps of the grid, and at most one of the elements after the last pack.
template <class F, class T, class... In>
__global__ void apply_contiguous(int64_t size, F f, T* out, const In*... in) {
  const int64_t packs = size / pack_size;
  for (int64_t i = cuda::global_thread(); i < packs; i += cuda::grid_size()) {
    reinterpret_cast<Pack<T>*>(out)[i] =
        apply_to_packs<F, T, In...>(f, reinterpret_cast<const Pack<In>*>(in)[i]...);
  }
  const int64_t i = packs * pack_size + cuda::global_thread();
  if (i < size) out[i] = f(in[i]...);
}

/// out[offsets[0]] = f(in[offsets[K + 1]]...), the element of each operand K + 1 at its own offset.
template <class F, class T, class... In, size_t... K>
__device__ void apply_at(std::index_sequence<K...>, const int64_t* offsets, const F& f, T* out,
                         const In*... in) {
  out[offsets[0]] = f(in[offsets[K + 1]]...);
}

/// out[i] = f(in[i]...) for operands of any strides: a thread handles single elements in steps of the grid.
/// Operand 0 of `elements` is `out`.
template <class F, class T, class... In>
__global__ void apply_strided(StridedOffsets<1 + static_cast<int>(sizeof...(In))> elements, F f, T* out,
                              const In*... in) {
  for (int64_t i = cuda::global_thread(); i < elements.size; i += cuda::grid_size()) {
    const auto offsets = elements.at(i);
    apply_at(std::index_sequence_for<In...>{}, offsets.of_operand, f, out, in...);
  }
}

/// out = f(first, rest...) element by element. All tensors have one shape; `out` holds T, `first` First, and
/// the others Rest.
template <class T, class First = T, class Rest = T, class F, class... Tensors>
void apply_elementwise(F f, const Tensor& out, const Tensor& first, const Tensors&... rest) {
  const auto elements = cuda::strided_offsets(out, first, rest...);
  T* const out_data = out.data<T>();
  const auto launch_kernel = [&](const auto*... in) {
    if (elements.all_contiguous() && cuda::packs<pack_size>(out_data) &&
        (cuda::packs<pack_size>(in) && ...)) {
      return cuda::run(apply_contiguous<F, T, std::remove_cvref_t<decltype(*in)>...>,
                       cuda::grid_over(ceil_div(elements.size, pack_size)), elements.size, f, out_data,
                       in...);
    }
    cuda::run(apply_strided<F, T, std::remove_cvref_t<decltype(*in)>...>, cuda::grid_over(elements.size),
              elements, f, out_data, in...);
  };
  launch_kernel(static_cast<const First*>(first.data<First>()),
                static_cast<const Rest*>(rest.template data<Rest>())...);
  Count::add(out.size());
}

/// total += number of elements of x that are NaN or infinite: each thread counts in steps of the grid, and
/// each block adds its count once.
template <class T>
__global__ void count_non_finite(StridedOffsets<1> elements, const T* x, unsigned long long* total) {
  int count = 0;
  for (int64_t i = cuda::global_thread(); i < elements.size; i += cuda::grid_size()) {
    const T value = x[elements.at(i)[0]];
    count += value - value == T(0) ? 0 : 1;
  }
  __shared__ int scratch[cuda::lanes];
  count = cuda::block_sum(count, scratch);
  // Integers: their sum does not depend on the order of blocks.
  if (threadIdx.x == 0 && count > 0) atomicAdd(total, static_cast<unsigned long long>(count));
}

}  // namespace

template <class F>
void Map<F>::cuda(const Tensor& x, const Tensor& y) {
  visit_float("map", x.dtype(),
              [&]<class T>(Type<T>) { apply_elementwise<T>(elementwise::Value<F>{}, y, x); });
}

template <class F>
void MapBack<F>::cuda(const Tensor& x, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  visit_float("map", x.dtype(),
              [&]<class T>(Type<T>) { apply_elementwise<T>(elementwise::Gradient<F>{}, dx, x, y, dy); });
}

template <class F>
void Zip<F>::cuda(const Tensor& a, const Tensor& b, const Tensor& out) {
  visit_activation("zip", out.dtype(),
              [&]<class T>(Type<T>) { apply_elementwise<T>(elementwise::Value<F>{}, out, a, b); });
}

void Affine::cuda(const Tensor& x, double scale, double shift, const Tensor& y) {
  visit_float("affine", x.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<T>(elementwise::ScaleAndShift<T>{static_cast<T>(scale), static_cast<T>(shift)}, y, x);
  });
}

void Accumulate::cuda(const Tensor& x, const Tensor& y) {
  visit_activation("accumulate", y.dtype(),
              [&]<class T>(Type<T>) { apply_elementwise<T>(elementwise::Increment{}, y, x, y); });
}

void Select::cuda(const Tensor& mask, const Tensor& x, double otherwise, const Tensor& y) {
  visit_float("where", x.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<T, uint8_t>(elementwise::SelectOr<T>{static_cast<T>(otherwise)}, y, mask, x);
  });
}

void Choose::cuda(const Tensor& mask, const Tensor& a, const Tensor& b, const Tensor& y) {
  visit_float("where", y.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<T, uint8_t>(elementwise::EitherOf{}, y, mask, a, b);
  });
}

void Power::cuda(const Tensor& x, double exponent, const Tensor& y) {
  visit_float("pow", x.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<T>(elementwise::RaisedTo<T>{static_cast<T>(exponent)}, y, x);
  });
}

template <class F>
void Compare<F>::cuda(const Tensor& a, const Tensor& b, const Tensor& out) {
  visit_comparable(a.dtype(), [&]<class T>(Type<T>) {
    apply_elementwise<uint8_t, T, T>(elementwise::Holds<F>{}, out, a, b);
  });
}

void CountNonFinite::cuda(const Tensor& x, const Tensor& count) {
  visit_float("count_non_finite", x.dtype(), [&]<class T>(Type<T>) {
    const StridedOffsets<1> elements = cuda::strided_offsets(x);
    constexpr int threads = 256, max_blocks = 1024;
    cuda::run(count_non_finite<T>, cuda::grid_over(elements.size, threads, max_blocks), elements, x.data<T>(),
              reinterpret_cast<unsigned long long*>(count.data<int64_t>()));
  });
  Count::add(x.size());
}

namespace {

/// Addresses of the kernels of all functions, which makes the compiler instantiate them.
template <class... Unary, class... Binary, class... Relation>
constexpr auto all_kernels(FunctionList<Unary...>, FunctionList<Binary...>, FunctionList<Relation...>) {
  return std::tuple{&Map<Unary>::cuda..., &MapBack<Unary>::cuda..., &Zip<Binary>::cuda...,
                    &Compare<Relation>::cuda...};
}
[[maybe_unused, gnu::used]] const auto compiled =
    all_kernels(UnaryFunctions{}, BinaryFunctions{}, Comparisons{});

}  // namespace

}  // namespace heed::kernel
