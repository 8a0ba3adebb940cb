// Selects one key per row on the CPU.
#include "heed/core/kernels/content/hard_choice.h"

#include <algorithm>

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Index of the largest of n weights above zero, the first of equals; -1 where there is none.
template <class T>
int64_t largest_weight(const T* weights, int64_t n) {
  const T* largest = std::max_element(weights, weights + n);
  return largest != weights + n && *largest > 0 ? largest - weights : -1;
}

/// The first weight above zero at which the running sum exceeds u times the total, 0 <= u < 1; the last one
/// above zero where rounding leaves none.
template <class T>
int64_t sample_weight(const T* weights, int64_t n, double u) {
  double total = 0, running_sum = 0;
  for (int64_t j = 0; j < n; ++j) total += static_cast<double>(weights[j]);
  int64_t last_positive = -1;
  for (int64_t j = 0; j < n; ++j) {
    if (!(weights[j] > 0)) continue;
    last_positive = j;
    running_sum += static_cast<double>(weights[j]);
    if (running_sum > u * total) break;
  }
  return last_positive;
}

}  // namespace

/// picked[row, j] = 1 for one j of each row of weights [rows, K]: the first of largest weight, or with a tick
/// one drawn with probability weight_j / sum. One task is some rows.
template <>
void HardChoice::cpu<target_isa>(const Tensor& weights, const Draw& draw, const Tensor& picked) {
  const int64_t width = weights.extent(-1);
  if (weights.size() == 0) return;
  const bool is_drawn = static_cast<bool>(draw.tick);
  const uint64_t rows_of_earlier_processes = skipped_draws(weights.size() / width);
  const uint64_t high = is_drawn ? Draw::high(draw.stream, *draw.tick.data<int64_t>()) : 0;
  visit_float("pick", weights.dtype(), [&]<class T>(Type<T>) {
    parallel_rows(weights.size() / width, light_grain / width + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* row_weights = weights.data<T>() + row * width;
        uint8_t* row_picked = picked.data<uint8_t>() + row * width;
        int64_t chosen = -1;
        if (is_drawn) {
          const Philox random =
              Philox::at(draw.seed, rows_of_earlier_processes + static_cast<uint64_t>(row), high);
          chosen = sample_weight(row_weights, width, static_cast<double>(random.word[0]) * 0x1p-32);
        } else {
          chosen = largest_weight(row_weights, width);
        }
        std::fill_n(row_picked, width, uint8_t{0});
        if (chosen >= 0) row_picked[chosen] = 1;
      }
    });
  });
  Count::add(weights.size());
}

}  // namespace heed::kernel
