// The benchmarks: their shapes, the replay of products, and constant memory.
#include <malloc.h>

#include <barrier>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "heed/core/io/files.h"
#include "heed/core/parallel/blas.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"
#include "heed/train/bench/matmul_replay.h"
#include "heed/train/bench/measure.h"
#include "heed/train/bench/workload.h"

using namespace heed;

namespace {

ParsedArguments tiny() {
  ParsedArguments arguments;
  arguments.options = {{"d-model", {"16"}},    {"heads", {"2"}},      {"d-ff", {"16"}},    {"layers", {"1"}},
                       {"max-length", {"12"}}, {"batch-size", {"2"}}, {"dropout", {"0.1"}}};
  return arguments;
}

/// Training by hand, as the benchmark does it.
struct Loop {
  bench::Workload work;
  Optimizer optimizer;
  Rng noise{1};

  explicit Loop(const std::string& row)
      : work(bench::workload(row, tiny())), optimizer(*work.model, work.config->train.optimizer) {}

  double step(int64_t i) {
    const Tensor loss = work.loss(work.batch(i), {.rng = &noise});
    backward(loss);
    optimizer.step(1e-3);
    noise.advance();
    return loss.item();
  }
};

/// Multiplies in all threads at once, so that OpenBLAS has mapped a workspace for each.
void meet_in_products() {
  constexpr int64_t size = 512;
  const std::vector<float> ones(size * size, 1.0f);
  std::barrier all(threads());
  std::vector<std::jthread> running;
  for (int64_t t = 0; t < threads(); ++t) {
    running.emplace_back([&] {
      std::vector<float> out(size * size);
      for (int round = 0; round < 8; ++round) {
        all.arrive_and_wait();
        blas::gemm(size, size, size, 1.0f, {ones.data(), size, false}, {ones.data(), size, false}, 0.0f,
                   out.data(), size);
      }
    });
  }
}

/// Pages that the process has mapped; nothing where a sanitizer maps memory of its own.
int64_t mapped_pages() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  return std::atoll(io::read("/proc/self/statm").c_str());
#endif
}

}  // namespace

TEST_CASE("bench: every row trains, with tokens to count") {
  for (const bench::Row& row : bench::rows()) {
    CAPTURE(row.name);
    Loop loop(row.name);
    CHECK(loop.work.period >= 1);
    CHECK(loop.work.config->model.d_model == 16);
    for (int64_t i = 0; i < 2; ++i) {
      CHECK(std::isfinite(loop.step(i)));
      CHECK(loop.work.tokens(i) >= 1);
    }
  }
}

TEST_CASE("bench: rows have the shapes that results are compared on") {
  const ParsedArguments as_it_is;
  const bench::Workload baby = bench::workload("baby", as_it_is);
  CHECK(baby.tokens(0) == 12 * 64);
  CHECK(count_parameters(*baby.model) == 805248);
  const bench::Workload gpt = bench::workload("gpt-6x6x384-dropout", as_it_is);
  CHECK(gpt.tokens(0) == 8 * 256);
  CHECK(gpt.config->model.attention_dropout == 0.2);
  CHECK(count_parameters(*gpt.model) == 10750080);
  const bench::Workload lra = bench::workload("lra", as_it_is);
  CHECK(lra.tokens(0) == 8 * 2000);
  CHECK(count_parameters(*bench::workload("patches", as_it_is).model) == 204938);
  ParsedArguments one_layer;
  one_layer.options = {{"layers", {"1"}}};
  const bench::Workload gpt2 = bench::workload("gpt2-124m", one_layer);
  CHECK(gpt2.tokens(0) == 16 * 1024);
  CHECK(count_parameters(*gpt2.model) == (50304 + 1024) * 768 + 12 * 768 * 768 + 6 * 768);
}

TEST_CASE("bench: products are replayed as often as they were noted") {
  const std::vector<Product> products{{1, 64, 32, 16, false, true},
                                      {97, 16, 16, 8, true},
                                      {1000, 8, 8, 8},
                                      {2, 300, 200, 100, false, false, true}};
  int64_t wanted = 0;
  for (const Product& product : products) wanted += product.flops();
  const bench::ProductReplay replay(products);
  const ProductLog log;
  replay.once();
  int64_t done = 0;
  for (const Product& product : log.list()) done += product.flops();
  CHECK(done >= wanted);
  CHECK(static_cast<double>(done) <= 1.25 * static_cast<double>(wanted));
}

TEST_CASE("bench: medians, and times that are at least what was waited") {
  CHECK(bench::median({3, 1, 2}) == 2);
  CHECK(bench::median({4, 1, 2, 3}) == 2);
  CHECK(bench::median({}) == 0);
  int calls = 0;
  bench::median_time([&] { ++calls; }, 0, 5);
  CHECK(calls == 6);
  CHECK(bench::resident_peak() > 1 << 20);
}

TEST_CASE("bench: after the second step nothing is mapped or unmapped") {
  // Others map when threads meet, which may be late on a busy machine: the C library an arena, OpenBLAS 128
  // MiB of workspace.
  REQUIRE(mallopt(M_ARENA_MAX, 1) == 1);
  meet_in_products();
  const std::string row = GENERATE("baby-dropout", "translator-literal", "patches", "lra");
  CAPTURE(row);
  Loop loop(row);
  const int64_t warm = std::max<int64_t>(2, loop.work.period);
  for (int64_t i = 0; i < warm; ++i) loop.step(i);
  const MemoryUse before = memory_use();
  const int64_t pages = mapped_pages();
  for (int64_t i = 0; i < 50; ++i) loop.step(i);
  const MemoryUse after = memory_use();
  CHECK(after.mapped == before.mapped);
  CHECK(after.reserved == before.reserved);
  CHECK(after.live == before.live);
  CHECK(mapped_pages() == pages);
}

TEST_CASE("bench: ten thousand steps leave the heap as it was", "[slow]") {
  const std::string row = GENERATE("baby-dropout", "patches");
  CAPTURE(row);
  Loop loop(row);
  for (int64_t i = 0; i < 1000; ++i) loop.step(i);
  const auto in_use = [] {
    const auto heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
  };
  const size_t heap = in_use();
  const MemoryUse before = memory_use();
  const int64_t pages = mapped_pages();
  for (int64_t i = 0; i < 10000; ++i) loop.step(i);
  // What the caches of the threads keep counts as used and depends on how pieces fell; a leak of sixteen
  // bytes a step would be 160,000.
  CHECK(in_use() <= heap + (size_t{64} << 10));
  CHECK(memory_use().mapped == before.mapped);
  CHECK(memory_use().live == before.live);
  CHECK(mapped_pages() == pages);
}
