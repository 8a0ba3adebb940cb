// Peak rate of multiply-adds and of memory.
#include "train/bench/limits.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "core/tensor.h"
#include "train/bench/measure.h"

namespace heed::bench {
namespace {

constexpr int64_t rounds = 100000;
constexpr int chains = 12;  // sums that do not wait for each other

using Floats16 __attribute__((vector_size(64))) = float;
using Floats8 __attribute__((vector_size(32))) = float;
using Floats4 __attribute__((vector_size(16))) = float;

/// What the sums come to, so that the compiler cannot leave them out.
template <class V>
[[gnu::always_inline]] inline float multiply_add(float factor) {
  V sum[chains];
  for (int c = 0; c < chains; ++c) sum[c] = V{} + static_cast<float>(c);
  const V x = V{} + factor, y = V{} + 1e-9F;
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) sum[c] = sum[c] * x + y;
  }
  float total = 0;
  for (int c = 0; c < chains; ++c) total += sum[c][0];
  return total;
}

struct Width {
  float (*run)(float);
  int64_t floats;
};

#if defined(__x86_64__)
[[gnu::target("avx512f"), gnu::optimize("O2", "fp-contract=fast")]] float by_16(float x) {
  return multiply_add<Floats16>(x);
}
[[gnu::target("avx2,fma"), gnu::optimize("O2", "fp-contract=fast")]] float by_8(float x) {
  return multiply_add<Floats8>(x);
}
#endif
[[gnu::optimize("O2", "fp-contract=fast")]] float by_4(float x) { return multiply_add<Floats4>(x); }

Width widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {by_16, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {by_8, 8};
#endif
  return {by_4, 4};
}

}  // namespace

double fma_peak() {
  const Width width = widest();
  const int64_t pieces = 4 * threads();
  std::vector<float> sums(static_cast<size_t>(pieces));
  const double time = median_time(
      [&] {
        parallel_for(pieces, [&](int64_t piece) {
          sums[static_cast<size_t>(piece)] = width.run(0.5F + static_cast<float>(piece) * 1e-3F);
        });
      },
      0.2);
  return 2.0 * static_cast<double>(rounds * chains * width.floats * pieces) / time;
}

namespace {

/// Reads [begin, end) of x; the result keeps the compiler from leaving it out.
float read(const float* x, int64_t begin, int64_t end) {
  Floats16 sum[2] = {}, some[2];
  for (int64_t i = begin; i + 32 <= end; i += 32) {
    std::memcpy(some, x + i, sizeof some);
    sum[0] += some[0];
    sum[1] += some[1];
  }
  return (sum[0] + sum[1])[0];
}

void change(float* x, int64_t begin, int64_t end) {
  for (int64_t i = begin; i + 16 <= end; i += 16) {
    Floats16 some;
    std::memcpy(&some, x + i, sizeof some);
    some += 1.0F;
    std::memcpy(x + i, &some, sizeof some);
  }
}

}  // namespace

double pass_time(const Pass& pass) {
  const auto numbers = [](int64_t bytes) { return Tensor::zeros(Shape{std::max<int64_t>(bytes / 4, 1)}); };
  const Tensor from = numbers(pass.read), to = numbers(pass.in_place ? 0 : pass.written);
  const int64_t in = pass.read / 4, out = pass.written / 4, both = std::min(in, out);
  float *x = from.data<float>(), *y = to.data<float>();
  constexpr int64_t grain = 2 * light_grain;
  std::vector<float> sums(static_cast<size_t>(std::max(in, out) / grain + 1));
  return median_time(
      [&] {
        parallel_rows(std::max(in, out), grain, [&](int64_t begin, int64_t end) {
          const int64_t middle = std::clamp(both, begin, end);
          if (pass.in_place) {
            change(x, begin, middle);
          } else if (begin < middle) {
            std::memcpy(y + begin, x + begin, static_cast<size_t>(middle - begin) * 4);
          }
          if (in > out) {
            sums[static_cast<size_t>(begin / grain)] = read(x, middle, end);
          } else if (middle < end) {
            std::memset(y + middle, 0, static_cast<size_t>(end - middle) * 4);
          }
        });
      },
      0.1);
}

}  // namespace heed::bench
