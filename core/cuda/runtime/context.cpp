// The CUDA device, opened at its first use.
#include "heed/core/cuda/runtime/context.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/cuda/runtime/stream.h"
#include "heed/core/memory/storage.h"
#include "heed/core/settings_in_errors.h"

namespace heed::cuda {
namespace {

std::atomic<int64_t> launch_count{0};
thread_local cudaStream_t own_stream = nullptr;  // null: shared_stream()

struct Availability {
  std::string why_not;
  bool is_idle = false;  // there is a GPU that we cannot use
};

const Availability& availability() {
  static const Availability once = []() -> Availability {
    int count = 0, major = 0, minor = 0, driver = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) {
      cudaGetLastError();  // so that no later call reports it
      if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return {"there is no CUDA driver"};
      return {text("the CUDA driver gives no device (", cudaGetErrorString(status), ")"),
              status != cudaErrorNoDevice};
    }
    if (count == 0) return {"the CUDA driver knows of no device"};
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0),
          "asking the device what it is");
    check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0),
          "asking the device what it is");
    if (major >= 8) return {};
    return {text("the GPU is of compute ", major, ".", minor, ", and these kernels need 8.0"), true};
  }();
  return once;
}

cudaStream_t shared_stream() {
  static const cudaStream_t one = [] {
    if (!why_not().empty()) fail(Fault::device, "device cuda: ", why_not(), ". ", device_advice());
    cudaStream_t made = nullptr;
    check(cudaSetDevice(0), "opening the device");
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
    return made;
  }();
  return one;
}

}  // namespace

const std::string& why_not() { return availability().why_not; }

std::string why_idle() { return availability().is_idle ? availability().why_not : std::string(); }

cudaStream_t stream() { return own_stream != nullptr ? own_stream : shared_stream(); }

OnStream::OnStream(cudaStream_t stream) : stream_(own_stream, stream) {}

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(status == cudaErrorMemoryAllocation ? Fault::memory : Fault::device, "cuda: ", what, ": ",
       cudaGetErrorString(status), ".");
}

void synchronize() {
  refuse_capture("waiting for the device", "is no work that could be recorded");
  const bool has_errors = request_device_errors();
  check(cudaStreamSynchronize(stream()), "waiting for the device");
  if (has_errors) check_device_errors();
}

std::byte* pinned_readback() {
  thread_local std::byte* memory = nullptr;  // kept: the device may be gone before a thread's objects are
  if (memory == nullptr) {
    void* at = nullptr;
    check(cudaMallocHost(&at, static_cast<size_t>(2 * readback_bytes)), "pinned memory of the host");
    memory = static_cast<std::byte*>(at);
  }
  return memory;
}

int64_t launches() { return launch_count.load(std::memory_order_relaxed); }
void count_launches(int64_t more) { launch_count.fetch_add(more, std::memory_order_relaxed); }

bool raises_limit(const void* kernel, int bytes) {
  if (bytes > block_room()) {
    fail(Fault::device, "cuda: a kernel takes ", bytes, " bytes of shared memory a block, and this GPU has ",
         block_room(), ". Use ", advice("--precision f32", "Precision::f32"), ", narrower heads, or ",
         advice("--device cpu.", "Device::cpu."));
  }
  static auto* mutex = new std::mutex;
  static auto* limits = new std::unordered_map<const void*, int>;
  const std::lock_guard lock(*mutex);
  int& limit = (*limits)[kernel];
  if (limit >= bytes) return false;
  limit = bytes;
  return true;
}

int block_room() {
  static const int room = [] {
    int bytes = 0;
    stream();  // opens the device
    check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
          "asking the device for its shared memory");
    return bytes;
  }();
  return room;
}

void copy_in(void* to, const void* from, int64_t bytes) {
  // CUDA would capture the copy, and read the host's memory anew at each replay.
  refuse_capture("a copy from ordinary memory of the host", "would not find there again what it finds now");
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream()),
        "copying to the device");
}

void copy_out(void* to, const void* from, int64_t bytes) {
  refuse_capture("reading numbers of the device", "makes the host wait for what is only recorded");
  const bool small = bytes <= readback_bytes;
  void* const at = small ? pinned_readback() : to;
  check(cudaMemcpyAsync(at, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream()),
        "copying from the device");
  synchronize();
  if (small) std::memcpy(to, at, static_cast<size_t>(bytes));
}

Properties properties() {
  cudaDeviceProp found{};
  Properties out;
  stream();
  check(cudaGetDeviceProperties(&found, 0), "asking the device what it is");
  check(cudaRuntimeGetVersion(&out.runtime), "asking for the version of the runtime");
  check(cudaDriverGetVersion(&out.driver), "asking for the version of the driver");
  out.name = found.name;
  out.memory = static_cast<int64_t>(found.totalGlobalMem);
  out.major = found.major;
  out.minor = found.minor;
  out.processors = found.multiProcessorCount;
  return out;
}

}  // namespace heed::cuda
