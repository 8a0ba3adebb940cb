// The log of kernels: what it records of calls whose work is known, of nested ones, and of several threads.
#include "heed/core/kernel_log.h"

#include <thread>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/content/tree_moments.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/kernels/linear_attention/polynomial_attention.h"
#include "heed/core/operation_count.h"
#include "heed/tests/any_device.h"

using namespace heed;

namespace {

int64_t device_launches(Device device) {
  if constexpr (built_with_cuda) return device == Device::cpu ? 0 : cuda::launches();
  return 0;
}

/// Copies x to y in three launches, so that it contains other kernels.
struct CopyByKernels {
  static void on(Device device, const Tensor& x, const Tensor& y) {
    launch<kernel::Copy>(device, x, y);
    launch<kernel::Affine>(device, y, 2.0, 0.0, y);
    launch<kernel::Affine>(device, y, 0.5, 0.0, y);
    Count::add(7);
  }
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& y) {
    on(Device::cpu, x, y);
  }
  static void cuda(const Tensor& x, const Tensor& y) { on(Device::cuda, x, y); }
};

/// A kernel that fails.
struct Failing {
  template <Isa>
  static void cpu(const Tensor&) {
    fail("it fails");
  }
  static void cuda(const Tensor&) { fail("it fails"); }
};

}  // namespace

TEST_CASE("kernel log: launches, bytes and operations of a sequence of kernels") {
  const Device device = any_device();
  const DefaultDevice here(device);
  const Tensor a = Tensor::zeros(Shape{5, 7}), b = Tensor::zeros(Shape{7, 9}), c(Shape{5, 9}),
               row = Tensor::zeros(Shape{9}), ids = Tensor::zeros(Shape{6}, DType::i32);
  const auto multiply = [&] { launch<kernel::Gemm>(device, a, b, c, 1.0, 0.0, Rounding::tf32); };
  multiply();  // nobody listens
  std::vector<KernelCall> calls;
  {
    const KernelLog log;
    CHECK(KernelLog::wanted());
    CHECK(log.calls().empty());
    CHECK_THROWS_WITH(KernelLog(), containing("one lives already"));
    multiply();
    launch<kernel::Zip<Add>>(device, c, view::expand(row, c.shape()), c);
    launch<kernel::Map<GeluTanh>>(device, c, c);
    launch<kernel::Copy>(device, ids, Tensor(Shape{6}, DType::i64));
    calls = log.calls();
  }
  CHECK_FALSE(KernelLog::wanted());
  multiply();
  REQUIRE(calls.size() == 4);
  CHECK(calls[0].kernel == "Gemm");
  CHECK(calls[0].bytes == 4 * (5 * 7 + 7 * 9 + 5 * 9));
  CHECK(calls[0].flops == 2 * 5 * 7 * 9);
  CHECK(calls[0].rounding == Rounding::tf32);
  CHECK(calls[1].kernel == "Zip<Add>");
  CHECK(calls[1].bytes == 4 * (45 + 9 + 45));  // the row, not what it is expanded to
  CHECK(calls[1].rounding == Rounding::none);
  CHECK(calls[2].kernel == "Map<GeluTanh>");
  CHECK(calls[2].bytes == 4 * 90);
  CHECK(calls[3].kernel == "Copy");
  CHECK(calls[3].bytes == 6 * 4 + 6 * 8);
  CHECK(calls[3].flops == 0);
  for (const KernelCall& call : calls) {
    CHECK(call.launches == 1);
    CHECK(call.seconds > 0);
  }
}

TEST_CASE("kernel log: tensors inside structs count, and launches of a kernel of several") {
  const Device device = any_device();
  const DefaultDevice here(device);
  const Shape shape{2, 3, 48, 32};
  const auto zeros = [](const Shape& of) { return Tensor::zeros(of); };
  const std::vector<int32_t> lengths{16, 48};
  const Tensor q = zeros(shape), lse = zeros(Shape{2, 3, 48});
  const kernel::AttentionParams params{.key_lengths = Tensor::of<int32_t>(lengths, Shape{2}),
                                       .bias = zeros(Shape{1, 1, 48, 48}),
                                       .rounding = Rounding::bf16};
  const kernel::AttentionBackTensors tensors{.q = q,
                                             .k = zeros(shape),
                                             .v = zeros(shape),
                                             .out = zeros(shape),
                                             .lse = lse,
                                             .dout = zeros(shape),
                                             .dq = zeros(shape),
                                             .dk = zeros(shape),
                                             .dv = zeros(shape)};
  const KernelLog log;
  Count::reset();
  const int64_t before = device_launches(device);
  launch<kernel::AttentionBack>(device, tensors, params);
  const std::vector<KernelCall> calls = log.calls();
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].kernel == "AttentionBack");
  CHECK(calls[0].bytes == 8 * q.bytes() + lse.bytes() + 2 * 4 + 48 * 48 * 4);
  CHECK(calls[0].rounding == Rounding::bf16);
  CHECK(calls[0].flops == Count::flops());
  CHECK(calls[0].flops > 0);
  CHECK(calls[0].launches == (device == Device::cpu ? 1 : device_launches(device) - before));
  CHECK((device == Device::cpu || calls[0].launches >= 2));
}

TEST_CASE("kernel log: arguments of kernels, by their kind") {
  const Tensor five = Tensor::zeros(Shape{5});
  CHECK(KernelArguments::of(five, 3, 2.0, Rounding::bf16, Tensor()).bytes == 20);
  CHECK(KernelArguments::of(five, 3, 2.0, Rounding::bf16, Tensor()).rounding == Rounding::bf16);
  CHECK(KernelArguments::of(std::vector<Tensor>{five, five}).bytes == 40);
  CHECK(KernelArguments::of(view::slice(five, 0, 1, 3)).bytes == 8);
  CHECK(KernelArguments::of(Tensor::zeros(Shape{0, 4})).bytes == 0);
  // The most members of all structs, with a list among them; a struct in a struct in a struct.
  CHECK(KernelArguments::of(kernel::PolynomialParams{.key_lengths = five, .draw = {.tick = five}}).bytes ==
        40);
  kernel::MomentParams moments;
  moments.growth.visible.key_lengths = five;
  CHECK(KernelArguments::of(moments).bytes == 20);
}

TEST_CASE("kernel log: a kernel that launches others counts once, with their launches and operations") {
  const Device device = any_device();
  const DefaultDevice here(device);
  const Tensor x = Tensor::zeros(Shape{40}), y(Shape{40});
  std::vector<KernelCall> parts, whole;
  {
    const KernelLog log;
    CopyByKernels::on(device, x, y);  // by hand: three calls
    parts = log.calls();
  }
  {
    const KernelLog log;
    launch<CopyByKernels>(device, x, y);
    launch<kernel::Copy>(device, x, y);  // recorded again
    whole = log.calls();
  }
  REQUIRE(parts.size() == 3);
  REQUIRE(whole.size() == 2);
  CHECK(whole[0].kernel == "CopyByKernels");
  CHECK(whole[0].bytes == 2 * 160);
  CHECK(whole[0].flops == parts[0].flops + parts[1].flops + parts[2].flops + 7);
  CHECK(whole[0].launches == (device == Device::cpu ? 1 : 3));
  CHECK(whole[1].kernel == "Copy");
}

TEST_CASE("kernel log: a kernel that fails is not recorded, and the next one is") {
  const Tensor x = Tensor::zeros(Shape{4});
  const KernelLog log;
  CHECK_THROWS_WITH(launch<Failing>(Device::cpu, x), containing("it fails"));
  CHECK(log.calls().empty());
  launch<kernel::Affine>(Device::cpu, x, 1.0, 0.0, x);
  REQUIRE(log.calls().size() == 1);
  CHECK(log.calls()[0].kernel == "Affine");
}

TEST_CASE("kernel log: calls of several threads are all in it") {
  constexpr int num_threads = 4, num_calls = 50;
  const KernelLog log;
  std::vector<std::jthread> running;
  for (int t = 0; t < num_threads; ++t) {
    running.emplace_back([t] {
      const Tensor x = Tensor::zeros(Shape{10 + t}), y(Shape{10 + t});
      for (int i = 0; i < num_calls; ++i) launch<CopyByKernels>(Device::cpu, x, y);
    });
  }
  running.clear();
  std::map<int64_t, int> by_bytes;
  int64_t launches = 0;
  for (const KernelCall& call : log.calls()) {
    launches += call.launches;
    if (call.kernel == "CopyByKernels") ++by_bytes[call.bytes];
  }
  CHECK(log.calls().size() == num_threads * (num_calls + 1));  // one fill a thread, by zeros()
  CHECK(launches == num_threads * (num_calls + 1));
  for (int t = 0; t < num_threads; ++t) CHECK(by_bytes[2 * 4 * (10 + t)] == num_calls);
}
