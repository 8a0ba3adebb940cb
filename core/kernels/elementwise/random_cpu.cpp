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

/// Fills x with the numbers that make(block, numbers) writes for each Philox block. One task is some blocks.
template <class T, class Make>
void fill_blocks(const Tensor& x, const Draw& draw, Make&& make) {
  constexpr int64_t n = numbers_per_block<T>;
  const uint64_t high = Draw::high(draw.stream, *draw.tick.data<int64_t>());
  const int64_t size = x.size();
  parallel_rows(ceil_div(size, n), light_grain / 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T numbers[n];
      make(Philox::at(draw.seed, static_cast<uint64_t>(i), high), numbers);
      const int64_t first = i * n;
      std::copy_n(numbers, std::min(n, size - first), x.data<T>() + first);
    }
  });
  Count::add(size);
}

}  // namespace

template <>
void FillNormal::cpu<target_isa>(const Tensor& x, double mean, double deviation, const Draw& draw) {
  visit_float("fill_normal", x.dtype(), [&]<class T>(Type<T>) {
    fill_blocks<T>(x, draw, [&](const Philox& block, T* numbers) {
      normals(block, static_cast<T>(mean), static_cast<T>(deviation), numbers);
    });
  });
}

template <>
void FillUniform::cpu<target_isa>(const Tensor& x, double low, double high, const Draw& draw) {
  visit_float("fill_uniform", x.dtype(), [&]<class T>(Type<T>) {
    fill_blocks<T>(x, draw, [&](const Philox& block, T* numbers) {
      uniforms(block, static_cast<T>(low), static_cast<T>(high), numbers);
    });
  });
}

template <>
void Advance::cpu<target_isa>(const Tensor& tick) {
  ++*tick.data<int64_t>();
}

}  // namespace heed::kernel
