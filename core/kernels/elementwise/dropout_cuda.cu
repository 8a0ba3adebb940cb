// Dropout on a GPU, alone and with the work around it: one thread for the 16 elements of a Philox block.
#include "heed/core/kernels/elementwise/dropout.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/pack.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/elementwise/activation_types.h"
#include "heed/core/kernels/elementwise/dropout_device.h"
#include "heed/core/kernels/elementwise/functions.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int block_size = DropoutBits::block;

template <class T>
using Elements = cuda::Pack<T, block_size>;

/// The first `count` of 16 elements, in 16-byte loads where they are `whole`; zeros behind them.
template <class T>
__device__ Elements<T> load(const T* from, bool whole, int count) {
  if (whole) return *reinterpret_cast<const Elements<T>*>(from);
  Elements<T> elements = {};
  for (int e = 0; e < block_size; ++e) {
    if (e < count) elements.x[e] = from[e];
  }
  return elements;
}

/// out.x[e] = f(bit e of mask, in.x[e]...) for 16 elements.
template <class F, class T, class... In>
__device__ Elements<T> apply_to_elements(const F& f, uint32_t mask, const Elements<In>&... in) {
  Elements<T> out;
  for (int e = 0; e < block_size; ++e) out.x[e] = f(((mask >> e) & 1U) != 0, in.x[e]...);
  return out;
}

/// out[row, c] = f(kept, in[row, c]...) for `rows` rows of `width` elements; `kept` is the bit of the
/// element. A thread handles 16 elements of a row; `aligned`: rows begin at multiples of 16 bytes.
template <class F, class T, class... In>
__global__ void __launch_bounds__(cuda::block)
    drop(F f, DropoutBits bits, int64_t rows, int64_t width, bool aligned, T* out, const In*... in) {
  const uint64_t high = bits.high();
  const int64_t blocks_per_row = (width + block_size - 1) / block_size;
  for (int64_t item = cuda::global_thread(); item < rows * blocks_per_row; item += cuda::grid_size()) {
    const int64_t row = rows == 1 ? 0 : item / blocks_per_row;
    const int64_t column = (item - row * blocks_per_row) * block_size, first = row * width + column;
    const int count = static_cast<int>(std::min<int64_t>(width - column, block_size));
    const bool whole = aligned && count == block_size;
    const uint32_t mask = bits.keep_mask(high, row, width, column, count);
    const Elements<T> elements = apply_to_elements<F, T, In...>(f, mask, load(in + first, whole, count)...);
    if (whole) {
      *reinterpret_cast<Elements<T>*>(out + first) = elements;
    } else {
      for (int e = 0; e < block_size; ++e) {
        if (e < count) out[first + e] = elements.x[e];
      }
    }
  }
}

/// What drop() does with an element x, in the type T of computation: dropout itself.
template <class T>
struct Dropped {
  T scale;
  __device__ T operator()(bool kept, T x) const { return kept ? x * scale : T(0); }
};

/// x + dropout(branch).
template <class T>
struct Added {
  T scale;
  __device__ T operator()(bool kept, T x, T branch) const { return kept ? x + branch * scale : x; }
};

/// dropout(F(x)).
template <class T, class F>
struct DroppedValue {
  T scale;
  __device__ T operator()(bool kept, T x) const { return kept ? F::value(x) * scale : T(0); }
};

/// F'(x) dropout(dy).
template <class T, class F>
struct DroppedGradient {
  T scale;
  __device__ T operator()(bool kept, T x, T dy) const {
    return kept ? F::gradient(x, x, dy * scale) : F::gradient(x, x, T(0));
  }
};

/// out = f(kept, in...), element by element, for out of T and inputs of In.
template <class T, class In = T, class F, class... Tensors>
void drop_elements(F f, const DropoutMask& mask, const Tensor& out, const Tensors&... tensors) {
  const bool is_packed = static_cast<bool>(mask.places.places);
  const int64_t width = is_packed ? out.extent(-1) : out.size(), rows = is_packed ? out.extent(-2) : 1;
  constexpr auto smaller = static_cast<int64_t>(std::min(sizeof(T), sizeof(In)));
  const bool has_whole_rows = rows == 1 || width * smaller % 16 == 0;
  T* const out_data = out.data<T>();
  const auto launch_kernel = [&](const auto*... in) {
    const bool aligned =
        has_whole_rows && cuda::packs<block_size>(out_data) && (cuda::packs<block_size>(in) && ...);
    cuda::run(drop<F, T, std::remove_cvref_t<decltype(*in)>...>,
              cuda::grid_over(rows * ceil_div(width, block_size)), f, DropoutBits(out.shape(), mask), rows,
              width, aligned, out_data, in...);
  };
  launch_kernel(static_cast<const In*>(tensors.template data<In>())...);
  Count::add(out.size());
}

template <class T>
T scale_of(const DropoutMask& mask) {
  return static_cast<T>(dropout_scale(mask.p));
}

}  // namespace

/// y with one thread per 16 elements. Where this process has part of a batch, its elements follow those of
/// other processes in the numbering of random bits.
void Dropout::cuda(const Tensor& x, const DropoutMask& mask, const Tensor& y) {
  if (x.dtype() != y.dtype()) {
    const Dropped<float> dropped{scale_of<float>(mask)};
    x.dtype() == DType::bf16 ? drop_elements<float, bf16>(dropped, mask, y, x)
                             : drop_elements<bf16, float>(dropped, mask, y, x);
    return;
  }
  visit_activation("dropout", x.dtype(), [&]<class T>(Type<T>) {
    drop_elements<T>(Dropped<Computed<T>>{scale_of<Computed<T>>(mask)}, mask, y, x);
  });
}

void AddDropout::cuda(const Tensor& x, const Tensor& branch, const DropoutMask& mask, const Tensor& y) {
  visit_activation("add_dropout", x.dtype(), [&]<class T>(Type<T>) {
    drop_elements<T>(Added<Computed<T>>{scale_of<Computed<T>>(mask)}, mask, y, x, branch);
  });
}

template <class F>
void ActivationDropout<F>::cuda(const Tensor& x, const DropoutMask& mask, const Tensor& y) {
  visit_activation("dropout", x.dtype(), [&]<class T>(Type<T>) {
    drop_elements<T>(DroppedValue<Computed<T>, F>{scale_of<Computed<T>>(mask)}, mask, y, x);
  });
}

template <class F>
void ActivationDropoutBack<F>::cuda(const Tensor& x, const Tensor& dy, const DropoutMask& mask,
                                    const Tensor& dx) {
  visit_activation("dropout", x.dtype(), [&]<class T>(Type<T>) {
    drop_elements<T>(DroppedGradient<Computed<T>, F>{scale_of<Computed<T>>(mask)}, mask, dx, x, dy);
  });
}

namespace {

/// Addresses of the kernels of all functions, which makes the compiler instantiate them.
template <class... F>
constexpr auto all_dropouts(FunctionList<F...>) {
  return std::tuple{&ActivationDropout<F>::cuda..., &ActivationDropoutBack<F>::cuda...};
}
[[maybe_unused, gnu::used]] const auto compiled_dropouts = all_dropouts(DropoutActivations{});

}  // namespace

}  // namespace heed::kernel
