// Picking one key a row on a GPU: a warp takes a row.
#include "heed/core/kernels/content/hard_choice.h"

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/distributed/batch_shard.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int64_t nowhere = int64_t{1} << 62;

/// The first of the largest numbers above zero, or -1. Every lane gets it.
template <class T>
__device__ int64_t heaviest(const T* row, int64_t width) {
  T most = 0;
  int64_t place = nowhere;
  for (int64_t j = cuda::lane(); j < width; j += cuda::lanes) {
    if (!(row[j] > most)) continue;
    most = row[j];
    place = j;
  }
  for (int gap = cuda::lanes / 2; gap > 0; gap /= 2) {
    const T other = __shfl_xor_sync(cuda::all_lanes, most, gap);
    const int64_t at = __shfl_xor_sync(cuda::all_lanes, place, gap);
    if (other > most || (other == most && at < place)) {
      most = other;
      place = at;
    }
  }
  return place == nowhere ? -1 : place;
}

/// The sum of the lanes up to this one.
__device__ double sum_upto(double x) {
  for (int gap = 1; gap < cuda::lanes; gap *= 2) {
    const double other = __shfl_up_sync(cuda::all_lanes, x, static_cast<unsigned>(gap));
    if (cuda::lane() >= gap) x += other;
  }
  return x;
}

/// The element at which the running sum passes `share` of the whole.
template <class T>
__device__ int64_t at_share(const T* row, int64_t width, double share) {
  double total = 0, passed = 0;
  for (int64_t first = 0; first < width; first += cuda::lanes) {
    const int64_t j = first + cuda::lane();
    total += cuda::warp_sum(j < width ? static_cast<double>(row[j]) : 0.0);
  }
  int64_t last = -1;
  for (int64_t first = 0; first < width; first += cuda::lanes) {
    const int64_t j = first + cuda::lane();
    const double x = j < width ? static_cast<double>(row[j]) : 0.0;
    const double upto = passed + sum_upto(x);
    const unsigned some = __ballot_sync(cuda::all_lanes, x > 0 ? 1 : 0);
    const unsigned beyond = __ballot_sync(cuda::all_lanes, x > 0 && upto > share * total ? 1 : 0);
    if (beyond != 0) return first + __ffs(static_cast<int>(beyond)) - 1;
    if (some != 0) last = first + 31 - __clz(static_cast<int>(some));
    passed = __shfl_sync(cuda::all_lanes, upto, cuda::lanes - 1);
  }
  return last;
}

/// picked[row, j] = 1 for one j of the row: the first of the heaviest, or with a tick one drawn with
/// probability weight_j / sum. One warp per row. Draws are numbered from `skipped`, the rows of a batch that
/// other processes have.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    pick(const T* weights, int64_t rows, int64_t width, uint64_t seed, uint64_t stream, const int64_t* tick,
         uint64_t skipped, uint8_t* picked) {
  const int64_t row = cuda::grid_warp();
  if (row >= rows) return;
  const T* x = weights + row * width;
  int64_t at = -1;
  if (tick == nullptr) {
    at = heaviest(x, width);
  } else {
    const Philox block = Philox::at(seed, skipped + static_cast<uint64_t>(row), Draw::high(stream, *tick));
    at = at_share(x, width, static_cast<double>(block.word[0]) * 0x1p-32);
  }
  for (int64_t j = cuda::lane(); j < width; j += cuda::lanes)
    picked[row * width + j] = static_cast<uint8_t>(j == at ? 1 : 0);
}

}  // namespace

void Pick::cuda(const Tensor& weights, const Draw& draw, const Tensor& picked) {
  const int64_t width = weights.extent(-1);
  if (weights.size() == 0) return;
  visit_float("pick", weights.dtype(), [&]<class T>(Type<T>) {
    const int64_t rows = weights.size() / width;
    cuda::run(pick<T>, cuda::warps(rows), weights.data<T>(), rows, width, draw.seed, draw.stream,
              cuda::pointer<int64_t>(draw.tick), skipped_draws(rows), picked.data<uint8_t>());
  });
  Count::add(weights.size());
}

}  // namespace heed::kernel
