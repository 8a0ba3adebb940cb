// Random fills on the CPU.
#include "core/kernels/here.h"
#include "core/kernels/random.h"

#include <algorithm>
#include <cmath>

#include "core/count.h"
#include "core/parallel.h"

namespace heed::kernel {
namespace {

/// Two normal numbers from u in (0, 1] and v in [0, 1), in the precision of T.
template <class T>
void pair(T u, T v, T mean, T deviation, T* to) {
  const T radius = deviation * std::sqrt(T(-2) * std::log(u));
  const T angle = T(6.283185307179586) * v;
  to[0] = mean + radius * std::cos(angle);
  to[1] = mean + radius * std::sin(angle);
}

/// A block as normal numbers: four of 32 bits each for float, two of 53 bits for double.
template <class T>
void normals(const Philox& block, T mean, T deviation, T* out) {
  const uint32_t* word = block.word;
  if constexpr (sizeof(T) == 4) {
    for (int i = 0; i < 4; i += 2) {
      const float u = (static_cast<float>(word[i]) + 0.5F) * 0x1p-32F;
      const float v = static_cast<float>(word[i + 1] >> 8) * 0x1p-24F;
      pair(u, v, mean, deviation, out + i);
    }
  } else {
    const auto bits = [&](int i) {
      return static_cast<double>(((uint64_t{word[i]} << 32) | word[i + 1]) >> 11);
    };
    pair((bits(0) + 0.5) * 0x1p-53, bits(2) * 0x1p-53, mean, deviation, out);
  }
}

template <class T>
void uniforms(const Philox& block, T low, T high, T* out) {
  const T below_high = std::nextafter(high, low);
  const uint32_t* word = block.word;
  for (int i = 0; i < (sizeof(T) == 4 ? 4 : 2); ++i) {
    const double u =
        sizeof(T) == 4
            ? (word[i] >> 8) * 0x1p-24
            : static_cast<double>(((uint64_t{word[2 * i]} << 32) | word[2 * i + 1]) >> 11) * 0x1p-53;
    const T value =
        static_cast<T>(static_cast<double>(low) + (static_cast<double>(high) - static_cast<double>(low)) * u);
    out[i] = value < high ? value : below_high;
  }
}

/// Calls make(block, to) for each block of numbers of x, the last one through a buffer.
template <class T, class Make>
void fill_blocks(const Tensor& x, const Draw& draw, Make&& make) {
  constexpr int64_t numbers = 16 / static_cast<int64_t>(sizeof(T));
  const uint64_t high = Draw::high(draw.stream, *draw.tick.data<int64_t>());
  T* to = x.data<T>();
  const int64_t size = x.size();
  parallel_rows((size + numbers - 1) / numbers, light_grain / 16, [&](int64_t begin, int64_t end) {
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
