// Sorting rows. A row of up to 4096 keys is sorted by one block in shared memory (bitonic sort, Batcher
// 1968), a longer one by many blocks: radix sort from the lowest byte to the highest, each pass stable.
#include "heed/core/cuda/device/sort.h"

#include <algorithm>

#include "heed/core/bits.h"
#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/tensor.h"

namespace heed::cuda {
namespace {

constexpr int64_t max_block_keys = 4096;

template <class T>
__device__ void swap_values(T& a, T& b) {
  const T old = a;
  a = b;
  b = old;
}

/// order[row, :] = the sorting permutation of keys[row, :], by one block per row: bitonic sort of `size`
/// pairs (key, place), a power of two, in shared memory. Pairs behind n are sorted last.
template <class Key>
__global__ void __launch_bounds__(1024) sort_in_block(const Key* keys, int64_t n, int size, int32_t* order) {
  Key* const key = shared<Key>();
  auto* const place = reinterpret_cast<int32_t*>(key + size);
  keys += int64_t{blockIdx.x} * n;
  const int own = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  for (int i = own; i < size; i += step) {
    key[i] = i < n ? keys[i] : ~Key{0};
    place[i] = i;
  }
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) {
    for (int gap = run / 2; gap > 0; gap /= 2) {
      for (int t = own; t < size / 2; t += step) {
        const int i = 2 * t - (t & (gap - 1)), j = i + gap;
        const bool ascending = (i & run) == 0;
        const bool descends = key[j] < key[i] || (key[j] == key[i] && place[j] < place[i]);
        if (descends != ascending) continue;
        swap_values(key[i], key[j]);
        swap_values(place[i], place[j]);
      }
      __syncthreads();
    }
  }
  for (int i = own; i < n; i += step) order[int64_t{blockIdx.x} * n + i] = place[i];
}

constexpr int digits = 256;                      ///< values of a byte
constexpr int keys_per_lane = 16;                ///< keys that a lane moves
constexpr int64_t tile = keys_per_lane * block;  ///< keys that a block moves
constexpr int block_warps = block / lanes;

/// One pass of a radix sort: the order of the keys before it, and the byte that it sorts by.
template <class Key>
struct Pass {
  const Key* keys;
  const int32_t* order;  ///< null: the order of the keys in memory
  int64_t n;
  int shift;

  __device__ int64_t row() const { return blockIdx.y; }
  /// Place in the row of the j-th key of this lane; the keys of a warp are adjacent.
  __device__ int64_t place(int j) const {
    return int64_t{blockIdx.x} * tile + (threadIdx.x / lanes) * (keys_per_lane * lanes) + j * lanes + lane();
  }
  __device__ int32_t at(int64_t place) const {
    return order == nullptr ? static_cast<int32_t>(place) : order[row() * n + place];
  }
  __device__ int digit(int32_t which) const {
    return static_cast<int>((keys[row() * n + which] >> shift) & (digits - 1));
  }
};

/// counts [rows, tiles, digits] = number of keys of each tile with each digit, by one block per tile.
template <class Key>
__global__ void __launch_bounds__(block) count_digits(Pass<Key> pass, int32_t* counts) {
  __shared__ int count[digits];
  count[threadIdx.x] = 0;
  __syncthreads();
  for (int j = 0; j < keys_per_lane; ++j) {
    const int64_t place = pass.place(j);
    if (place < pass.n) atomicAdd(&count[pass.digit(pass.at(place))], 1);
  }
  __syncthreads();
  counts[(pass.row() * gridDim.x + blockIdx.x) * digits + threadIdx.x] = count[threadIdx.x];
}

/// The sum of `value` over the threads of the block before this one.
__device__ int exclusive_prefix_sum(int value, int* scratch) {
  int inclusive = value;
  for (int gap = 1; gap < lanes; gap *= 2) {
    const int other = __shfl_up_sync(all_lanes, inclusive, static_cast<unsigned>(gap));
    if (lane() >= gap) inclusive += other;
  }
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  if (lane() == lanes - 1) scratch[warp] = inclusive;
  __syncthreads();
  int before = inclusive - value;
  for (int w = 0; w < warp; ++w) before += scratch[w];
  __syncthreads();
  return before;
}

/// Mask of the lanes with the digit of this lane, or 0 where that is -1 (no key). All lanes call it.
__device__ unsigned lanes_with_digit(int digit) {
  unsigned same = __ballot_sync(all_lanes, digit >= 0 ? 1 : 0);
  if (digit < 0) same = 0;
  for (int bit = 1; bit < digits; bit *= 2) {
    const bool set = digit >= 0 && (digit & bit) != 0;
    const unsigned votes = __ballot_sync(all_lanes, set ? 1 : 0);
    same &= set ? votes : ~votes;
  }
  return same;
}

/// to[row, :] = the order of the keys after the pass, by one block per tile: each key goes to the number of
/// keys with smaller digits, plus that of keys before it with its digit.
template <class Key>
__global__ void __launch_bounds__(block) move_keys(Pass<Key> pass, const int32_t* counts, int32_t* to) {
  __shared__ int next[block_warps][digits], scratch[lanes];
  const int own = static_cast<int>(threadIdx.x), warp = own / lanes;
  for (int w = 0; w < block_warps; ++w) next[w][own] = 0;
  __syncthreads();
  int32_t which[keys_per_lane];
  int digit[keys_per_lane], rank[keys_per_lane];
  for (int j = 0; j < keys_per_lane; ++j) {
    const int64_t place = pass.place(j);
    which[j] = place < pass.n ? pass.at(place) : 0;
    digit[j] = place < pass.n ? pass.digit(which[j]) : -1;
    const unsigned same = lanes_with_digit(digit[j]), before = same & ((1U << lane()) - 1);
    int first = 0;
    if (digit[j] >= 0) first = next[warp][digit[j]];
    rank[j] = first + __popc(before);
    __syncwarp();
    if (digit[j] >= 0 && before == 0) next[warp][digit[j]] = first + __popc(same);
    __syncwarp();
  }
  __syncthreads();
  // One thread per digit: the place of its first key of this tile, and of its first key of each warp.
  const int32_t* count = counts + pass.row() * gridDim.x * digits + own;
  int total = 0, earlier = 0;
  for (unsigned t = 0; t < gridDim.x; ++t) {
    if (t == blockIdx.x) earlier = total;
    total += count[t * digits];
  }
  int begin = exclusive_prefix_sum(total, scratch) + earlier;
  for (int w = 0; w < block_warps; ++w) {
    const int keys = next[w][own];
    next[w][own] = begin;
    begin += keys;
  }
  __syncthreads();
  for (int j = 0; j < keys_per_lane; ++j) {
    if (digit[j] >= 0) to[pass.row() * pass.n + next[warp][digit[j]] + rank[j]] = which[j];
  }
}

/// order [rows, n] = the sorting permutations of keys [rows, n]; passes of radix sort write to `order` and a
/// buffer in turn, so that the last one writes to `order`.
template <class Key>
void sort(const Key* keys, int64_t rows, int64_t n, int bits, int32_t* order) {
  if (rows == 0 || n == 0) return;
  if (n <= max_block_keys) {
    const int size = static_cast<int>(power_of_two(static_cast<uint64_t>(std::max<int64_t>(n, 2))));
    Grid grid = blocks(rows, std::clamp(size / 2, lanes, 1024));
    grid.shared_bytes = size * static_cast<int>(sizeof(Key) + sizeof(int32_t));
    return run(sort_in_block<Key>, grid, keys, n, size, order);
  }
  constexpr int64_t max_rows = 32768;  // largest number of rows of a grid
  for (; rows > max_rows; rows -= max_rows, keys += max_rows * n, order += max_rows * n)
    sort(keys, max_rows, n, bits, order);
  const int64_t tiles = ceil_div(n, tile);
  const Tensor counts(Shape{rows, tiles, digits}, DType::i32, Device::cuda);
  const Tensor other(Shape{rows, n}, DType::i32, Device::cuda);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(rows)),
                  .threads = dim3(block)};
  const int passes = std::max(1, (bits + 7) / 8);
  int32_t* const orders[2] = {passes % 2 == 1 ? order : other.data<int32_t>(),
                              passes % 2 == 1 ? other.data<int32_t>() : order};
  for (int p = 0; p < passes; ++p) {
    const Pass<Key> pass{keys, p == 0 ? nullptr : orders[(p + 1) % 2], n, 8 * p};
    run(count_digits<Key>, grid, pass, counts.data<int32_t>());
    run(move_keys<Key>, grid, pass, static_cast<const int32_t*>(counts.data<int32_t>()), orders[p % 2]);
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
