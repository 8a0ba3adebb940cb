// Streams of the emulated device that run work late or early: proves that copies wait for other work where
// necessary.
#include <array>
#include <functional>
#include <thread>

#include "heed/core/constant_table.h"
#include "heed/core/cuda/device/grid.h"
#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/cuda/runtime/pinned_staging.h"
#include "heed/tests/any_device.h"

using namespace heed;
using emulated::StreamOrder;

namespace {

__global__ void add_to(const int32_t* x, int32_t* sum) { *sum += *x; }

/// Streams in this order while one lives.
struct InOrder {
  explicit InOrder(StreamOrder order) { emulated::order_streams(order); }
  ~InOrder() { emulated::order_streams(StreamOrder::at_once); }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;
};

/// Which of the two waits are left out.
struct Faults {
  bool arrived = false, taken = false;
};

/// Sums 1 + ... + 9, each number brought over in one buffer by a stream of its own.
int64_t sum_by_copies(StreamOrder order, Faults left_out) {
  const cudaStream_t work = cuda::stream();  // the first of all
  const InOrder streams(order);
  cudaStream_t copies = nullptr;
  cudaEvent_t arrived = nullptr, taken = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&arrived, cudaEventDisableTiming) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&taken, cudaEventDisableTiming) == cudaSuccess);
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 9 * sizeof(int32_t)) == cudaSuccess);
  const Tensor buffer = Tensor::zeros(Shape{1}, DType::i32, Device::cuda),
               sum = Tensor::zeros(Shape{1}, DType::i32, Device::cuda);
  cuda::synchronize();
  for (int32_t n = 0; n < 9; ++n) {
    int32_t* const from = static_cast<int32_t*>(pinned) + n;
    *from = n + 1;
    if (!left_out.taken) cudaStreamWaitEvent(copies, taken);
    cudaMemcpyAsync(buffer.raw(), from, sizeof *from, cudaMemcpyHostToDevice, copies);
    cudaEventRecord(arrived, copies);
    if (!left_out.arrived) cudaStreamWaitEvent(work, arrived);
    cuda::run(add_to, {dim3(1), dim3(1)}, buffer.data<int32_t>(), sum.data<int32_t>());
    cudaEventRecord(taken, work);
  }
  const auto found = static_cast<int64_t>(sum.item());
  cudaStreamSynchronize(copies);
  cudaFreeHost(pinned);
  cudaEventDestroy(arrived);
  cudaEventDestroy(taken);
  cudaStreamDestroy(copies);
  return found;
}

}  // namespace

TEST_CASE(
    "emulated streams: a wait that is left out shows, late copies by what has not come, early ones by what "
    "is "
    "gone") {
  for (const StreamOrder order : {StreamOrder::at_once, StreamOrder::late, StreamOrder::early}) {
    CAPTURE(static_cast<int>(order));
    CHECK(sum_by_copies(order, {}) == 45);
  }
  CHECK(sum_by_copies(StreamOrder::late, {.arrived = true}) != 45);
  CHECK(sum_by_copies(StreamOrder::early, {.taken = true}) != 45);
}

TEST_CASE(
    "emulated streams: work asked for where nothing is computed is never done, and what came before is") {
  const Tensor sum = Tensor::zeros(Shape{1}, DType::i32, Device::cuda),
               one = Tensor::full(Shape{1}, 1, DType::i32, Device::cuda);
  const auto add = [&] { cuda::run(add_to, {dim3(1), dim3(1)}, one.data<int32_t>(), sum.data<int32_t>()); };
  cuda::synchronize();
  {
    const InOrder late(StreamOrder::late);
    add();
    CHECK(emulated::order_streams(StreamOrder::never) == StreamOrder::late);
    add();
  }
  CHECK(sum.item() == 1);
  add();
  CHECK(sum.item() == 2);
}

TEST_CASE("emulated streams: late work is not done before somebody waits, and then in order") {
  const cudaStream_t work = cuda::stream();
  const InOrder streams(StreamOrder::late);
  std::vector<int> done;
  const auto note = [&](int n) { emulated::enqueue(work, [&done, n] { done.push_back(n); }); };
  cudaEvent_t middle = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&middle, cudaEventDisableTiming) == cudaSuccess);
  note(1);
  cudaEventRecord(middle, work);
  note(2);
  CHECK(done.empty());
  CHECK(cudaEventQuery(middle) == cudaErrorNotReady);
  CHECK(cudaEventSynchronize(middle) == cudaSuccess);
  CHECK(done == std::vector<int>{1});
  CHECK(cudaEventQuery(middle) == cudaSuccess);
  note(3);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(done == std::vector<int>{1, 2, 3});
  cudaEventDestroy(middle);
}

TEST_CASE("emulated streams: ordinary memory may be changed after a copy was asked, pinned memory may not") {
  const cudaStream_t work = cuda::stream();
  const Tensor x(Shape{1}, DType::i32, Device::cuda);
  const InOrder streams(StreamOrder::late);
  int32_t ordinary = 5;
  cuda::copy_in(x.raw(), &ordinary, sizeof ordinary);
  ordinary = 6;
  CHECK(x.item() == 5);
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, sizeof(int32_t)) == cudaSuccess);
  *static_cast<int32_t*>(pinned) = 7;
  cudaMemcpyAsync(x.raw(), pinned, sizeof(int32_t), cudaMemcpyHostToDevice, work);
  *static_cast<int32_t*>(pinned) = 8;
  CHECK(x.item() == 8);
  cudaFreeHost(pinned);
}

TEST_CASE("staging: what is sent is what is taken, in any order of streams, while the host runs ahead") {
  for (const StreamOrder order : {StreamOrder::at_once, StreamOrder::late, StreamOrder::early}) {
    CAPTURE(static_cast<int>(order));
    const InOrder streams(order);
    std::array<std::unique_ptr<cuda::Staging>, 2> all{cuda::make_staging(), cuda::make_staging()};
    std::vector<Tensor> taken;
    for (int32_t n = 0; n < 12; ++n) {
      cuda::Staging& one = *all[static_cast<size_t>(n) % 2];
      const int64_t count = n == 7 ? 4000 : 3;  // then it grows
      auto* const room = reinterpret_cast<int32_t*>(one.room(count * 4));
      for (int64_t i = 0; i < count; ++i) room[i] = 10 * n + static_cast<int32_t>(i % 3);
      one.send();
      taken.emplace_back(Shape{2}, DType::i32, Device::cuda);
      one.take(taken.back().raw(), (count - 2) * 4, 8);
      one.release();
    }
    for (size_t n = 0; n < taken.size(); ++n) {
      const int64_t count = n == 7 ? 4000 : 3;
      const std::vector<double> found = taken[n].to_doubles();
      CHECK(found[0] == static_cast<double>(10 * n) + static_cast<double>((count - 2) % 3));
      CHECK(found[1] == static_cast<double>(10 * n) + static_cast<double>((count - 1) % 3));
    }
  }
}

TEST_CASE("emulated device: whatever makes the host wait, or takes or gives back memory, breaks a capture") {
  const Tensor x = Tensor::zeros(Shape{4}, DType::f32, Device::cuda);
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDefault) == cudaSuccess);
  void *memory = nullptr, *pinned = nullptr;
  REQUIRE(cudaMalloc(&memory, 64) == cudaSuccess);
  REQUIRE(cudaMallocHost(&pinned, 64) == cudaSuccess);
  struct Violation {
    const char* what;
    std::function<cudaError_t()> act;
  };
  void* more = nullptr;
  const std::vector<Violation> violations{
      {"waits for the stream", [&] { return cudaStreamSynchronize(cuda::stream()); }},
      {"waits for the device", [&] { return cudaDeviceSynchronize(); }},
      {"waits for an event of the step",
       [&] { return cudaEventRecord(event, cuda::stream()), cudaEventSynchronize(event); }},
      {"asks for an event", [&] { return cudaEventQuery(event); }},
      {"uses the default stream", [&] { return cudaMemsetAsync(x.raw(), 0, 16, nullptr); }},
      {"takes memory", [&] { return cudaMalloc(&more, 64); }},
      {"gives memory back", [&] { return cudaFree(memory); }},
      {"takes pinned memory", [&] { return cudaMallocHost(&more, 64); }},
      {"gives pinned memory back", [&] { return cudaFreeHost(pinned); }}};
  for (const Violation& one : violations) {
    CAPTURE(one.what);
    REQUIRE(cudaStreamBeginCapture(cuda::stream(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(one.act() == cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(cuda::stream(), &graph) == cudaErrorStreamCaptureInvalidated);
  }
  // In another thread the same is no part of the step.
  REQUIRE(cudaStreamBeginCapture(cuda::stream(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  cudaError_t beside = cudaErrorInvalidValue;
  std::thread([&] { beside = cudaMalloc(&more, 64); }).join();
  CHECK(beside == cudaSuccess);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(cuda::stream(), &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
  for (void* one : {memory, more}) CHECK(cudaFree(one) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  cudaEventDestroy(event);
}

TEST_CASE(
    "emulated device: a graph keeps addresses of ordinary memory, and copies what lies there when it is "
    "replayed") {
  const Tensor x = Tensor::zeros(Shape{4}, DType::f32, Device::cuda);
  std::array<float, 4> there{1, 1, 1, 1}, back{};
  REQUIRE(cudaStreamBeginCapture(cuda::stream(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudaMemcpyAsync(x.raw(), there.data(), 16, cudaMemcpyHostToDevice, cuda::stream()) == cudaSuccess);
  CHECK(cudaMemcpyAsync(back.data(), x.raw(), 16, cudaMemcpyDeviceToHost, cuda::stream()) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(cuda::stream(), &graph) == cudaSuccess);
  CHECK(back[0] == 0);
  there.fill(2);
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph) == cudaSuccess);
  CHECK(cudaGraphLaunch(exec, cuda::stream()) == cudaSuccess);
  CHECK(cudaStreamSynchronize(cuda::stream()) == cudaSuccess);
  CHECK(back[3] == 2);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_CASE(
    "capture: copies from and to ordinary memory, and waits, are refused by name before CUDA is asked") {
  const Tensor x = Tensor::zeros(Shape{4}, DType::f32, Device::cuda);
  std::array<float, 4> here{};
  const std::vector<float> never_seen{0.123F, 4.56F};
  struct Violation {
    const char* why;
    std::function<void()> act;
  };
  const std::vector<Violation> violations{
      {"a copy from ordinary memory", [&] { cuda::copy_in(x.raw(), here.data(), 16); }},
      {"a copy from ordinary memory", [&] { constant_bytes(never_seen, Device::cuda); }},
      {"reading numbers of the device", [&] { cuda::copy_out(here.data(), x.raw(), 16); }},
      {"waiting for the device", [] { cuda::synchronize(); }},
      {"reading invalid indices", [] { cuda::request_index_errors(); }}};
  for (const Violation& one : violations) {
    CAPTURE(one.why);
    {
      cuda::Capture capture;
      CHECK_THROWS_MATCHES(one.act(), Error, Catch::Matchers::Predicate<Error>([&](const Error& error) {
                             return error.fault() == Fault::device &&
                                    std::string(error.what()).find(one.why) != std::string::npos;
                           }));
      CHECK(capture.finish()->kernels() == 0);  // nothing is broken, and nothing recorded
    }
    CHECK_NOTHROW(one.act());
  }
}

TEST_CASE("capture: what a recorded step reads stays for as long as the graph") {
  std::weak_ptr<Storage> memory;
  std::unique_ptr<cuda::Graph> graph;
  const Tensor to = Tensor::zeros(Shape{1}, DType::i32, Device::cuda);
  {
    const Tensor x = Tensor::of<int32_t>(std::vector<int32_t>{5}, Shape{1}, Device::cuda);
    memory = x.storage();
    cuda::hold(x.storage());  // nothing is recorded
    cuda::Capture capture;
    cuda::hold(x.storage());
    cuda::run(add_to, {dim3(1), dim3(1)}, x.data<int32_t>(), to.data<int32_t>());
    graph = capture.finish();
  }
  CHECK_FALSE(memory.expired());
  graph->launch();
  CHECK(to.item() == 5);
  graph.reset();
  CHECK(memory.expired());
}
