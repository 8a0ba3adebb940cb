// The emulated device: blocks, barriers and shuffles as in CUDA, and detection of mistakes.
#include "heed/core/cuda/device/async.h"
#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/strided_offsets.h"
#include "heed/core/memory/storage.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

__global__ void number(int64_t* out) { out[cuda::global_thread()] = blockIdx.x * 1000 + threadIdx.x; }

/// Each thread reads what the one before it in the block wrote: right only behind the barrier.
__global__ void pass_on(bool wait, const int* in, int* out) {
  __shared__ int seen[64];
  const unsigned i = threadIdx.x;
  seen[i] = in[blockIdx.x * blockDim.x + i];
  if (wait) __syncthreads();
  out[blockIdx.x * blockDim.x + i] = seen[(i + 1) % blockDim.x];
}

__global__ void shuffles(const float* in, float* out) {
  const float mine = in[threadIdx.x];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float* to = out + threadIdx.x * 6;
  to[0] = __shfl_xor_sync(cuda::all_lanes, mine, 5);
  to[1] = __shfl_down_sync(cuda::all_lanes, mine, 3);
  to[2] = __shfl_up_sync(cuda::all_lanes, mine, 2, 16);
  to[3] = __shfl_sync(cuda::all_lanes, mine, 7);
  to[4] = static_cast<float>(__popc(__ballot_sync(cuda::all_lanes, lane % 3 == 0)));
  // Half of the warp alone, in a branch.
  to[5] = lane < 16 ? __shfl_xor_sync(0xffffU, mine, 1) : mine;
}

__global__ void sums(const double* in, double* out) {
  __shared__ double scratch[cuda::lanes];
  const int i = cuda::thread_number();
  const double sum = cuda::block_sum(in[i], scratch);
  out[2 * i] = sum;
  out[2 * i + 1] = cuda::block_max(in[i], -1e300, scratch);
}

__global__ void last_leaves_early(int* out) {
  if (threadIdx.x == 63) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

__global__ void lane_stays_away(int* out) {
  if (threadIdx.x == 5) return;
  out[threadIdx.x] = __shfl_xor_sync(cuda::all_lanes, 1, 1);
}

__global__ void dynamic(int count, float* out) {
  float* memory = cuda::shared<float>();
  out[0] = memory[0];  // nobody has written it
  __syncthreads();
  memory[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncthreads();
  out[1 + threadIdx.x] = memory[count - 1 - static_cast<int>(threadIdx.x)];
}

__global__ void copies(int to, int from, int bytes, const float* in, float* out) {
  float* here = cuda::shared<float>();
  cuda::copy_async<16>(here + to, in + from, bytes);
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  for (int n = 0; n < 4; ++n) out[n] = here[to + n];
}

__global__ void beyond_shared() { cuda::shared<float>()[blockDim.x] = 1; }

__global__ void add_one(int* x) { ++*x; }

}  // namespace

TEST_CASE("emulated device: every thread of every block runs once, with its own numbers") {
  const Tensor out(Shape{300}, DType::i64, Device::cuda);
  cuda::run(number, {dim3(10), dim3(30)}, out.data<int64_t>());
  std::vector<double> wanted;
  for (int i = 0; i < 300; ++i) wanted.push_back(i / 30 * 1000 + i % 30);
  CHECK(out.to_doubles() == wanted);
  const int64_t before = cuda::launches();
  cuda::run(number, {dim3(0), dim3(30)}, out.data<int64_t>());
  CHECK(cuda::launches() == before);
}

TEST_CASE("emulated device: memory begins as NaN, and is closed to the host") {
  const Tensor x(Shape{1000}, DType::f32, Device::cuda);
  for (const float value : x.to_host()) REQUIRE(std::isnan(value));
  for (const double value : Tensor(Shape{3}, DType::bf16, Device::cuda).to_doubles())
    CHECK(std::isnan(value));
}

TEST_CASE("emulated device: what another thread writes is there behind a barrier, and only there") {
  const Tensor in = random_ids(Shape{4 * 64}, 1000).to(Device::cuda),
               out(Shape{4 * 64}, DType::i32, Device::cuda);
  std::vector<double> wanted;
  const auto values = in.to_doubles();
  for (size_t i = 0; i < 256; ++i) wanted.push_back(values[i / 64 * 64 + (i % 64 + 1) % 64]);
  cuda::run(pass_on, {dim3(4), dim3(64)}, true, in.data<int32_t>(), out.data<int32_t>());
  CHECK(out.to_doubles() == wanted);
  cuda::run(pass_on, {dim3(4), dim3(64)}, false, in.data<int32_t>(), out.data<int32_t>());
  CHECK(out.to_doubles() != wanted);
}

TEST_CASE("emulated device: shuffles and votes are those of the programming guide") {
  const Tensor in = random_tensor(Shape{64}).to(Device::cuda), out(Shape{64, 6}, DType::f32, Device::cuda);
  cuda::run(shuffles, {dim3(1), dim3(64)}, in.data<float>(), out.data<float>());
  const auto x = in.to_host(), y = out.to_host();
  for (size_t i = 0; i < 64; ++i) {
    const size_t warp = i / 32 * 32, lane = i % 32;
    CHECK(y[6 * i] == x[warp + (lane ^ 5)]);
    CHECK(y[6 * i + 1] == x[lane + 3 < 32 ? i + 3 : i]);
    CHECK(y[6 * i + 2] == x[lane % 16 >= 2 ? i - 2 : i]);
    CHECK(y[6 * i + 3] == x[warp + 7]);
    CHECK(y[6 * i + 4] == 11);
    CHECK(y[6 * i + 5] == x[lane < 16 ? i ^ 1 : i]);
  }
}

TEST_CASE("emulated device: sums and maxima of a block reach every thread, in blocks of two dimensions too") {
  const Tensor in = random_tensor(Shape{256}, DType::f64);
  double sum = 0, maximum = -1;
  for (const double value : in.to_doubles()) sum += value, maximum = std::max(maximum, value);
  for (const dim3 threads : {dim3(256), dim3(32, 8), dim3(16, 4, 4)}) {
    const Tensor out(Shape{256, 2}, DType::f64, Device::cuda);
    cuda::run(sums, {dim3(1), threads}, in.to(Device::cuda).data<double>(), out.data<double>());
    const auto found = out.to_doubles();
    for (size_t i = 0; i < 256; ++i) {
      REQUIRE(std::abs(found[2 * i] - sum) < 1e-12);
      REQUIRE(found[2 * i] == found[0]);
      REQUIRE(found[2 * i + 1] == maximum);
    }
  }
}

TEST_CASE(
    "emulated device: copies beside the computation want aligned addresses, also where nothing is read") {
  const Tensor in = Tensor::full(Shape{8}, 3, DType::f32, Device::cuda),
               out = Tensor::zeros(Shape{4}, DType::f32, Device::cuda);
  const auto run = [&](int to, int from, int bytes) {
    cuda::run(copies, {dim3(1), dim3(1), 64}, to, from, bytes, in.data<float>(), out.data<float>());
  };
  run(4, 4, 8);
  CHECK(out.to_doubles() == std::vector<double>{3, 3, 0, 0});
  CHECK_THROWS_WITH(run(0, 1, 0), containing("an asynchronous copy of 16 bytes from an address"));
  CHECK_THROWS_WITH(run(2, 0, 16), containing("an asynchronous copy of 16 bytes to an address"));
}

TEST_CASE("emulated device: barriers and shuffles that some threads do not reach are errors") {
  const Tensor out = Tensor::zeros(Shape{64}, DType::i32, Device::cuda);
  CHECK_THROWS_WITH(cuda::run(last_leaves_early, {dim3(1), dim3(64)}, out.data<int32_t>()),
                    containing("thread 63 has ended while 63 wait"));
  CHECK_THROWS_WITH(cuda::run(lane_stays_away, {dim3(1), dim3(64)}, out.data<int32_t>()),
                    containing("__shfl_xor_sync is not reached by every lane"));
  // A kernel that is launched afterwards runs undisturbed.
  const Tensor in = random_ids(Shape{64}, 9).to(Device::cuda);
  cuda::run(pass_on, {dim3(1), dim3(64)}, true, in.data<int32_t>(), out.data<int32_t>());
  CHECK(out.to_doubles()[0] == in.to_doubles()[1]);
}

TEST_CASE("emulated device: pointers to the host's memory are refused") {
  int64_t here[300];
  int32_t one[64];
  const Tensor out(Shape{64}, DType::i32, Device::cuda);
  CHECK_THROWS_WITH(cuda::run(number, {dim3(1), dim3(30)}, &here[0]), containing("host's memory"));
  CHECK_THROWS_WITH(cuda::run(pass_on, {dim3(1), dim3(64)}, true, &one[0], out.data<int32_t>()),
                    containing("host's memory"));
}

TEST_CASE("emulated device: dynamic shared memory begins as NaN and has an end") {
  const Tensor out(Shape{33}, DType::f32, Device::cuda);
  cuda::run(dynamic, {dim3(1), dim3(32), 128}, 32, out.data<float>());
  const auto found = out.to_host();
  CHECK(std::isnan(found[0]));
  for (size_t i = 0; i < 32; ++i) CHECK(found[1 + i] == 31 - static_cast<float>(i));
  CHECK_THROWS_WITH(cuda::run(beyond_shared, {dim3(1), dim3(32), 128}), containing("behind its 128 bytes"));
  CHECK_THROWS_WITH(cuda::run(beyond_shared, {dim3(1), dim3(32), 300000}),
                    containing("shared memory a block"));
}

TEST_CASE("emulated device: a captured stream keeps what it is asked, a graph does it again and again") {
  const Tensor x = Tensor::zeros(Shape{1}, DType::i32, Device::cuda);
  const cudaStream_t stream = cuda::stream();
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  cuda::run(add_one, {dim3(1), dim3(1)}, x.data<int32_t>());
  cuda::run(add_one, {dim3(1), dim3(1)}, x.data<int32_t>());
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(x.item() == 0);
  REQUIRE(cudaGraphInstantiate(&exec, graph) == cudaSuccess);
  for (int i = 1; i <= 3; ++i) {
    REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
    CHECK(x.item() == 2 * i);
  }
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
}

TEST_CASE("emulated device: waiting inside a captured step breaks the capture") {
  const cudaStream_t stream = cuda::stream();
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK_THROWS_WITH(cuda::synchronize(), containing("not permitted when stream is capturing"));
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  CHECK_NOTHROW(cuda::synchronize());
}

TEST_CASE("device storage: freed memory comes back, small and large, and the cap holds") {
  const void* first = nullptr;
  for (const int64_t size : {10, 5000, 3000000}) {
    {
      const Tensor x(Shape{size}, DType::f32, Device::cuda);
      first = x.raw();
      CHECK(reinterpret_cast<uintptr_t>(first) % 256 == 0);
    }
    const Tensor again(Shape{size}, DType::f32, Device::cuda);
    CHECK(again.raw() == first);
  }
  const int64_t live = memory_use(Device::cuda).live;
  {
    const Tensor x(Shape{1 << 20}, DType::u8, Device::cuda);
    CHECK(memory_use(Device::cuda).live - live >= 1 << 20);
  }
  CHECK(memory_use(Device::cuda).live == live);
  release_cached(Device::cuda);
  cap_memory(memory_use(Device::cuda).reserved + (int64_t{1} << 20), Device::cuda);
  CHECK_THROWS_WITH(Tensor(Shape{int64_t{1} << 30}, DType::f32, Device::cuda),
                    containing("memory of the GPU"));
  cap_memory(0, Device::cuda);
}

TEST_CASE("tensors move between devices with their shape, whatever their strides") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::u8}) {
    const Tensor x = view::transpose(random_tensor(Shape{7, 5, 9}, dtype, 3, 0, 9), 0, 2);
    const Tensor there = x.to(Device::cuda);
    CHECK(there.device() == Device::cuda);
    CHECK(there.shape() == x.shape());
    CHECK(there.to_doubles() == x.to_doubles());
    const Tensor slice = view::slice(view::transpose(there, 1, 2), 1, 2, 6);
    CHECK(slice.to(Device::cpu).to_doubles() == slice.to_doubles());
    CHECK(slice.to(Device::cpu).to_doubles() == view::slice(view::transpose(x, 1, 2), 1, 2, 6).to_doubles());
  }
}
