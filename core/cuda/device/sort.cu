// Sorting rows. Up to 4096 keys: a block sorts them in its shared memory, by comparing pairs of keys and
// places (Batcher 1968, bitonic). More: from the lowest byte to the highest, each pass stable, many blocks a
// row.
#include "heed/core/cuda/device/sort.h"

#include <algorithm>

#include "heed/core/bits.h"
#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/tensor.h"

namespace heed::cuda {
namespace {

constexpr int64_t most_in_block = 4096;

template <class Key>
__global__ void __launch_bounds__(1024) sort_in_block(const Key* keys, int64_t n, int size, int32_t* order) {
  Key* const key = shared<Key>();
  auto* const place = reinterpret_cast<int32_t*>(key + size);
  keys += int64_t{blockIdx.x} * n;
  const int own = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  for (int i = own; i < size; i += step) {
    key[i] = i < n ? keys[i] : ~Key{0};
    place[i] = i;  // places past n come last among equal keys
  }
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) {
    for (int gap = run / 2; gap > 0; gap /= 2) {
      for (int t = own; t < size / 2; t += step) {
        const int i = 2 * t - (t & (gap - 1)), j = i + gap;
        const bool rising = (i & run) == 0;
        const bool wrong = key[j] < key[i] || (key[j] == key[i] && place[j] < place[i]);
        if (wrong != rising) continue;
        const Key other = key[i];
        const int32_t other_place = place[i];
        key[i] = key[j];
        place[i] = place[j];
        key[j] = other;
        place[j] = other_place;
      }
      __syncthreads();
    }
  }
  for (int i = own; i < n; i += step) order[int64_t{blockIdx.x} * n + i] = place[i];
}

constexpr int digits = 256;                ///< values of a byte
constexpr int of_lane = 16;                ///< keys that a lane moves
constexpr int64_t tile = of_lane * block;  ///< keys that a block moves
constexpr int block_warps = block / lanes;

/// One pass: where keys stand now, and the byte that they are sorted by.
template <class Key>
struct Pass {
  const Key* keys;
  const int32_t* order;  ///< null: as they come
  int64_t n;
  int shift;

  __device__ int64_t row() const { return blockIdx.y; }
  /// Place among the row's keys of the j-th key of this lane: a warp's keys lie together.
  __device__ int64_t place(int j) const {
    return int64_t{blockIdx.x} * tile + (threadIdx.x / lanes) * (of_lane * lanes) + j * lanes + lane();
  }
  __device__ int32_t at(int64_t place) const {
    return order == nullptr ? static_cast<int32_t>(place) : order[row() * n + place];
  }
  __device__ int digit(int32_t which) const {
    return static_cast<int>((keys[row() * n + which] >> shift) & (digits - 1));
  }
};

/// counts [rows, tiles, digits]
template <class Key>
__global__ void __launch_bounds__(block) count_digits(Pass<Key> pass, int32_t* counts) {
  __shared__ int count[digits];
  count[threadIdx.x] = 0;
  __syncthreads();
  for (int j = 0; j < of_lane; ++j) {
    const int64_t place = pass.place(j);
    if (place < pass.n) atomicAdd(&count[pass.digit(pass.at(place))], 1);
  }
  __syncthreads();
  counts[(pass.row() * gridDim.x + blockIdx.x) * digits + threadIdx.x] = count[threadIdx.x];
}

/// The sum of `mine` over the threads before this one.
__device__ int sum_before(int mine, int* scratch) {
  int upto = mine;
  for (int gap = 1; gap < lanes; gap *= 2) {
    const int other = __shfl_up_sync(all_lanes, upto, static_cast<unsigned>(gap));
    if (lane() >= gap) upto += other;
  }
  const int own = static_cast<int>(threadIdx.x) / lanes;
  if (lane() == lanes - 1) scratch[own] = upto;
  __syncthreads();
  int before = upto - mine;
  for (int w = 0; w < own; ++w) before += scratch[w];
  __syncthreads();
  return before;
}

/// The lanes whose digit is this one's; all lanes call it, those without a key with digit -1.
__device__ unsigned same_digit(int digit) {
  unsigned same = __ballot_sync(all_lanes, digit >= 0 ? 1 : 0);
  if (digit < 0) same = 0;
  for (int bit = 1; bit < digits; bit *= 2) {
    const bool set = digit >= 0 && (digit & bit) != 0;
    const unsigned votes = __ballot_sync(all_lanes, set ? 1 : 0);
    same &= set ? votes : ~votes;
  }
  return same;
}

template <class Key>
__global__ void __launch_bounds__(block) move_keys(Pass<Key> pass, const int32_t* counts, int32_t* to) {
  __shared__ int next[block_warps][digits], scratch[lanes];
  const int own = static_cast<int>(threadIdx.x), warp = own / lanes;
  for (int w = 0; w < block_warps; ++w) next[w][own] = 0;
  __syncthreads();
  int32_t which[of_lane];
  int digit[of_lane], rank[of_lane];
  for (int j = 0; j < of_lane; ++j) {
    const int64_t place = pass.place(j);
    which[j] = place < pass.n ? pass.at(place) : 0;
    digit[j] = place < pass.n ? pass.digit(which[j]) : -1;
    const unsigned same = same_digit(digit[j]), before = same & ((1U << lane()) - 1);
    int first = 0;
    if (digit[j] >= 0) first = next[warp][digit[j]];
    rank[j] = first + __popc(before);
    __syncwarp();
    if (digit[j] >= 0 && before == 0) next[warp][digit[j]] = first + __popc(same);
    __syncwarp();
  }
  __syncthreads();
  // A thread for each digit: where its keys of this tile begin, and those of each warp.
  const int32_t* count = counts + pass.row() * gridDim.x * digits + own;
  int total = 0, earlier = 0;
  for (unsigned t = 0; t < gridDim.x; ++t) {
    if (t == blockIdx.x) earlier = total;
    total += count[t * digits];
  }
  int begin = sum_before(total, scratch) + earlier;
  for (int w = 0; w < block_warps; ++w) {
    const int keys = next[w][own];
    next[w][own] = begin;
    begin += keys;
  }
  __syncthreads();
  for (int j = 0; j < of_lane; ++j) {
    if (digit[j] >= 0) to[pass.row() * pass.n + next[warp][digit[j]] + rank[j]] = which[j];
  }
}

template <class Key>
void sort(const Key* keys, int64_t rows, int64_t n, int bits, int32_t* order) {
  if (rows == 0 || n == 0) return;
  if (n <= most_in_block) {
    const int size = static_cast<int>(power_of_two(static_cast<uint64_t>(std::max<int64_t>(n, 2))));
    Grid grid = blocks(rows, std::clamp(size / 2, lanes, 1024));
    grid.shared_bytes = size * static_cast<int>(sizeof(Key) + sizeof(int32_t));
    return run(sort_in_block<Key>, grid, keys, n, size, order);
  }
  constexpr int64_t most_rows = 32768;  // of a grid
  for (; rows > most_rows; rows -= most_rows, keys += most_rows * n, order += most_rows * n)
    sort(keys, most_rows, n, bits, order);
  const int64_t tiles = ceil_div(n, tile);
  const Tensor counts(Shape{rows, tiles, digits}, DType::i32, Device::cuda);
  const Tensor other(Shape{rows, n}, DType::i32, Device::cuda);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(rows)),
                  .threads = dim3(block)};
  const int passes = std::max(1, (bits + 7) / 8);
  int32_t* const homes[2] = {passes % 2 == 1 ? order : other.data<int32_t>(),
                             passes % 2 == 1 ? other.data<int32_t>() : order};
  for (int p = 0; p < passes; ++p) {
    const Pass<Key> pass{keys, p == 0 ? nullptr : homes[(p + 1) % 2], n, 8 * p};
    run(count_digits<Key>, grid, pass, counts.data<int32_t>());
    run(move_keys<Key>, grid, pass, static_cast<const int32_t*>(counts.data<int32_t>()), homes[p % 2]);
  }
}

}  // namespace

void sort_rows(const uint32_t* keys, int64_t rows, int64_t n, int bits, int32_t* order) {
  sort(keys, rows, n, bits, order);
}
void sort_rows(const uint64_t* keys, int64_t rows, int64_t n, int bits, int32_t* order) {
  sort(keys, rows, n, bits, order);
}

}  // namespace heed::cuda
