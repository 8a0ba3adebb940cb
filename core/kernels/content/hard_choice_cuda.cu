// Selects one key per row on a GPU: one warp per row.
#include "heed/core/kernels/content/hard_choice.h"

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/warp_argmax.h"
#include "heed/core/distributed/batch_shard.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Index of the largest of n weights above zero, the first of equals; -1 where there is none. Every lane gets
/// it.
template <class T>
__device__ int64_t largest_weight(const T* weights, int64_t n) {
  const int64_t index =
      cuda::warp_argmax<T>(n, [=](int64_t j) { return weights[j] > 0 ? weights[j] : T(0); });
  return index < n && weights[index] > 0 ? index : -1;
}

/// Inclusive scan over the lanes of a warp: the sum of x of all lanes up to this one.
__device__ double warp_inclusive_sum(double x) {
  for (int offset = 1; offset < cuda::lanes; offset *= 2) {
    const double of_earlier_lane = __shfl_up_sync(cuda::all_lanes, x, static_cast<unsigned>(offset));
    if (cuda::lane() >= offset) x += of_earlier_lane;
  }
  return x;
}

/// The first weight above zero at which the running sum exceeds u times the total, 0 <= u < 1; the last one
/// above zero where rounding leaves none. A warp takes 32 weights at a time; every lane gets the index.
template <class T>
__device__ int64_t sample_weight(const T* weights, int64_t n, double u) {
  double total = 0, sum_before = 0;
  for (int64_t first = 0; first < n; first += cuda::lanes) {
    const int64_t j = first + cuda::lane();
    total += cuda::warp_sum(j < n ? static_cast<double>(weights[j]) : 0.0);
  }
  int64_t last_positive = -1;
  for (int64_t first = 0; first < n; first += cuda::lanes) {
    const int64_t j = first + cuda::lane();
    const double weight = j < n ? static_cast<double>(weights[j]) : 0.0;
    const double running_sum = sum_before + warp_inclusive_sum(weight);
    const unsigned positive = __ballot_sync(cuda::all_lanes, weight > 0 ? 1 : 0);
    const unsigned exceeds = __ballot_sync(cuda::all_lanes, weight > 0 && running_sum > u * total ? 1 : 0);
    if (exceeds != 0) return first + __ffs(static_cast<int>(exceeds)) - 1;
    if (positive != 0) last_positive = first + (cuda::lanes - 1) - __clz(static_cast<int>(positive));
    sum_before = __shfl_sync(cuda::all_lanes, running_sum, cuda::lanes - 1);
  }
  return last_positive;
}

/// picked[row, j] = 1 for one j of the row: the first of largest weight, or with a tick one drawn with
/// probability weight_j / sum. One warp per row. `rows_of_earlier_processes` precede row 0 in the whole
/// batch.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    pick(const T* weights, int64_t num_rows, int64_t width, uint64_t seed, uint64_t stream,
         const int64_t* tick, uint64_t rows_of_earlier_processes, uint8_t* picked) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  int64_t chosen = -1;
  if (tick == nullptr) {
    chosen = largest_weight(weights + row * width, width);
  } else {
    const Philox random =
        Philox::at(seed, rows_of_earlier_processes + static_cast<uint64_t>(row), Draw::high(stream, *tick));
    chosen = sample_weight(weights + row * width, width, static_cast<double>(random.word[0]) * 0x1p-32);
  }
  for (int64_t j = cuda::lane(); j < width; j += cuda::lanes)
    picked[row * width + j] = static_cast<uint8_t>(j == chosen ? 1 : 0);
}

}  // namespace

/// Computes picked with one warp per row.
void HardChoice::cuda(const Tensor& weights, const Draw& draw, const Tensor& picked) {
  const int64_t width = weights.extent(-1);
  if (weights.size() == 0) return;
  visit_float("pick", weights.dtype(), [&]<class T>(Type<T>) {
    const int64_t rows = weights.size() / width;
    cuda::run(pick<T>, cuda::warp_per_row(rows), weights.data<T>(), rows, width, draw.seed, draw.stream,
              cuda::pointer<int64_t>(draw.tick), skipped_draws(rows), picked.data<uint8_t>());
  });
  Count::add(weights.size());
}

}  // namespace heed::kernel
