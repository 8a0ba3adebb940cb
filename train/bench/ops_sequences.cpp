// heed bench ops: kernels that reduce, sort and gather, scans along a sequence, and attention by formulas.
#include <cmath>

#include "heed/autograd/no_grad.h"
#include "heed/autograd/node.h"
#include "heed/autograd/ops.h"
#include "heed/core/kernels/content/bucket.h"
#include "heed/core/kernels/content/gather.h"
#include "heed/core/kernels/content/segment_mean.h"
#include "heed/core/kernels/content/sort.h"
#include "heed/core/kernels/content/tree_attention.h"
#include "heed/core/kernels/content/tree_node.h"
#include "heed/core/kernels/elementwise/recurrent_cell.h"
#include "heed/core/kernels/linear_attention/decay_scan.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"
#include "heed/core/score_formula.h"
#include "heed/train/bench/machine_peaks.h"
#include "heed/train/bench/ops.h"

namespace heed::bench {
namespace {

void reductions(Ops& ops, Rng& rng) {
  const int64_t count = unless_emulated(8192, 256), width = 384;
  const Shape shape{count, width};
  const int64_t n = shape.size();
  const double row = 1.0 / static_cast<double>(width), column = 1.0 / static_cast<double>(count);
  const Tensor x = numbers(shape, rng), dx(shape), rows(Shape{count, 1}), columns(Shape{1, width}),
               places(Shape{count, 1}, DType::i64), total(Shape{1}, DType::f64);
  ops.time("sum of rows", n, 1, row, [&] { launch<kernel::Sum>(default_device, x, rows); });
  ops.time("sum of columns", n, 1, column, [&] { launch<kernel::Sum>(default_device, x, columns); });
  ops.time("max of rows", n, 1, 3 * row, [&] { launch<kernel::Max>(default_device, x, rows, places); });
  ops.time("max of rows, back", n, 3 * row, 1,
           [&] { launch<kernel::MaxBack>(default_device, places, rows, dx); });
  ops.time("cumulative sum", n, 1, 1,
           [&] { launch<kernel::CumulativeSum>(default_device, x, 1, false, dx); });
  ops.time("sum of squares", n, 1, 0, [&] { launch<kernel::SquareSum>(default_device, x, Tensor(), total); });
}

/// Four heads of 64 over a long sequence, as in attention with hashing, segments and trees.
void head_ops(Ops& ops, Rng& rng) {
  const int64_t batch = unless_emulated(8, 1), length = unless_emulated(4096, 128);
  constexpr int64_t heads = 4, width = 64, buckets = 64;
  const Shape shape{batch, heads, length, width}, list{batch, heads, length};
  const int64_t n = shape.size();
  const double each = 1.0 / width;
  const Tensor x = numbers(shape, rng), y(shape), keys = numbers(list, rng), order(list, DType::i32),
               few(Shape{batch, heads, 32}, DType::i32), none;
  ops.time("sort", list.size(), 1, 1, [&] { launch<kernel::Argsort>(default_device, keys, order); });
  ops.time("largest 32", list.size(), 1, 32.0 / static_cast<double>(length),
           [&] { launch<kernel::TopK>(default_device, keys, few); });
  launch<kernel::Argsort>(default_device, keys, order);
  ops.time("take of rows", n, 1 + each, 1, [&] { launch<kernel::GatherRows>(default_device, x, order, y); });
  ops.time(
      "take of rows, back", n, 2 + each, 1,
      [&] { launch<kernel::ScatterAddRows>(default_device, order, x, y); }, InPlace::yes);
  const int64_t runs = length / 16;
  const Tensor means(Shape{batch, heads, runs, width});
  ops.time("segment means", n, 1, 1.0 / 16,
           [&] { launch<kernel::SegmentMean>(default_device, x, none, none, means); });
  ops.time("segment means, back", n, 1.0 / 16, 1,
           [&] { launch<kernel::SegmentMeanBack>(default_device, means, none, none, y); });
  const Tensor scores = numbers(Shape{batch, heads, 1, length, buckets / 2}, rng),
               fell(Shape{batch, heads, 1, length}, DType::i32);
  ops.time("buckets", scores.size(), 1, 2.0 / buckets,
           [&] { launch<kernel::Buckets>(default_device, scores, true, none, 0, int32_t{buckets}, fell); });
  const Tensor nodes(Shape{batch, heads, kernel::tree_rows(length), width});
  ops.time("tree of sums", n, 1, 2, [&] { launch<kernel::TreeSums>(default_device, x, 0, nodes); });
}

void recurrences(Ops& ops, Rng& rng) {
  const int64_t count = unless_emulated(4096, 64), width = 512;
  const Tensor none;
  const auto cell = [&](const char* name, int64_t gates, int64_t parts, const auto& work) {
    const Tensor a = numbers(Shape{count, gates * width}, rng), b = numbers(a.shape(), rng), kept(a.shape()),
                 state = numbers(Shape{parts, count, width}, rng), next(state.shape());
    const auto once = static_cast<double>(gates), states = static_cast<double>(parts);
    ops.time(name, count * width, 2 * once + states, once + states, [&] { work(a, b, state, kept, next); });
  };
  cell(
      "lstm cell", 4, 2,
      [&](const auto& a, const auto& b, const auto& state, const auto& kept, const auto& next) {
        launch<kernel::LstmCell>(
            default_device,
            kernel::CellTensors{.a = a, .b = b, .state = state, .lengths = none, .gates = kept, .next = next},
            0);
      });
  cell(
      "gru cell", 3, 1,
      [&](const auto& a, const auto& b, const auto& state, const auto& kept, const auto& next) {
        launch<kernel::GruCell>(
            default_device,
            kernel::CellTensors{.a = a, .b = b, .state = state, .lengths = none, .gates = kept, .next = next},
            0);
      });
}

/// Causal sums over keys and values: bound by compute rather than memory, so far above one pass.
void scans(Ops& ops, Rng& rng) {
  const Shape shape{unless_emulated(8, 1), 4, unless_emulated(4096, 128), 64};
  const int64_t n = shape.size();
  const auto fresh = [&] { return Tensor(shape); };
  const Tensor q = numbers(shape, rng), k = numbers(shape, rng), v = numbers(shape, rng), out = fresh(),
               dout = numbers(shape, rng), dq = fresh(), dk = fresh(), dv = fresh(), none;
  const Tensor decay = Tensor::full(Shape{shape[0], shape[1], shape[2], 1}, -0.05), ddecay(decay.shape());
  const kernel::DecayInputs x{.q = q, .k = k, .v = v, .log_decay = decay, .beta = none, .start = none},
      dx{.q = dq, .k = dk, .v = dv, .log_decay = ddecay, .beta = none, .start = none};
  ops.time("decay scan", n, 3, 1, [&] { launch<kernel::DecayScan>(default_device, x, out, none, none); });
  ops.time("decay scan, back", n, 4, 3,
           [&] { launch<kernel::DecayScanBack>(default_device, x, none, dout, none, dx); });
}

/// Built-in forms of attention, each beside formulas for the same, which are compiled with the options of
/// this file: a causal mask, ALiBi. A step is a forward and a backward pass.
void attentions(Ops& ops, Rng& rng) {
  if (default_device != Device::cpu) return;  // formulas run on the CPU
  constexpr int64_t length = 2048, heads = 8;
  const Shape shape{2, heads, length, 64};
  const Tensor q = leaf(numbers(shape, rng)), k = leaf(numbers(shape, rng)), v = leaf(numbers(shape, rng)),
               dout = numbers(shape, rng);
  const auto time = [&](const std::string& name, const kernel::AttentionParams& params) {
    ops.time(name.c_str(), q.size(), 3, 1, [&] {
      const NoGrad no_grad;
      attention(q, k, v, params);
    });
    ops.time((name + ", step").c_str(), q.size(), 8, 4, [&] {
      backward(attention(q, k, v, params), dout);
      for (const Tensor* x : {&q, &k, &v}) x->node()->grad = Tensor();
    });
  };
  const auto sees = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i; };
  const auto bounds = [](int64_t, int64_t, int64_t i) { return KeyBounds{0, i + 1}; };
  time("attention, causal", {.scale = 0.125, .causal = true});
  time("attention, mask", {.scale = 0.125, .formulas = {.mask = mask_formula(sees)}});
  time("attention, bounds", {.scale = 0.125, .formulas = {.mask = mask_formula(sees, bounds)}});

  float slopes[heads];
  std::vector<float> distances;
  for (int64_t h = 0; h < heads; ++h) {
    slopes[h] = std::exp2(-static_cast<float>(h + 1));
    for (int64_t distance = 1 - length; distance < length; ++distance)
      distances.push_back(-slopes[h] * static_cast<float>(distance));
  }
  const auto alibi = [&slopes](int64_t, int64_t h, int64_t i, int64_t j, auto s) {
    return s - slopes[h] * static_cast<float>(i - j);
  };
  time("attention, ALiBi", {.scale = 0.125,
                            .causal = true,
                            .relative = Tensor::of<float>(distances, Shape{heads, 2 * length - 1})});
  time("attention, score", {.scale = 0.125, .causal = true, .formulas = {.score = score_formula(alibi)}});
}

}  // namespace

void sequence_ops(Ops& ops, Rng& rng) {
  reductions(ops, rng);
  head_ops(ops, rng);
  recurrences(ops, rng);
  scans(ops, rng);
  attentions(ops, rng);
}

}  // namespace heed::bench
