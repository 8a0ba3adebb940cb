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

/// order[row, :] = the sorting permutation of keys[row, :], by one block per row: bitonic sort in shared
/// memory of `size` pairs (key, index), a power of two. Padding behind the n keys sorts last.
template <class Key>
__global__ void __launch_bounds__(1024) sort_in_block(const Key* keys, int64_t n, int size, int32_t* order) {
  Key* const key = shared<Key>();
  auto* const index = reinterpret_cast<int32_t*>(key + size);
  keys += int64_t{blockIdx.x} * n;
  const int thread = static_cast<int>(threadIdx.x), num_threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < size; i += num_threads) {
    key[i] = i < n ? keys[i] : ~Key{0};
    index[i] = i;
  }
  __syncthreads();
  for (int run = 2; run <= size;
       run *= 2) {  // merges sorted runs of run / 2 into runs that ascend or descend
    for (int gap = run / 2; gap > 0; gap /= 2) {
      for (int pair = thread; pair < size / 2; pair += num_threads) {
        const int i = 2 * pair - (pair & (gap - 1)), j = i + gap;
        const bool wants_ascending = (i & run) == 0;
        const bool is_descending = key[j] < key[i] || (key[j] == key[i] && index[j] < index[i]);
        if (is_descending != wants_ascending) continue;
        swap_values(key[i], key[j]);
        swap_values(index[i], index[j]);
      }
      __syncthreads();
    }
  }
  for (int i = thread; i < n; i += num_threads) order[int64_t{blockIdx.x} * n + i] = index[i];
}

constexpr int digits = 256;                           ///< values of a byte
constexpr int keys_per_lane = 16;                     ///< keys that a lane moves
constexpr int64_t tile_keys = keys_per_lane * block;  ///< keys that a block moves
constexpr int block_warps = block / lanes;

/// One pass of a radix sort of rows of n keys, by the byte of the keys that begins at bit `shift`.
template <class Key>
struct RadixPass {
  const Key* keys;
  const int32_t* order;  ///< [rows, n]: order of the keys before the pass; null: that in memory
  int64_t n;
  int shift;

  __device__ int64_t row() const { return blockIdx.y; }
  /// Position in `order` of the j-th key of this lane; the keys of a warp are adjacent.
  __device__ int64_t position(int j) const {
    return int64_t{blockIdx.x} * tile_keys + (threadIdx.x / lanes) * (keys_per_lane * lanes) + j * lanes +
           lane();
  }
  __device__ int32_t key_at(int64_t position) const {
    return order == nullptr ? static_cast<int32_t>(position) : order[row() * n + position];
  }
  __device__ int digit(int32_t key) const {
    return static_cast<int>((keys[row() * n + key] >> shift) & (digits - 1));
  }
};

/// counts [rows, tiles, digits] = number of keys of each tile with each digit, by one block per tile.
template <class Key>
__global__ void __launch_bounds__(block) count_digits(RadixPass<Key> pass, int32_t* counts) {
  __shared__ int count[digits];
  count[threadIdx.x] = 0;
  __syncthreads();
  for (int j = 0; j < keys_per_lane; ++j) {
    const int64_t position = pass.position(j);
    if (position < pass.n) atomicAdd(&count[pass.digit(pass.key_at(position))], 1);
  }
  __syncthreads();
  counts[(pass.row() * gridDim.x + blockIdx.x) * digits + threadIdx.x] = count[threadIdx.x];
}

/// The sum of `value` over the earlier threads of the block. `scratch` holds a number for each warp.
__device__ int exclusive_prefix_sum(int value, int* scratch) {
  int inclusive = value;
  for (int gap = 1; gap < lanes; gap *= 2) {
    const int earlier = __shfl_up_sync(all_lanes, inclusive, static_cast<unsigned>(gap));
    if (lane() >= gap) inclusive += earlier;
  }
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  if (lane() == lanes - 1) scratch[warp] = inclusive;
  __syncthreads();
  int sum = inclusive - value;
  for (int w = 0; w < warp; ++w) sum += scratch[w];
  __syncthreads();
  return sum;
}

/// Mask of the lanes with the digit of this lane; 0 where `digit` is -1 (no key). All lanes call it.
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

/// new_order[row, :] = the order of the keys after the pass, by one block per tile. The position of a key is
/// the number of keys with smaller digits plus that of earlier keys with its digit. `counts`: see
/// count_digits().
template <class Key>
__global__ void __launch_bounds__(block)
    move_keys(RadixPass<Key> pass, const int32_t* counts, int32_t* new_order) {
  // Number of keys of each warp with each digit; at the end the position in the row of the first of them.
  __shared__ int warp_counts[block_warps][digits], scratch[lanes];
  const int thread_digit = static_cast<int>(threadIdx.x), warp = thread_digit / lanes;
  for (int w = 0; w < block_warps; ++w) warp_counts[w][thread_digit] = 0;
  __syncthreads();
  int32_t key[keys_per_lane];
  int digit[keys_per_lane], rank_in_warp[keys_per_lane];  // rank among the keys of the warp with that digit
  for (int j = 0; j < keys_per_lane; ++j) {
    const int64_t position = pass.position(j);
    key[j] = position < pass.n ? pass.key_at(position) : 0;
    digit[j] = position < pass.n ? pass.digit(key[j]) : -1;
    const unsigned same = lanes_with_digit(digit[j]), earlier_lanes = same & ((1U << lane()) - 1);
    const int count = digit[j] >= 0 ? warp_counts[warp][digit[j]] : 0;
    rank_in_warp[j] = count + __popc(earlier_lanes);
    __syncwarp();
    if (digit[j] >= 0 && earlier_lanes == 0) warp_counts[warp][digit[j]] = count + __popc(same);
    __syncwarp();
  }
  __syncthreads();
  // One thread per digit: the position of its first key of this tile, and of its first key of each warp.
  const int32_t* tile_counts = counts + pass.row() * gridDim.x * digits + thread_digit;
  int count_in_row = 0, count_in_earlier_tiles = 0;
  for (unsigned tile = 0; tile < gridDim.x; ++tile) {
    if (tile == blockIdx.x) count_in_earlier_tiles = count_in_row;
    count_in_row += tile_counts[tile * digits];
  }
  int position = exclusive_prefix_sum(count_in_row, scratch) + count_in_earlier_tiles;
  auto& first_position = warp_counts;
  for (int w = 0; w < block_warps; ++w) {
    const int count = warp_counts[w][thread_digit];
    first_position[w][thread_digit] = position;
    position += count;
  }
  __syncthreads();
  for (int j = 0; j < keys_per_lane; ++j) {
    if (digit[j] >= 0)
      new_order[pass.row() * pass.n + first_position[warp][digit[j]] + rank_in_warp[j]] = key[j];
  }
}

/// order [rows, n] = the sorting permutations of keys [rows, n]. Passes of radix sort write to `order` and a
/// buffer in turn, the last one to `order`.
template <class Key>
void sort(const Key* keys, int64_t rows, int64_t n, int bits, int32_t* order) {
  if (rows == 0 || n == 0) return;
  if (n <= max_block_keys) {
    const int size = static_cast<int>(power_of_two(static_cast<uint64_t>(std::max<int64_t>(n, 2))));
    Grid grid = block_per_row(rows, std::clamp(size / 2, lanes, 1024));
    grid.shared_bytes = size * static_cast<int>(sizeof(Key) + sizeof(int32_t));
    return run(sort_in_block<Key>, grid, keys, n, size, order);
  }
  constexpr int64_t max_rows = 32768;  // extent of a grid along y, at most 65535
  for (; rows > max_rows; rows -= max_rows, keys += max_rows * n, order += max_rows * n)
    sort(keys, max_rows, n, bits, order);
  const int64_t tiles = ceil_div(n, tile_keys);
  const Tensor counts(Shape{rows, tiles, digits}, DType::i32, Device::cuda);
  const Tensor buffer(Shape{rows, n}, DType::i32, Device::cuda);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(rows)),
                  .threads = dim3(block)};
  const int passes = std::max(1, (bits + 7) / 8);
  int32_t* const orders[2] = {passes % 2 == 1 ? order : buffer.data<int32_t>(),
                              passes % 2 == 1 ? buffer.data<int32_t>() : order};
  for (int p = 0; p < passes; ++p) {
    const RadixPass<Key> pass{
        .keys = keys, .order = p == 0 ? nullptr : orders[(p + 1) % 2], .n = n, .shift = 8 * p};
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
