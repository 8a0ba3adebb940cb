// Random fills on the CPU.
#include "heed/core/kernels/elementwise/random.h"
#include "heed/core/kernels/elementwise/random_numbers.h"

#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Calls make(block, to) for each block of numbers of x, the last one through a buffer.
template <class T, class Make>
void fill_blocks(const Tensor& x, const Draw& draw, Make&& make) {
  constexpr int64_t numbers = 16 / static_cast<int64_t>(sizeof(T));
  const uint64_t high = Draw::high(draw.stream, *draw.tick.data<int64_t>());
  T* to = x.data<T>();
  const int64_t size = x.size();
  parallel_rows(ceil_div(size, numbers), light_grain / 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T made[numbers];
      make(Philox::at(draw.seed, static_cast<uint64_t>(i), high), made);
      std::copy_n(made, std::min(numbers, size - i * numbers), to + i * numbers);
    }
  });
  Count::add(size);
}

}  // namespace

template <>
void FillNormal::cpu<here>(const Tensor& x, double mean, double deviation, const Draw& draw) {
  visit_float("fill_normal", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    fill_blocks<T>(x, draw, [&](const Philox& block, T* to) {
      normals(block, static_cast<T>(mean), static_cast<T>(deviation), to);
    });
  });
}

template <>
void FillUniform::cpu<here>(const Tensor& x, double low, double high, const Draw& draw) {
  visit_float("fill_uniform", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    fill_blocks<T>(x, draw, [&](const Philox& block, T* to) {
      uniforms(block, static_cast<T>(low), static_cast<T>(high), to);
    });
  });
}

template <>
void Advance::cpu<here>(const Tensor& tick) {
  ++*tick.data<int64_t>();
}

}  // namespace heed::kernel
