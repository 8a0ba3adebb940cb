// Random fills on the GPU, by the counters of the CPU's kernels.
#include "heed/core/kernels/elementwise/random.h"

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/grid.h"
#include "heed/core/kernels/elementwise/random_numbers.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

template <class T>
struct Normal {
  T mean, deviation;
  HEED_BOTH void operator()(const Philox& block, T* numbers) const {
    normals(block, mean, deviation, numbers);
  }
};

template <class T>
struct Uniform {
  T low, high;
  HEED_BOTH void operator()(const Philox& block, T* numbers) const { uniforms(block, low, high, numbers); }
};

/// Fills x [size] with the numbers that make(block, numbers) writes for each Philox block, by threads in
/// steps of the grid.
template <class T, class Make>
__global__ void fill_blocks(int64_t size, Make make, uint64_t seed, uint64_t stream, const int64_t* tick,
                            T* x) {
  constexpr int64_t n = numbers_per_block<T>;
  const uint64_t high = Draw::high(stream, *tick);
  for (int64_t i = cuda::global_thread(); i * n < size; i += cuda::grid_size()) {
    T numbers[n];
    make(Philox::at(seed, static_cast<uint64_t>(i), high), numbers);
    for (int k = 0; k < n && i * n + k < size; ++k) x[i * n + k] = numbers[k];
  }
}

/// Launches fill_blocks() with one thread per Philox block.
template <class T, class Make>
void launch_fill(const Tensor& x, const Draw& draw, Make make) {
  const int64_t size = x.size();
  cuda::run(fill_blocks<T, Make>, cuda::grid_over(ceil_div(size, numbers_per_block<T>)), size, make,
            draw.seed, draw.stream, draw.tick.data<int64_t>(), x.data<T>());
  Count::add(size);
}

__global__ void advance(int64_t* tick) { ++*tick; }

}  // namespace

void FillNormal::cuda(const Tensor& x, double mean, double deviation, const Draw& draw) {
  visit_float("fill_normal", x.dtype(), [&]<class T>(Type<T>) {
    launch_fill<T>(x, draw, Normal<T>{static_cast<T>(mean), static_cast<T>(deviation)});
  });
}

void FillUniform::cuda(const Tensor& x, double low, double high, const Draw& draw) {
  visit_float("fill_uniform", x.dtype(), [&]<class T>(Type<T>) {
    launch_fill<T>(x, draw, Uniform<T>{static_cast<T>(low), static_cast<T>(high)});
  });
}

void Advance::cuda(const Tensor& tick) { cuda::run(advance, {dim3(1), dim3(1)}, tick.data<int64_t>()); }

}  // namespace heed::kernel
