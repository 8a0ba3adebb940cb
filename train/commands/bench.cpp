// heed bench: times of products, attention and training steps, with what they depend on.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "attention/variant.h"
#include "autograd/ops.h"
#include "core/count.h"
#include "core/json.h"
#include "core/kernels/gemm.h"
#include "core/parallel.h"
#include "train/commands/verbs.h"
#include "train/progress.h"
#include "train/task.h"

namespace heed {
namespace {

/// Median seconds of at least `least` runs that together take about `budget` seconds.
double median_time(const std::function<void()>& work, double budget = 0.5, size_t least = 5) {
  work();
  std::vector<double> times;
  const double began = seconds_now();
  while (times.size() < least || (seconds_now() - began < budget && times.size() < 1000)) {
    const double start = seconds_now();
    work();
    times.push_back(seconds_now() - start);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void print(const Json& row, bool json) {
  if (json) {
    std::puts(row.dump().c_str());
    return;
  }
  std::string line;
  for (const auto& [name, value] : row.members())
    line += "  " + name + " " + (value.is_text() ? value.text() : value.dump());
  std::puts(line.c_str());
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

Tensor random(const Shape& shape, Rng& rng) {
  const Tensor x(shape);
  fill_normal(x, 0, 1, rng);
  return x;
}

void bench_gemm(bool json) {
  Rng rng(1);
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{512, 512, 512},
                                {1024, 1024, 1024},
                                {4096, 1536, 384},
                                {384, 1536, 4096},
                                {4096, 256, 256},
                                {4096, 8000, 256},
                                {8000, 256, 4096},
                                {1, 768, 768},
                                {8, 768, 768},
                                {32, 768, 768}}) {
    const Tensor a = random(Shape{m, k}, rng), b = random(Shape{k, n}, rng), c(Shape{m, n});
    const double time =
        median_time([&, a = a, b = b] { launch<kernel::Gemm>(Device::cpu, a, b, c, 1.0, 0.0, Precision::f32); });
    print(Json::object({{"m", m},
                        {"n", n},
                        {"k", k},
                        {"ms", rounded(1e3 * time)},
                        {"gflops", rounded(2e-9 * static_cast<double>(m * n * k) / time)}}),
          json);
  }
}

void bench_attention(const std::string& spec, int64_t longest, bool json) {
  for (const bool causal : {false, true}) {
    if (causal && !variant_named(parse_spec(spec).name).traits.causal) continue;
    for (int64_t length = 64; length <= longest; length *= 2) {
      Rng rng(1);
      const auto attention = make_attention(spec, {.width = 128, .heads = 4, .causal = causal}, rng);
      const Tensor x = leaf(random(Shape{1, length, 128}, rng));
      const Mask mask = causal ? Mask::causal() : Mask::none();
      const auto forward = [&] { return attention->forward({x, x, mask, nullptr, {}}); };
      const double ahead = median_time([&] {
        const NoTape no_tape;
        forward();
      });
      reset_peak();
      const int64_t before = memory_use().live;
      const double both = median_time([&] { backward(sum(square(forward()))); });
      print(Json::object({{"attention", spec},
                          {"causal", causal},
                          {"length", length},
                          {"forward_ms", rounded(1e3 * ahead)},
                          {"step_ms", rounded(1e3 * both)},
                          {"peak_mib", rounded(static_cast<double>(memory_use().peak - before) / 1048576)}}),
            json);
    }
  }
}

void bench_train(const Invocation& call, bool json) {
  Config config = make_config(call.words.size() > 1 ? call.words[1] : "translate");
  apply_settings(config, call);
  config.check();
  config.task->load(config, {}, [](const std::string&) {});
  Rng rng(static_cast<uint64_t>(config.train.seed));
  const auto model = new_model(config, rng);
  Optimizer optimizer(*model, config.train.optimizer);
  const int64_t batches = config.task->plan(0);
  const int64_t steps = std::clamp<int64_t>(call.integer("rounds", 20), 1, 100000);
  std::vector<double> times;
  double tokens = 0, total = 0, flops = 0;
  for (int64_t i = 0; i < steps + 2; ++i) {
    if (i == 2) reset_peak();
    Count::reset();
    const double start = seconds_now();
    const Batch batch = config.task->batch(i % batches);
    backward(config.task->loss(*model, batch, {.noise = &rng}));
    optimizer.step(1e-4);
    rng.advance();
    if (i < 2) continue;  // the first steps fill the caches
    times.push_back(seconds_now() - start);
    total += times.back();
    tokens += static_cast<double>(batch.tokens);
    flops += static_cast<double>(Count::flops().load());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  print(Json::object({{"preset", config.preset},
                      {"step_ms", rounded(1e3 * times[times.size() / 2])},
                      {"tokens_per_s", rounded(tokens / total)},
                      {"gflops", rounded(1e-9 * flops / total)},
                      {"peak_mib", rounded(static_cast<double>(memory_use().peak) / 1048576)},
                      {"parameters", count_parameters(*model)},
                      {"threads", threads()},
                      {"blas_core", blas_core()}}),
        json);
}

int run(const Invocation& call) {
  apply_machine(call);
  const bool json = call.has("json");
  const std::string what = call.words[0];
  if (!json) std::printf("threads %d, OpenBLAS %s\n", threads(), blas_core().c_str());
  if (what == "gemm") {
    bench_gemm(json);
  } else if (what == "attention") {
    const int64_t longest = call.integer("longest", 2048);
    if (longest < 64 || longest > (int64_t{1} << 24))
      fail("--longest = ", longest, ". It must be 64 to 16777216.");
    if (call.words.size() > 1) {
      bench_attention(call.words[1], longest, json);
    } else {
      for (const Variant& variant : variants()) bench_attention(variant.traits.name, longest, json);
    }
  } else if (what == "train") {
    bench_train(call, json);
  } else {
    const std::vector<std::string> known{"gemm", "attention", "train"};
    fail("bench: '", what, "' is unknown.", suggestion(what, known));
  }
  return 0;
}

}  // namespace

Verb verb::bench() {
  return {"bench",
          "time products, attention against length, or the training steps of a preset",
          "gemm|attention|train [SPEC|PRESET]",
          1,
          2,
          with_machine({{"rounds", "N", "steps that are timed by train (default: 20)"},
                        {"longest", "N", "greatest length of attention (default: 2048)"},
                        {"json", "", "one JSON object a line"}}),
          true,
          run};
}

}  // namespace heed
