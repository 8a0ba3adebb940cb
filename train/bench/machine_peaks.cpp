// heed bench limits: peak rates of multiply-adds, products and memory, and launch latency.
#include "heed/train/bench/machine_peaks.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/launch.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/random.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/measure.h"

namespace heed::bench {
namespace {

constexpr int64_t peak_rounds = 100000;
constexpr int chains = 12;  // independent multiply-adds: enough to hide their latency

using Floats16 __attribute__((vector_size(64))) = float;
using Floats8 __attribute__((vector_size(32))) = float;
using Floats4 __attribute__((vector_size(16))) = float;

/// Computes chains * peak_rounds multiply-adds of vectors. Returns a sum, so that the compiler cannot remove
/// them.
template <class V>
[[gnu::always_inline]] inline float multiply_add(float factor) {
  V sum[chains];
  for (int c = 0; c < chains; ++c) sum[c] = V{} + static_cast<float>(c);
  const V x = V{} + factor, y = V{} + 1e-9F;
  for (int64_t i = 0; i < peak_rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) sum[c] = sum[c] * x + y;
  }
  float total = 0;
  for (int c = 0; c < chains; ++c) total += sum[c][0];
  return total;
}

/// multiply_add() with vectors of some width.
struct VectorLoop {
  float (*run)(float factor);
  int64_t floats;  // numbers of a vector
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

/// The loop with the widest vectors of this processor.
VectorLoop widest_loop() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {by_16, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {by_8, 8};
#endif
  return {by_4, 4};
}

}  // namespace

double fma_peak() {
  const VectorLoop loop = widest_loop();
  const int64_t pieces = 4 * threads();
  std::vector<float> sums(static_cast<size_t>(pieces));
  const double time = median_time(
      [&] {
        parallel_for(pieces, [&](int64_t piece) {
          sums[static_cast<size_t>(piece)] = loop.run(0.5F + static_cast<float>(piece) * 1e-3F);
        });
      },
      0.2);
  return 2.0 * static_cast<double>(peak_rounds * chains * loop.floats * pieces) / time;
}

namespace {

/// Reads [begin, end) of x; the result keeps the compiler from removing the reads.
float read(const float* x, int64_t begin, int64_t end) {
  Floats16 sum[2] = {}, some[2];
  for (int64_t i = begin; i + 32 <= end; i += 32) {
    std::memcpy(some, x + i, sizeof some);
    sum[0] += some[0];
    sum[1] += some[1];
  }
  return (sum[0] + sum[1])[0];
}

/// Reads and writes [begin, end) of x.
void update(float* x, int64_t begin, int64_t end) {
  for (int64_t i = begin; i + 16 <= end; i += 16) {
    Floats16 some;
    std::memcpy(&some, x + i, sizeof some);
    some += 1.0F;
    std::memcpy(x + i, &some, sizeof some);
  }
}

}  // namespace

double pass_time(const MemoryPass& pass) {
  if (default_device != Device::cpu) {
    const Shape half{std::max<int64_t>(1, (pass.read + pass.written) / 8)};
    const Tensor x = Tensor::zeros(half), y = pass.in_place ? x : Tensor(half);
    return median_time([&] { launch<kernel::Affine>(default_device, x, 1.0, 0.0, y); }, 0.1);
  }
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
            update(x, begin, middle);
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

int64_t unless_emulated(int64_t x, int64_t by) {
  return default_device == Device::cuda && cuda::emulated ? std::max<int64_t>(1, x / by) : x;
}

double copy_rate() {
  const int64_t bytes = unless_emulated(int64_t{256} << 20, 256);
  return static_cast<double>(2 * bytes) / pass_time({.read = bytes, .written = bytes});
}

double product_rate(Rounding rounding) {
  static std::map<std::pair<Device, Rounding>, double> known;
  const auto [rate, is_new] = known.try_emplace({default_device, rounding});
  if (!is_new) return rate->second;
  const int64_t n = unless_emulated(default_device == Device::cpu ? 1024 : 8192, 64);
  Rng rng(1);
  const auto factor = [&] {
    const Tensor x(Shape{n, n});
    fill_normal(x, 0, 1, rng);
    if (rounding != Rounding::bf16) return x;
    const Tensor narrow(x.shape(), DType::bf16);
    launch<kernel::Copy>(default_device, x, narrow);
    return narrow;
  };
  const Tensor a = factor(), b = factor(), c(Shape{n, n});
  const double taken =
      median_time([&] { launch<kernel::Gemm>(default_device, a, b, c, 1.0, 0.0, rounding); }, 0.3);
  return rate->second = 2.0 * static_cast<double>(n * n * n) / taken;
}

double launch_time() {
  constexpr int64_t num_launches = 1000;
  const Tensor x = Tensor::zeros(Shape{1});
  return median_time([&] {
           for (int64_t i = 0; i < num_launches; ++i) launch<kernel::Affine>(default_device, x, 1.0, 0.0, x);
         }) /
         static_cast<double>(num_launches);
}

double answer_time() {
  const Tensor x = Tensor::zeros(Shape{1});
  return median_time([&] { launch<kernel::Affine>(default_device, x, 1.0, 0.0, x); });
}

void bench_limits(const ParsedArguments& arguments) {
  Table table({{"limit", "limit"}, {"rate or time", "value"}, {"unit", "unit"}}, arguments.has("json"));
  const auto row = [&](const std::string& name, double value, const char* unit) {
    table.row(with_machine_metadata(Json::object({{"limit", name}, {"value", value}, {"unit", unit}})));
  };
  if (default_device == Device::cpu) row("multiply-adds", 1e-9 * fma_peak(), "GFLOP/s");
  row("copy, read and written", 1e-9 * copy_rate(), "GB/s");
  row("products in f32", 1e-9 * product_rate(Rounding::none), "GFLOP/s");
  if (default_device != Device::cpu) row("products in tf32", 1e-9 * product_rate(Rounding::tf32), "GFLOP/s");
  row("products in bf16", 1e-9 * product_rate(Rounding::bf16), "GFLOP/s");
  row("a small kernel of many", 1e6 * launch_time(), "us");
  row("one, and waiting for it", 1e6 * answer_time(), "us");
}

}  // namespace heed::bench
