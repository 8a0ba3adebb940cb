// The device, opened when it is first wanted.
#include "heed/core/cuda/runtime/context.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/cuda/runtime/stream.h"
#include "heed/core/memory/storage.h"
#include "heed/core/settings_source.h"

namespace heed::cuda {
namespace {

std::atomic<int64_t> launch_count{0};
thread_local cudaStream_t own_stream = nullptr;  // null: the one all threads share

struct Found {
  std::string why_not;
  bool idle = false;  // there is a GPU that we cannot use
};

const Found& found() {
  static const Found once = []() -> Found {
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

const std::string& why_not() { return found().why_not; }

std::string why_idle() { return found().idle ? found().why_not : std::string(); }

cudaStream_t stream() { return own_stream != nullptr ? own_stream : shared_stream(); }

OnStream::OnStream(cudaStream_t stream) : outer_(own_stream) { own_stream = stream; }
OnStream::~OnStream() { own_stream = outer_; }

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  fail(status == cudaErrorMemoryAllocation ? Fault::memory : Fault::device, "cuda: ", what, ": ",
       cudaGetErrorString(status), ".");
}

void synchronize() {
  refuse_capture("waiting for the device", "is no work that could be recorded");
  const bool asked = ask_refusals();
  check(cudaStreamSynchronize(stream()), "waiting for the device");
  if (asked) check_refusals();
}

std::byte* pinned_readback() {
  thread_local std::byte* mine = nullptr;  // kept: the device may be gone before a thread's objects are
  if (mine == nullptr) {
    void* at = nullptr;
    check(cudaMallocHost(&at, static_cast<size_t>(2 * landing_bytes)), "pinned memory of the host");
    mine = static_cast<std::byte*>(at);
  }
  return mine;
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
  // CUDA would record it, and read at every replay what lies there then.
  refuse_capture("a copy from ordinary memory of the host", "would not find there again what it finds now");
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream()),
        "copying to the device");
}

void copy_out(void* to, const void* from, int64_t bytes) {
  refuse_capture("reading numbers of the device", "makes the host wait for what is only recorded");
  const bool small = bytes <= landing_bytes;
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
