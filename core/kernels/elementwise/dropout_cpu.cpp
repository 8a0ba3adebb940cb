// Dropout on the CPU, alone and with the work around it. Fused kernels go over a chunk of elements several
// times while it is in the cache, so each has the bits of the kernels that it replaces.
#include "heed/core/kernels/elementwise/dropout.h"

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "heed/core/kernels/elementwise/activation_types.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/dropped_elements.h"
#include "heed/core/kernels/simd/strided_loops.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int64_t chunk = 2048;  ///< elements that stay in the first cache with those of two more tensors
static_assert(light_grain % chunk == 0 && chunk % (simd::KeepBits::block * simd::KeepBits::lanes) == 0,
              "chunks are whole vectors of blocks");

/// Some of the elements of tensors of T.
template <class T>
struct Chunk {
  int64_t first, count;
  Computed<T> buffers[3][buffer_size<T>(chunk) + 1];

  /// Its elements of x in the type of computation; n < 2 chooses a buffer, where one is needed.
  const Computed<T>* read(const Tensor& x, int n) { return computed(x.data<T>() + first, count, buffers[n]); }
};

/// Calls f(drop, part, to) in parallel for chunks `part` of a dropout; f writes to[0 .. part.count - 1],
/// which go to the elements of `out`. drop(first, count, x, y) keeps all elements where mask.p is 0.
template <class F>
void drop_chunks(const Tensor& out, const DropoutMask& mask, F&& f) {
  visit_activation("dropout", out.dtype(), [&]<class T>(Type<T>) {
    const DroppedElements<Computed<T>> dropped(out.shape(), mask);
    const auto drop = [&](int64_t first, int64_t count, const Computed<T>* x, Computed<T>* y) {
      if (mask.p > 0) return dropped(first, count, x, y);
      if (x != y) std::copy_n(x, count, y);
    };
    parallel_rows(out.size(), light_grain, [&](int64_t begin, int64_t end) {
      Chunk<T> part;
      for (part.first = begin; part.first < end; part.first += chunk) {
        part.count = std::min(chunk, end - part.first);
        store_rounded(out.data<T>() + part.first, part.count, part.buffers[2],
                      [&](Computed<T>* to) { f(drop, part, to); });
      }
    });
  });
  Count::add(out.size());
}

}  // namespace

/// y[i] = x[i] / (1 - p) where the 16 bits of element i are at least the threshold, else 0.
template <>
void Dropout::cpu<target_isa>(const Tensor& x, const DropoutMask& mask, const Tensor& y) {
  drop_chunks(y, mask, [&](const auto& drop, auto& part, auto* to) {
    if (x.dtype() == y.dtype()) return drop(part.first, part.count, part.read(x, 0), to);
    if constexpr (std::is_same_v<decltype(to), float*>) {
      const float* from = x.dtype() == DType::bf16
                              ? computed(x.data<bf16>() + part.first, part.count, /*buffer=*/to)
                              : x.data<float>() + part.first;
      drop(part.first, part.count, from, to);
    }
  });
}

template <>
void AddDropout::cpu<target_isa>(const Tensor& x, const Tensor& branch, const DropoutMask& mask,
                                 const Tensor& y) {
  drop_chunks(y, mask, [&](const auto& drop, auto& part, auto* to) {
    drop(part.first, part.count, part.read(branch, 0), to);
    apply_contiguous(elementwise::Value<Add>{}, part.count, to, part.read(x, 1), to);
  });
}

template <class F>
template <Isa>
void ActivationDropout<F>::cpu(const Tensor& x, const DropoutMask& mask, const Tensor& y) {
  drop_chunks(y, mask, [&](const auto& drop, auto& part, auto* to) {
    apply_contiguous(elementwise::Value<F>{}, part.count, to, part.read(x, 0));
    drop(part.first, part.count, to, to);
  });
}

template <class F>
template <Isa>
void ActivationDropoutBack<F>::cpu(const Tensor& x, const Tensor& dy, const DropoutMask& mask,
                                   const Tensor& dx) {
  drop_chunks(dx, mask, [&](const auto& drop, auto& part, auto* to) {
    const auto* from = part.read(x, 0);
    drop(part.first, part.count, part.read(dy, 1), to);
    apply_contiguous(elementwise::Gradient<F>{}, part.count, to, from, from, to);
  });
}

namespace {

/// Addresses of the kernels of all functions, which makes the compiler instantiate them.
template <class... F>
constexpr auto all_dropouts(FunctionList<F...>) {
  return std::tuple{&ActivationDropout<F>::template cpu<target_isa>...,
                    &ActivationDropoutBack<F>::template cpu<target_isa>...};
}
[[maybe_unused, gnu::used]] const auto compiled_dropouts = all_dropouts(DropoutActivations{});

}  // namespace

}  // namespace heed::kernel
