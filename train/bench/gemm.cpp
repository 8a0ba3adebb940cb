// heed bench gemm: matrix products in the shapes of transformers.
#include "heed/core/kernels/gemm/gemm.h"

#include <cblas.h>
#include <algorithm>
#include <array>
#include <cstdio>

#include "heed/core/io/files.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/random.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/machine_peaks.h"
#include "heed/train/bench/measure.h"
#include "heed/train/progress/progress.h"

namespace heed::bench {
namespace {

/// A matrix product of the table. The product lists batch, m, n, k, and which factors are transposed.
struct Case {
  const char* name;
  Product product;
};

constexpr std::array cases{
    Case{"512 square", {1, 512, 512, 512}},
    Case{"1024 square", {1, 1024, 1024, 1024}},
    Case{"2048 square", {1, 2048, 2048, 2048}},
    Case{"4096 x 1536 x 384", {1, 4096, 1536, 384}},
    Case{"same, weight turned", {1, 4096, 1536, 384, false, true}},
    Case{"its weight gradient", {1, 1536, 384, 4096, true, false}},
    Case{"768 x 512 x 128", {1, 768, 512, 128, false, true}},
    Case{"QK' 256 x 256 x 64", {48, 256, 256, 64, false, true}},
    Case{"PV 256 x 64 x 256", {48, 256, 64, 256}},
    Case{"QK' 64 x 64 x 32", {48, 64, 64, 32, false, true}},
    Case{"PV 64 x 32 x 64", {48, 64, 32, 64}},
    Case{"1 row x 768 x 768", {1, 1, 768, 768, false, true}},
    Case{"4 rows x 768 x 768", {1, 4, 768, 768, false, true}},
    Case{"8 rows x 768 x 768", {1, 8, 768, 768, false, true}},
    Case{"16 rows x 768 x 768", {1, 16, 768, 768, false, true}},
    Case{"32 rows x 768 x 768", {1, 32, 768, 768, false, true}},
    Case{"1 row x 22463 x 512", {1, 1, 22463, 512, false, true}},
};

/// Median FLOP/s of several implementations of a product, measured in turns.
std::vector<double> rates(double flops, std::span<const std::function<void()>> implementations) {
  std::vector<std::vector<double>> times(implementations.size());
  // Enough calls in a row to make the clock's resolution and cold caches irrelevant.
  const auto calls = std::clamp<int64_t>(static_cast<int64_t>(2e8 / flops), 1, unless_emulated(2000, 1000));
  for (int turn = 0; turn < 9; ++turn) {
    for (size_t i = 0; i < implementations.size(); ++i) {
      implementations[i]();
      times[i].push_back(timed([&] {
                           for (int64_t call = 0; call < calls; ++call) implementations[i]();
                         }) /
                         static_cast<double>(calls));
    }
  }
  std::vector<double> out;
  for (std::vector<double>& seconds : times) out.push_back(flops / median(std::move(seconds)));
  return out;
}

/// c = a b for every matrix of a batch [batch, m, k] [batch, k, n], with the memory layout of `p`, by
/// OpenBLAS in the calling thread.
void blas_product(const Product& p, const Tensor& a, const Tensor& b, const Tensor& c) {
  openblas_set_num_threads(1);
  for (int64_t i = 0; i < p.batch; ++i) {
    cblas_sgemm(CblasRowMajor, p.a_transposed ? CblasTrans : CblasNoTrans,
                p.b_transposed ? CblasTrans : CblasNoTrans, static_cast<int>(p.m), static_cast<int>(p.n),
                static_cast<int>(p.k), 1.0F, a.data<float>() + i * p.m * p.k,
                static_cast<int>(p.a_transposed ? p.m : p.k), b.data<float>() + i * p.k * p.n,
                static_cast<int>(p.b_transposed ? p.k : p.n), 0.0F, c.data<float>() + i * p.m * p.n,
                static_cast<int>(p.n));
  }
}

struct Operands {
  Tensor a, b, c;
};

/// Random operands of a product, transposed where it says so.
Operands operands(const Product& p) {
  Rng rng(1);
  const auto factor = [&](int64_t rows, int64_t columns, bool is_transposed) {
    const Tensor x(is_transposed ? Shape{p.batch, columns, rows} : Shape{p.batch, rows, columns});
    fill_normal(x, 0, 1, rng);
    return is_transposed ? view::transpose(x, 1, 2) : x;
  };
  return {factor(p.m, p.k, p.a_transposed), factor(p.k, p.n, p.b_transposed),
          Tensor(Shape{p.batch, p.m, p.n})};
}

/// Each product in each precision, relative to a large product's rate. Products with an extent below 32 stay
/// f32 in bf16 and are skipped there.
void on_device(const ParsedArguments& arguments) {
  Table table({{"product", "product"},
               {"f32 GFLOP/s", "gflops", 0},
               {"of limit", "share"},
               {"tf32 GFLOP/s", "gflops_tf32", 0},
               {"of limit", "share_tf32"},
               {"bf16 GFLOP/s", "gflops_bf16", 0},
               {"of limit", "share_bf16"}},
              arguments.has("json"));
  const int64_t max_flops = unless_emulated(int64_t{1} << 62, int64_t{1} << 34);  // FLOPs
  for (const Case& one : cases) {
    const Product& p = one.product;
    if (p.flops() > max_flops) continue;
    const Operands exact = operands(p);
    Json row = Json::object({{"product", one.name}, {"batch", p.batch}, {"m", p.m}, {"n", p.n}, {"k", p.k}});
    for (const auto& [rounding, name] :
         {std::pair{Rounding::none, ""}, {Rounding::tf32, "_tf32"}, {Rounding::bf16, "_bf16"}}) {
      const bool narrow = rounding == Rounding::bf16;
      if (narrow && std::min({p.m, p.n, p.k}) < 32) continue;
      const auto factor = [&](const Tensor& x, bool turned) {
        if (!narrow) return x;
        const Tensor lying = turned ? view::transpose(x, 1, 2) : x;
        const Tensor rounded(lying.shape(), DType::bf16);
        launch<kernel::Copy>(default_device, lying, rounded);
        return turned ? view::transpose(rounded, 1, 2) : rounded;
      };
      const Tensor a = factor(exact.a, p.a_transposed), b = factor(exact.b, p.b_transposed);
      const std::function<void()> ours = [&, how = rounding] {
        launch<kernel::Gemm>(default_device, a, b, exact.c, 1.0, 0.0, how);
      };
      const double rate = rates(static_cast<double>(p.flops()), std::span(&ours, 1))[0];
      row.set(text("gflops", name), 1e-9 * rate);
      row.set(text("share", name), rate / product_rate(rounding));
    }
    table.row(with_machine_metadata(std::move(row)));
  }
}

}  // namespace

void bench_gemm(const ParsedArguments& arguments) {
  if (default_device != Device::cpu) return on_device(arguments);
  Table table({{"product", "product"},
               {"GFLOP/s", "gflops", 0},
               {"of peak", "share"},
               {"1 thread", "gflops_1", 0},
               {"of peak", "share_1"},
               {"OpenBLAS 1 thread", "openblas_1", 0},
               {"ratio", "ratio"}},
              arguments.has("json"));
  const int all = threads();
  const double peak = fma_peak();
  std::vector<double> together;
  for (const Case& one : cases) {
    const Operands x = operands(one.product);
    const std::function<void()> ours = [&] {
      launch<kernel::Gemm>(Device::cpu, x.a, x.b, x.c, 1.0, 0.0, Rounding::none);
    };
    together.push_back(rates(static_cast<double>(one.product.flops()), std::span(&ours, 1))[0]);
  }
  set_threads(1);
  const double peak_1 = fma_peak();
  for (size_t i = 0; i < cases.size(); ++i) {
    const Product& p = cases[i].product;
    const Operands x = operands(p);
    const std::function<void()> ways[] = {
        [&] { launch<kernel::Gemm>(Device::cpu, x.a, x.b, x.c, 1.0, 0.0, Rounding::none); },
        [&] { blas_product(p, x.a, x.b, x.c); }};
    const ContextSwitches interruptions;
    const std::vector<double> alone = rates(static_cast<double>(p.flops()), ways);
    Json row = Json::object({{"product", cases[i].name},
                             {"batch", p.batch},
                             {"m", p.m},
                             {"n", p.n},
                             {"k", p.k},
                             {"gflops", 1e-9 * together[i]},
                             {"share", together[i] / peak},
                             {"gflops_1", 1e-9 * alone[0]},
                             {"share_1", alone[0] / peak_1},
                             {"openblas_1", 1e-9 * alone[1]},
                             {"ratio", alone[0] / alone[1]},
                             {"peak", 1e-9 * peak},
                             {"peak_1", 1e-9 * peak_1},
                             {"interruptions_per_s", interruptions.per_second()}});
    row = with_machine_metadata(std::move(row));
    row.set("threads", all);
    table.row(row);
  }
  if (!arguments.has("json"))
    io::printf("\nPeak of multiply-adds: %.0f GFLOP/s, %.0f with one thread.\n", 1e-9 * peak, 1e-9 * peak_1);
  set_threads(all);
}

}  // namespace heed::bench
