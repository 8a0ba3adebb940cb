// Dropout on the CPU: the bits of many blocks at a time, in vector lanes.
#include "heed/core/kernels/elementwise/dropout.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

constexpr int64_t blocks = 32;
constexpr int64_t group = 8 * blocks;  ///< elements served by one call of group_bits
static_assert(light_grain % group == 0);
static_assert(std::endian::native == std::endian::little, "half-words lie in the order of the elements");

/// The half-words of Philox blocks first, first + 1, ... in the order of the elements, as dropout_bits()
/// gives them. Words are held in 64 bits, where their products are at home, and the rounds are written out
/// one by one, so that the loop over blocks is the innermost and becomes vector code.
void group_bits(uint64_t seed, uint64_t high, uint64_t first, uint16_t (&bits)[group]) {
  constexpr uint64_t low = 0xffffffffU;
  uint64_t front[blocks], back[blocks], ordered[2 * blocks];
  for (int64_t i = 0; i < blocks; ++i) {
    const uint64_t index = first + static_cast<uint64_t>(i);
    uint64_t c0 = index & low, c1 = index >> 32, c2 = high & low, c3 = high >> 32;
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    const auto round = [&] {
      const uint64_t p0 = 0xD2511F53U * c0;
      const uint64_t p1 = 0xCD9E8D57U * c2;
      c0 = (p1 >> 32) ^ c1 ^ k0;
      c2 = (p0 >> 32) ^ c3 ^ k1;
      c1 = p1 & low;
      c3 = p0 & low;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    };
    round(), round(), round(), round(), round(), round(), round(), round(), round(), round();
    front[i] = c0 | (c1 << 32);
    back[i] = c2 | (c3 << 32);
  }
  for (int64_t i = 0; i < blocks; ++i) {
    ordered[2 * i] = front[i];
    ordered[2 * i + 1] = back[i];
  }
  std::memcpy(bits, ordered, sizeof bits);
}

template <class T>
void keep(const uint16_t* bits, uint32_t least, T scale, const T* from, T* to, int64_t count) {
#pragma GCC ivdep
  for (int64_t j = 0; j < count; ++j) {
    const T scaled = from[j] * scale;
    to[j] = uint32_t{bits[j]} >= least ? scaled : T(0);
  }
}

}  // namespace

/// y[i] = x[i] / (1 - p) where the 16 bits of element i are at least the threshold, else 0. One task is a run
/// of elements, whose bits are drawn 256 at a time.
template <>
void Dropout::cpu<here>(const Tensor& x, double p, const Draw& draw, const Tensor& y) {
  visit_float("dropout", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* from = x.data<T>();
    T* to = y.data<T>();
    const uint64_t high = Draw::high(draw.stream, *draw.tick.data<int64_t>());
    const uint32_t least = dropout_threshold(p);
    const T scale = static_cast<T>(dropout_scale(p));
    const uint64_t skipped = skipped_draws(x.size());
    parallel_rows(x.size(), light_grain, [&](int64_t begin, int64_t end) {
      uint16_t bits[group];
      for (int64_t i = begin; i < end;) {
        const uint64_t number = static_cast<uint64_t>(i) + skipped;
        const auto lead = static_cast<int64_t>(number % 8);  // 0 but for a share of rows of odd size
        const int64_t count = std::min(group - lead, end - i);
        group_bits(draw.seed, high, number / 8, bits);
        keep(bits + lead, least, scale, from + i, to + i, count);
        i += count;
      }
    });
  });
  Count::add(x.size());
}

}  // namespace heed::kernel
