// heed bench ops: kernels other than matrix products, relative to one pass over their memory, on any device.
#include <array>
#include <cstdio>

#include "heed/autograd/ops.h"
#include "heed/core/kernels/content/gather.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/kernels/elementwise/optimizer_update.h"
#include "heed/core/kernels/norm/cross_entropy.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/kernels/norm/softmax.h"
#include "heed/core/launch.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/machine_peaks.h"
#include "heed/train/bench/measure.h"
#include "heed/train/bench/ops.h"

namespace heed::bench {

Tensor numbers(const Shape& shape, Rng& rng) {
  const Tensor x(shape);
  fill_normal(x, 0, 1, rng);
  return x;
}

namespace {

/// Random ids from 0 to `vocabulary` - 1.
Tensor ids(int64_t count, int64_t vocabulary, Rng& rng) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  for (int32_t& id : out) id = static_cast<int32_t>(rng.below(vocabulary));
  return Tensor::of<int32_t>(out, Shape{count});
}

void elementwise(Ops& bench, Rng& rng) {
  const Shape shape{unless_emulated(2048, 256), 1536};
  const int64_t n = shape.size();
  const Tensor a = numbers(shape, rng), b = numbers(shape, rng), y(shape), dx(shape);
  const kernel::DropoutMask mask{.p = 0.2, .draw = rng.next()};
  bench.time("copy", n, 1, 1, [&] { launch<kernel::Affine>(default_device, a, 1, 0, y); });
  bench.time("add", n, 2, 1, [&] { launch<kernel::Zip<Add>>(default_device, a, b, y); });
  bench.time("exp", n, 1, 1, [&] { launch<kernel::Map<Exp>>(default_device, a, y); });
  bench.time("gelu", n, 1, 1, [&] { launch<kernel::Map<Gelu>>(default_device, a, y); });
  bench.time("gelu, back", n, 2, 1, [&] { launch<kernel::MapBack<Gelu>>(default_device, a, y, b, dx); });
  bench.time("gelu_tanh", n, 1, 1, [&] { launch<kernel::Map<GeluTanh>>(default_device, a, y); });
  bench.time("gelu_tanh, back", n, 2, 1,
             [&] { launch<kernel::MapBack<GeluTanh>>(default_device, a, y, b, dx); });
  bench.time("relu", n, 1, 1, [&] { launch<kernel::Map<Relu>>(default_device, a, y); });
  bench.time("dropout 0.2", n, 1, 1, [&] { launch<kernel::Dropout>(default_device, a, mask, y); });
  bench.time("gelu_tanh, dropout", n, 1, 1,
             [&] { launch<kernel::ActivationDropout<GeluTanh>>(default_device, a, mask, y); });
  bench.time("gelu_tanh, dropout, back", n, 2, 1,
             [&] { launch<kernel::ActivationDropoutBack<GeluTanh>>(default_device, a, b, mask, dx); });
  bench.time("dropout, add", n, 2, 1, [&] { launch<kernel::AddDropout>(default_device, a, b, mask, y); });
}

void rows(Ops& bench, Rng& rng) {
  {
    const int64_t count = unless_emulated(8192, 256);
    const Shape shape{count, 384};
    const Tensor x = numbers(shape, rng), dy = numbers(shape, rng), y(shape), dx(shape);
    const Tensor gain = numbers(Shape{384}, rng), bias = numbers(Shape{384}, rng), dgain(Shape{384}),
                 dbias(Shape{384}), mean(Shape{count}), rstd(Shape{count});
    const auto variance = kernel::NormScale::variance;
    bench.time("layer norm of 384", shape.size(), 1, 1, [&] {
      launch<kernel::LayerNorm>(
          default_device,
          kernel::LayerNormTensors{.x = x, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd},
          1e-5, variance);
    });
    const kernel::DropoutMask mask{.p = 0.2, .draw = rng.next()};
    bench.time("dropout, add, norm 384", shape.size(), 2, 2, [&] {
      launch<kernel::AddDropoutNorm>(
          default_device, x, dy, mask,
          kernel::LayerNormTensors{.x = dx, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd},
          1e-5, variance);
    });
    bench.time("layer norm of 384, back", shape.size(), 2, 1, [&] {
      launch<kernel::LayerNormBack>(default_device,
                                    kernel::LayerNormBackTensors{.x = x,
                                                                 .gain = gain,
                                                                 .mean = mean,
                                                                 .rstd = rstd,
                                                                 .dy = dy,
                                                                 .dx = dx,
                                                                 .dgain = dgain,
                                                                 .dbias = dbias},
                                    1e-5, variance);
    });
  }
  const int64_t squares = unless_emulated(1024, 256);
  const Shape shape{64 * squares, 64};
  const Tensor x = numbers(shape, rng), y(shape), dx(shape);
  bench.time("softmax of 64", shape.size(), 1, 1, [&] { launch<kernel::Softmax>(default_device, x, y); });
  bench.time("softmax of 64, back", shape.size(), 2, 1,
             [&] { launch<kernel::SoftmaxBack>(default_device, y, x, dx); });
  const Tensor scores = view::reshape(x, Shape{squares, 1, 64, 64});
  const Mask causal = Mask::causal();
  bench.time("softmax of 64, causal", shape.size(), 1, 1, [&] {
    const NoGrad no_grad;
    softmax(scores + causal.dense(scores, 0));
  });
}

void words(Ops& bench, Rng& rng) {
  const int64_t count = unless_emulated(2800, 100), vocabulary = unless_emulated(22463, 20);
  constexpr int64_t width = 512;
  {
    const Tensor logits = numbers(Shape{count, vocabulary}, rng), slopes(logits.shape()), lse(Shape{count}),
                 loss(Shape{1}), counted(Shape{1}), one = Tensor::full(Shape{1}, 1);
    const Tensor wanted = ids(count, vocabulary, rng);
    bench.time("cross entropy, both ways", logits.size(), 1, 1, [&] {
      launch<kernel::CrossEntropy>(default_device, logits, wanted, 0.1, -1, lse, loss, counted);
      launch<kernel::CrossEntropyBack>(default_device,
                                       kernel::CrossEntropyBackTensors{.logits = logits,
                                                                       .targets = wanted,
                                                                       .lse = lse,
                                                                       .counted = counted,
                                                                       .dloss = one,
                                                                       .dlogits = slopes},
                                       0.1, -1);
    });
  }
  const Tensor table = numbers(Shape{vocabulary, width}, rng), vectors(Shape{count, width});
  const Tensor wanted = ids(count, vocabulary, rng);
  bench.time("embedding", vectors.size(), 1, 1,
             [&] { launch<kernel::Gather>(default_device, table, wanted, vectors); });
  bench.time(
      "embedding, back", vectors.size(), 2, 1,
      [&] { launch<kernel::ScatterAdd>(default_device, wanted, vectors, table); }, InPlace::yes);
}

void optimizer(Ops& bench, Rng& rng) {
  const std::vector<double> state_values{1e-4, 10, 1, 0.9, 0};
  const Tensor state = Tensor::of<double>(state_values, Shape{5});
  for (const auto& [name, count] :
       {std::pair{"AdamW of 0.8M", int64_t{800'000}}, std::pair{"AdamW of 23M", int64_t{23'000'000}}}) {
    const Shape shape{unless_emulated(count, 256)};
    const Tensor values = numbers(shape, rng), gradient = numbers(shape, rng), first = Tensor::zeros(shape),
                 second = Tensor::zeros(shape);
    bench.time(
        name, shape.size(), 4, 3,
        [&, v = values, g = gradient, m = first, s = second] {
          launch<kernel::AdamW>(default_device, v, g, m, s, state, kernel::AdamWConstants{.clip = 1});
        },
        InPlace::yes);
  }
}

/// The overhead of calling an op: its elements are calls.
void calls(Ops& bench, Rng& rng) {
  const int64_t many = unless_emulated(1000, 20);
  const Tensor a = numbers(Shape{16}, rng), b = leaf(numbers(Shape{16}, rng));
  bench.time("call of add", many, 0, 0, [&] {
    const NoGrad no_grad;
    for (int64_t i = 0; i < many; ++i) a + b;
  });
  bench.time("call of add, recorded", many, 0, 0, [&] {
    for (int64_t i = 0; i < many; ++i) a + b;
  });
}

}  // namespace

void Ops::time(const char* name, int64_t elements, double reads, double writes,
               const std::function<void()>& run, InPlace in_place) {
  known_.emplace_back(name);
  if (std::string(name).find(word_) == std::string::npos) return;
  found_ = true;
  const ContextSwitches interruptions;
  const double taken = median_time(run);
  const auto bytes = [&](double times) {
    return static_cast<int64_t>(times * sizeof(float) * static_cast<double>(elements));
  };
  const double ns_each = 1e9 / static_cast<double>(elements);  // seconds in nanoseconds for each element
  Json row =
      Json::object({{"op", name}, {"elements", elements}, {"ns", ns_each * taken}, {"ms", 1e3 * taken}});
  if (reads + writes > 0) {
    const double pass =
        pass_time({.read = bytes(reads), .written = bytes(writes), .in_place = in_place == InPlace::yes});
    row.set("pass_ns", ns_each * pass);
    row.set("ratio", taken / pass);
    row.set("share", 100 * pass / taken);
    row.set("gb_per_s", 1e-9 * static_cast<double>(bytes(reads + writes)) / taken);
  }
  row.set("interruptions_per_s", interruptions.per_second());
  table_.row(with_machine_metadata(std::move(row)));
}

void Ops::check_found() const {
  if (!found_) fail("bench ops: no op has '", word_, "' in its name.", suggestion(word_, known_));
}

void bench_ops(const ParsedArguments& arguments) {
  std::vector<Column> columns{{"op", "op"},         {"elements", "elements", 0},
                              {"ns each", "ns", 3}, {"one pass", "pass_ns", 3},
                              {"ratio", "ratio"},   {"GB/s", "gb_per_s", 0}};
  if (default_device != Device::cpu) columns.push_back({"of limit %", "share", 0});
  Table table(columns, arguments.has("json"));
  Rng rng(1);
  Ops bench(table, arguments.positional.size() > 1 ? arguments.positional[1] : "");
  elementwise(bench, rng);
  rows(bench, rng);
  words(bench, rng);
  optimizer(bench, rng);
  sequence_ops(bench, rng);
  calls(bench, rng);
  bench.check_found();
}

}  // namespace heed::bench
