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

/// Whether a device can be used, and why not.
struct Availability {
  std::string why_not;
  bool is_idle = false;  // there is a GPU, which Heed cannot use
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

/// The stream of all threads without one of their own. Opens the device when first called.
cudaStream_t shared_stream() {
  static const cudaStream_t shared = [] {
    if (!why_not().empty()) fail(Fault::device, "device cuda: ", why_not(), ". ", device_advice());
    cudaStream_t created = nullptr;
    check(cudaSetDevice(0), "opening the device");
    check(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking), "making a stream");
    return created;
  }();
  return shared;
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
  const bool has_errors = request_index_errors();
  check(cudaStreamSynchronize(stream()), "waiting for the device");
  if (has_errors) check_index_errors();
}

std::byte* pinned_readback() {
  thread_local std::byte* memory = nullptr;  // kept: the device may be gone before a thread's objects are
  if (memory == nullptr) {
    void* allocated = nullptr;
    check(cudaMallocHost(&allocated, static_cast<size_t>(2 * readback_bytes)), "pinned memory of the host");
    memory = static_cast<std::byte*>(allocated);
    std::memset(memory, 0xff, static_cast<size_t>(2 * readback_bytes));  // NaN, and no record of an index
  }
  return memory;
}

int64_t launches() { return launch_count.load(std::memory_order_relaxed); }
void count_launches(int64_t more) { launch_count.fetch_add(more, std::memory_order_relaxed); }

bool needs_higher_limit(const void* kernel, int bytes) {
  if (bytes > max_shared_bytes()) {
    fail(Fault::device, "cuda: a kernel takes ", bytes, " bytes of shared memory a block, and this GPU has ",
         max_shared_bytes(), ". Use ", advice("--precision f32", "Precision::f32"), ", narrower heads, or ",
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

int max_shared_bytes() {
  static const int limit = [] {
    int bytes = 0;
    stream();  // opens the device
    check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
          "asking the device for its shared memory");
    return bytes;
  }();
  return limit;
}

void copy_in(void* to, const void* from, int64_t bytes) {
  // CUDA would capture the copy, and read the host's memory anew at each replay.
  refuse_capture("a copy from ordinary memory of the host", "would not find there again what it finds now");
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream()),
        "copying to the device");
}

void copy_out(void* to, const void* from, int64_t bytes) {
  refuse_capture("reading numbers of the device", "makes the host wait for what is only recorded");
  const bool is_small = bytes <= readback_bytes;
  void* const target = is_small ? pinned_readback() : to;
  check(cudaMemcpyAsync(target, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream()),
        "copying from the device");
  synchronize();
  if (is_small) std::memcpy(to, target, static_cast<size_t>(bytes));
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
