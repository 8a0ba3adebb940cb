// Memory of captured steps: kept while they can be replayed, freed on eviction.
#include "heed/core/cuda/emulator/cuda_runtime.h"
#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/gpu_info.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/memory/out_of_memory.h"
#include "heed/core/memory/storage.h"
#include "heed/core/tensor.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

constexpr int64_t mib = int64_t{1} << 20;

int64_t reserved() { return memory_use(Device::cuda).reserved; }

/// Holds so many MiB of the device.
Tensor of_mib(int64_t count) { return Tensor(Shape{count << 18}, DType::f32, Device::cuda); }

/// y = x + 1 by way of 40 MiB that are freed again.
void add_one(const Tensor& x, const Tensor& y) {
  const Tensor between = of_mib(40);
  const Tensor part = view::slice(between, 0, 0, x.size());
  launch<kernel::Affine>(Device::cuda, x, 1.0, 1.0, part);
  launch<kernel::Copy>(Device::cuda, part, y);
}

std::unique_ptr<cuda::Graph> recorded(const Tensor& x, const Tensor& y) {
  cuda::Capture capture;
  add_one(x, y);
  return capture.finish();
}

/// Replays it for other numbers.
void check_replay(cuda::Graph& graph, const Tensor& x, const Tensor& y, double number) {
  launch<kernel::Affine>(Device::cuda, x, 0.0, number, x);
  graph.launch();
  CHECK(y.to_doubles() == std::vector<double>(static_cast<size_t>(x.size()), number + 1));
}

/// Begins with nothing cached, and ends without a cap.
struct Fresh {
  Fresh() { release_cached(Device::cuda); }
  ~Fresh() {
    cap_memory(0, Device::cuda);
    heed::emulated::size_memory(0);
    release_cached(Device::cuda);
  }
};

}  // namespace

TEST_CASE("captured memory: a graph is replayed after cached memory was given back") {
  const Fresh fresh;
  const Tensor x = Tensor::zeros(Shape{1000}, DType::f32, Device::cuda), y = empty_like(x);
  auto graph = recorded(x, y);
  const int64_t held = reserved();
  release_cached(Device::cuda);
  REQUIRE(reserved() == held);
  check_replay(*graph, x, y, 3);
  graph.reset();
  release_cached(Device::cuda);
  CHECK(reserved() <= held - 40 * mib);
}

TEST_CASE("captured memory: a graph is replayed after memory has run out, by the cap or of the device") {
  const Fresh fresh;
  const Tensor x = Tensor::zeros(Shape{1000}, DType::f32, Device::cuda), y = empty_like(x);
  const auto graph = recorded(x, y);
  if (GENERATE(true, false))
    cap_memory(reserved() + mib, Device::cuda);
  else
    heed::emulated::size_memory(static_cast<size_t>(reserved() + mib));
  CHECK_THROWS_WITH(of_mib(45), containing("memory of the GPU: 47 MB are asked for"));
  CHECK(last_shortage() == Device::cuda);
  check_replay(*graph, x, y, 4);
}

TEST_CASE("captured memory: a graph that can be spared is given up where memory runs out") {
  const Fresh fresh;
  const Tensor x = Tensor::zeros(Shape{1000}, DType::f32, Device::cuda), y = empty_like(x);
  const auto graph = recorded(x, y), other = recorded(y, x);
  graph->evictable();
  other->evictable();
  cap_memory(reserved() + 8 * mib, Device::cuda);
  {
    const cuda::Capture capture;  // a step that is recorded takes no other's memory
    CHECK_THROWS_WITH(of_mib(60), containing("memory of the GPU"));
  }
  CHECK_FALSE(graph->given_up());
  CHECK_NOTHROW(of_mib(45));
  CHECK(graph->given_up());
  CHECK(other->given_up());
}

TEST_CASE("captured memory: what a step recorded in vain has taken is given back beside a graph's") {
  const Fresh fresh;
  const Tensor x = Tensor::zeros(Shape{1000}, DType::f32, Device::cuda), y = empty_like(x);
  const auto graph = recorded(x, y);
  const int64_t held = reserved();
  {
    const cuda::Capture capture;
    const Tensor more = of_mib(80), small = Tensor::zeros(Shape{10}, DType::f32, Device::cuda);
    CHECK(reserved() >= held + 80 * mib);
  }
  release_cached(Device::cuda);
  CHECK(reserved() == held);
  check_replay(*graph, x, y, 5);
}

TEST_CASE("captured memory: recording finds the room that the step as it is has left cached") {
  const Fresh fresh;
  const Tensor x = Tensor::zeros(Shape{1000}, DType::f32, Device::cuda), y = empty_like(x);
  add_one(x, y);
  const int64_t cached = reserved();
  {
    const cuda::Capture capture;
    CHECK(reserved() == cached);  // there is room for both
  }
  if (GENERATE(true, false))
    cap_memory(cached + mib, Device::cuda);
  else
    heed::emulated::size_memory(static_cast<size_t>(cached + mib));
  cuda::Capture capture;
  CHECK(reserved() <= cached - 40 * mib);  // not later: giving back waits for the device
  add_one(x, y);
  const auto graph = capture.finish();
  check_replay(*graph, x, y, 6);
}

TEST_CASE("captured memory: what is freed while a step is recorded can be given back then") {
  const Fresh fresh;
  const Tensor x = Tensor::zeros(Shape{1000}, DType::f32, Device::cuda), y = empty_like(x);
  Tensor held = of_mib(40);
  cap_memory(reserved() + mib, Device::cuda);
  cuda::Capture capture;
  held = Tensor();
  add_one(x, y);
  const auto graph = capture.finish();
  check_replay(*graph, x, y, 7);
}

TEST_CASE("captured memory: what a step has freed while it is recorded stays there") {
  const Fresh fresh;
  const Tensor x = Tensor::zeros(Shape{1000}, DType::f32, Device::cuda), y = empty_like(x);
  cuda::Capture capture;
  add_one(x, y);
  const int64_t held = reserved();
  cap_memory(held + mib, Device::cuda);
  CHECK_THROWS_WITH(of_mib(60), containing("memory of the GPU"));
  REQUIRE(reserved() == held);
  const auto graph = capture.finish();
  check_replay(*graph, x, y, 8);
}

TEST_CASE("captured memory: slabs of small tensors are given back with the rest") {
  const Fresh fresh;
  const int64_t held = reserved();
  {
    const Tensor large = of_mib(40);
    std::vector<Tensor> small;
    for (int i = 0; i < 2000; ++i) small.emplace_back(Shape{1 + 40 * (i % 7)}, DType::f32, Device::cuda);
  }
  release_cached(Device::cuda);
  CHECK(reserved() <= held);
}

TEST_CASE("gpu_free_bytes: what the device has left") {
  const Fresh fresh;
  heed::emulated::size_memory(static_cast<size_t>(reserved() + 100 * mib));
  const int64_t before = gpu_free_bytes();
  CHECK(before <= 100 * mib);
  const Tensor x = of_mib(50);
  CHECK(gpu_free_bytes() <= before - 50 * mib);
  CHECK(gpu_free_bytes() >= before - 52 * mib);
}
