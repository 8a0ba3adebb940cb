// CPU and CUDA kernels agree: equal outputs on every device, at sizes that take each path. Other tests
// compare the CPU kernels with plain loops.
#include <algorithm>

#include "heed/core/kernels/attention/additive_score.h"
#include "heed/core/kernels/content/bucket.h"
#include "heed/core/kernels/content/gather.h"
#include "heed/core/kernels/content/prob_sparse.h"
#include "heed/core/kernels/content/segment_mean.h"
#include "heed/core/kernels/content/sort.h"
#include "heed/core/kernels/elementwise/depthwise_convolution.h"
#include "heed/core/kernels/norm/cross_entropy.h"
#include "heed/core/kernels/norm/layer_norm.h"
#include "heed/core/launch.h"
#include "heed/tests/core/kernels/arguments_on_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

/// Runs K on the CPU and twice on every other device, each time from the initial outputs. Outputs may differ
/// from the CPU's by `max_difference`; the second run must give the bits of the first.
template <Kernel K, class... Args>
void agree(double max_difference, const std::vector<Tensor>& outputs, const Args&... args) {
  const auto copies = [&] {
    std::vector<Tensor> out;
    for (const Tensor& output : outputs) {
      out.push_back(empty_like(output));
      launch<kernel::Copy>(Device::cpu, output, out.back());
    }
    return out;
  };
  const auto set_outputs = [&](const std::vector<Tensor>& values) {
    for (size_t i = 0; i < values.size(); ++i) launch<kernel::Copy>(Device::cpu, values[i], outputs[i]);
  };
  const std::vector<Tensor> initial = copies();
  launch<K>(Device::cpu, args...);
  const std::vector<Tensor> of_cpu = copies();
  for (const Device device : devices()) {
    if (device == Device::cpu) continue;
    set_outputs(initial);
    launch_on<K>(device, args...);
    const std::vector<Tensor> first_run = copies();
    set_outputs(initial);
    launch_on<K>(device, args...);
    for (size_t i = 0; i < of_cpu.size(); ++i) {
      CAPTURE(i);
      CHECK(distance(first_run[i], of_cpu[i]) <= max_difference);
      CHECK(same_bits(copies()[i], first_run[i]));
    }
  }
  set_outputs(of_cpu);
}

DType any_float() { return GENERATE(DType::f32, DType::f64); }

Tensor zeros(const Shape& shape, DType dtype) { return Tensor::zeros(shape, dtype); }

Tensor lengths_of(const std::vector<int32_t>& lengths) {
  return Tensor::of<int32_t>(lengths, Shape{static_cast<int64_t>(lengths.size())});
}

/// Few different numbers, with zeros of both signs, infinities and NaN among them.
Tensor coarse(const Shape& shape, DType dtype) {
  const Tensor ids = random_ids(shape, 40);
  std::vector<double> values;
  for (const double id : ids.to_doubles())
    values.push_back(id == 0   ? -0.0
                     : id == 1 ? 0.0
                     : id == 2 ? NAN
                     : id == 3 ? -INFINITY
                     : id == 4 ? INFINITY
                               : id - 20);
  const Tensor out(shape, dtype);
  launch<kernel::Copy>(Device::cpu, Tensor::of<double>(values, shape), out);
  return out;
}

}  // namespace

TEST_CASE("twins: rows of any length have one order") {
  const int64_t n = GENERATE(1, 31, 4096, 4097, 9000, 70000);
  const int64_t rows = n > 5000 ? 2 : 5;
  const Tensor order(Shape{rows, n}, DType::i32);
  agree<kernel::Argsort>(0, {order}, random_ids(Shape{rows, n}, 1000), order);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = coarse(Shape{rows, n}, dtype);
    agree<kernel::Argsort>(0, {order}, x, order);
    for (const int64_t k : {int64_t{1}, n / 3, n}) {
      const Tensor which(Shape{rows, std::max<int64_t>(k, 1)}, DType::i32);
      agree<kernel::TopK>(0, {which}, x, which);
      agree<kernel::TopK>(0, {which}, random_tensor(Shape{rows, n}, dtype), which);
    }
  }
}

TEST_CASE("twins: rows are added to tables of any size") {
  const DType dtype = any_float();
  const int32_t places = GENERATE(1, 3, 40, 7000);
  const int64_t width = GENERATE(1, 70);
  const int64_t count = GENERATE(1, 100, 6000);
  const Tensor table = random_tensor(Shape{places, width}, dtype);
  agree<kernel::ScatterAdd>(5 * tolerance(dtype), {table}, random_ids(Shape{count}, places),
                            random_tensor(Shape{count, width}, dtype, 2), table);
  const Tensor y = random_tensor(Shape{2, 2, places, width}, dtype);
  agree<kernel::ScatterAddRows>(5 * tolerance(dtype), {y}, random_ids(Shape{2, 2, count}, places),
                                random_tensor(Shape{2, 2, count, width}, dtype, 2), y);
}

TEST_CASE("twins: depthwise convolutions and the gradients of their taps") {
  const DType dtype = any_float();
  const int64_t taps = GENERATE(1, 4, 16), length = GENERATE(1, 5, 700), channels = GENERATE(1, 33, 300);
  const Shape shape{3, length, channels};
  const Tensor x = random_tensor(shape, dtype), dy = random_tensor(shape, dtype, 2),
               weight = random_tensor(Shape{taps, channels}, dtype, 3);
  const Tensor y = empty_like(x), dtaps = empty_like(weight);
  for (const kernel::TapPlaces places :
       {kernel::TapPlaces{.first = 1 - taps}, {.first = taps - 1, .step = -1}, {.first = -(taps / 2)}}) {
    agree<kernel::DepthwiseConvolution>(tolerance(dtype), {y}, x, weight, places, y);
    agree<kernel::DepthwiseConvolutionTaps>(50 * tolerance(dtype), {dtaps}, x, dy, places, dtaps);
  }
}

TEST_CASE("twins: layers of any width are normalised") {
  const DType dtype = any_float();
  const auto scale =
      GENERATE(kernel::NormScale::variance, kernel::NormScale::deviation, kernel::NormScale::rms);
  const int64_t width = GENERATE(1, 64, 65, 128, 129, 300, 700, 1000, 1024, 1025, 3000);
  const int64_t rows = width > 500 ? 70 : 5000;
  const Shape shape{rows, width};
  const Tensor x = random_tensor(shape, dtype), dy = random_tensor(shape, dtype, 2);
  const Tensor gain = random_tensor(Shape{width}, dtype, 3), bias = random_tensor(Shape{width}, dtype, 4);
  const Tensor y = empty_like(x), dx = empty_like(x), dgain = empty_like(gain), dbias = empty_like(gain);
  const Tensor mean(Shape{rows}, dtype), rstd(Shape{rows}, dtype);
  const double allowed = width == 1 ? 1e-6 : tolerance(dtype);
  agree<kernel::LayerNorm>(
      allowed, {y, mean},
      kernel::LayerNormTensors{.x = x, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd}, 1e-3,
      scale);
  agree<kernel::LayerNormBack>(5 * allowed, {dx, dgain, dbias},
                               kernel::LayerNormBackTensors{.x = x,
                                                            .gain = gain,
                                                            .mean = mean,
                                                            .rstd = rstd,
                                                            .dy = dy,
                                                            .dx = dx,
                                                            .dgain = dgain,
                                                            .dbias = dbias,
                                                            .so_far = width % 2 == 0 ? x : Tensor()},
                               1e-3, scale);
}

TEST_CASE("twins: addressing and its gradients, whatever is left out") {
  const DType dtype = any_float();
  const int64_t keys = GENERATE(1, 5, 300);
  const bool causal = GENERATE(false, true);
  const int parts = GENERATE(range(0, 16));
  const int64_t B = 2, H = 2, Tq = 5;
  const auto maybe = [&](int part, const Tensor& x) { return (parts >> part & 1) != 0 ? x : Tensor(); };
  const Tensor content = random_tensor(Shape{B, H, Tq, keys}, dtype, 1, 0.1, 1),
               before = maybe(0, random_tensor(Shape{B, H, keys}, dtype, 2, 0.1, 1)),
               gate = maybe(1, random_tensor(Shape{B, H, Tq}, dtype, 3, 0.1, 0.9)),
               shift = maybe(2, random_tensor(Shape{B, H, Tq, 3}, dtype, 4, 0.1, 1)),
               sharp = maybe(3, random_tensor(Shape{B, H, Tq}, dtype, 5, 1, 3));
  const kernel::AddressingParams params{
      .causal = causal, .first_query = 1, .key_lengths = lengths_of({static_cast<int32_t>(keys), 3})};
  const Tensor out = zeros(content.shape(), dtype), dout = random_tensor(content.shape(), dtype, 6);
  const auto slope = [](const Tensor& x) { return x ? Tensor::zeros(x.shape(), x.dtype()) : x; };
  const Tensor dcontent = slope(content), dbefore = slope(before), dgate = slope(gate), dshift = slope(shift),
               dsharp = slope(sharp);
  std::vector<Tensor> gradients = {dcontent};
  for (const Tensor& x : {dbefore, dgate, dshift, dsharp})
    if (x) gradients.push_back(x);
  agree<kernel::NtmAddressing>(
      tolerance(dtype), {out},
      kernel::AddressingInputs{
          .content = content, .before = before, .gate = gate, .shift = shift, .sharp = sharp},
      params, out);
  agree<kernel::NtmAddressingBack>(
      5 * tolerance(dtype), gradients,
      kernel::AddressingInputs{
          .content = content, .before = before, .gate = gate, .shift = shift, .sharp = sharp},
      params, out, dout,
      kernel::AddressingInputs{
          .content = dcontent, .before = dbefore, .gate = dgate, .shift = dshift, .sharp = dsharp});
}

TEST_CASE("twins: attention to windows and its gradients") {
  const DType dtype = any_float();
  const auto window = GENERATE(kernel::WindowCentre::real, kernel::WindowCentre::floor);
  const auto gauss = GENERATE(kernel::Gauss::none, kernel::Gauss::post, kernel::Gauss::pre_score);
  const int64_t half_width = GENERATE(0, 3, 100);
  const bool causal = GENERATE(false, true);
  const int64_t B = 2, H = 3, Tq = 37, Tk = 41, d = 5, dv = 40;
  const Tensor q = view::transpose(random_tensor(Shape{B, Tq, H, d}, dtype), 1, 2),
               k = random_tensor(Shape{B, H, Tk, d}, dtype, 2),
               v = random_tensor(Shape{B, H, Tk, dv}, dtype, 3);
  const Tensor centre = random_tensor(Shape{B, H, Tq}, dtype, 4, -6, 50),
               dout = random_tensor(Shape{B, H, Tq, dv}, dtype, 5);
  const kernel::LocalParams params{.scale = 0.7,
                                   .half_width = half_width,
                                   .sigma = 2.5,
                                   .window = window,
                                   .gauss = gauss,
                                   .causal = causal,
                                   .first_query = 2,
                                   .key_lengths = lengths_of({29, 0})};
  const Tensor out = empty_like(dout), dq = zeros(Shape{B, H, Tq, d}, dtype), dk = empty_like(k),
               dv_out = empty_like(v), dcentre = empty_like(centre);
  agree<kernel::LocalAttention>(tolerance(dtype), {out}, q, k, v, centre, params, out);
  agree<kernel::LocalAttentionBack>(5 * tolerance(dtype), {dq, dk, dv_out, dcentre},
                                    kernel::LocalAttentionBackTensors{.q = q,
                                                                      .k = k,
                                                                      .v = v,
                                                                      .centre = centre,
                                                                      .dout = dout,
                                                                      .dq = dq,
                                                                      .dk = dk,
                                                                      .dv = dv_out,
                                                                      .dcentre = dcentre},
                                    params);
}

TEST_CASE("twins: additive scores and their gradients") {
  const DType dtype = any_float();
  const int64_t Tq = GENERATE(1, 6, 33), Tk = GENERATE(1, 300), A = GENERATE(1, 20), B = 2, H = 2;
  const Tensor left = random_tensor(Shape{B, H, Tq, A}, dtype),
               right = random_tensor(Shape{B, H, A, Tk}, dtype, 2),
               units = random_tensor(Shape{H, A}, dtype, 3),
               dscore = random_tensor(Shape{B, H, Tq, Tk}, dtype, 4);
  const Tensor score = empty_like(dscore), dleft = empty_like(left), dright = empty_like(right),
               dunits = zeros(Shape{B, H, A}, dtype);
  agree<kernel::AdditiveScore>(tolerance(dtype), {score}, left, right, units, score);
  agree<kernel::AdditiveScoreBack>(20 * tolerance(dtype), {dleft, dright, dunits},
                                   kernel::AdditiveInputs{.left = left, .right = right, .units = units},
                                   dscore,
                                   kernel::AdditiveInputs{.left = dleft, .right = dright, .units = dunits});
}

TEST_CASE("twins: measures and choices of queries") {
  const DType dtype = any_float();
  const int64_t N = GENERATE(1, 40, 700), factor = GENERATE(1, 5, 60), B = 2, H = 3, d = 20, M = N + 3;
  const Tensor lengths = lengths_of({static_cast<int32_t>(N), static_cast<int32_t>(N / 2)});
  const Tensor q = view::transpose(random_tensor(Shape{B, N, H, d}, dtype), 1, 2),
               k = random_tensor(Shape{B, H, M, d}, dtype, 2);
  const Tensor measure = zeros(Shape{B, H, N}, dtype);
  for (const bool causal : {false, true}) {
    const kernel::Sampling sampling{.factor = causal ? factor : 0, .causal = causal, .same_tokens = !causal};
    agree<kernel::SparsityMeasure>(tolerance(dtype), {measure}, q, k,
                                   random_tensor(Shape{N, 30}, dtype, 3, 0, 1), lengths, sampling, measure);
  }
  const Tensor which(Shape{B, H, std::min<int64_t>(N, 25)}, DType::i32);
  for (const Tensor& numbers : {coarse(measure.shape(), dtype), random_tensor(measure.shape(), dtype, 9)}) {
    agree<kernel::TopQueries>(0, {which}, numbers, lengths, factor, which);
    agree<kernel::CausalTopQueries>(0, {which}, numbers, lengths, factor, which);
  }
  const Tensor bias = zeros(Shape{B, H, which.extent(2), M}, dtype);
  agree<kernel::PrefixBias>(0, {bias}, which, bias);
}

TEST_CASE("twins: tiles, biases and lists of buckets") {
  const DType dtype = any_float();
  const bool by_bucket = GENERATE(false, true), causal = GENERATE(false, true), ring = GENERATE(false, true);
  const int64_t N = GENERATE(1, 50, 700), tile = 16, B = 2, H = 2, R = 3, f = 5;
  const Tensor lengths = lengths_of({static_cast<int32_t>(N), static_cast<int32_t>(N * 2 / 3)});
  const kernel::BucketWindow bucket_window{.window = by_bucket ? 24 : tile,
                                           .queries_per_tile = tile,
                                           .by_bucket = by_bucket,
                                           .causal = causal,
                                           .wraps_to_previous_round = ring,
                                           .hides_self = true,
                                           .counts_keys_once = causal};
  const Tensor buckets(Shape{B, H, R, N}, DType::i32), order(Shape{B, H, R, N}, DType::i32);
  agree<kernel::Buckets>(0, {buckets}, random_tensor(Shape{B, H, R, N, f}, dtype), true, lengths, int64_t{0},
                         2 * f, buckets);
  launch<kernel::Argsort>(Device::cpu, buckets, order);
  const int64_t T = (N + tile - 1) / tile + (by_bucket ? 2 * f + 1 : 0), E = bucket_window.window + tile;
  const Tensor queries(Shape{B, H, R, T * tile}, DType::i32), keys(Shape{B, H, R, T, E}, DType::i32),
      slots(Shape{B, H, R * N}, DType::i32);
  const Tensor bias = zeros(Shape{B * H, R * T, tile, E}, dtype);
  const kernel::BucketOrder sorted{.order = order, .buckets = buckets, .lengths = lengths};
  agree<kernel::BucketTiles>(0, {queries, keys, slots}, sorted, bucket_window, queries, keys, slots);
  agree<kernel::BucketBias>(tolerance(dtype), {bias}, sorted, bucket_window, queries, keys, bias);
  const Tensor ids(Shape{B, H, N, R * E}, DType::i32), id_bias = zeros(Shape{B, H, N, R * E}, dtype);
  agree<kernel::BucketLists>(0, {ids, id_bias}, keys, slots, bias, ids, id_bias);
  const int64_t late = std::min<int64_t>(N, 3);
  const Tensor recent(Shape{B, H, late, R * bucket_window.window}, DType::i32),
      recent_bias = zeros(recent.shape(), dtype);
  agree<kernel::RecentInBucket>(tolerance(dtype), {recent, recent_bias}, buckets, N - late, int32_t{2 * f},
                                bucket_window, recent, recent_bias);
}

TEST_CASE("twins: means of segments") {
  const DType dtype = any_float();
  const int64_t runs = GENERATE(1, 7, 60), B = 3, H = 2, T = 50, d = 33;
  const Tensor x = view::transpose(random_tensor(Shape{B, T, H, d}, dtype), 1, 2),
               lengths = lengths_of({50, 17, 0}), maximum = lengths_of({5, 40, 3});
  const Tensor y = zeros(Shape{B, H, runs, d}, dtype), dx = zeros(Shape{B, H, T, d}, dtype);
  for (const Tensor& fewer : {Tensor(), maximum}) {
    agree<kernel::SegmentMean>(tolerance(dtype), {y}, x, lengths, fewer, y);
    agree<kernel::SegmentMeanBack>(tolerance(dtype), {dx}, random_tensor(y.shape(), dtype, 2), lengths, fewer,
                                   dx);
  }
}
