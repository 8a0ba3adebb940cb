// The part of CUDA's runtime that Heed uses, emulated on the CPU: the same names, the same answers, stricter
// about mistakes.
#pragma once

#include <functional>
#include <utility>

#include "heed/core/cuda/emulator/block.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNotReady = 600,
  cudaErrorNoDevice = 100,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr {
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2;

namespace heed::emulated {
struct Stream;
struct Graph;
struct Event;

/// When streams do what is asked of them.
enum class StreamOrder {
  at_once,  ///< as it is asked
  late,     ///< when somebody waits for it, and no sooner
  early,    ///< the first stream that was made when somebody waits for it, the others at once: before it
  never     ///< nothing is computed: for those who count what would be
};
/// From now on; HEED_EMULATED_STREAMS=at_once, late, early or never says what it is at first. A program whose
/// streams wait for each other as they must computes the same in all of them but the last. Returns what it
/// was.
StreamOrder order_streams(StreamOrder order);

/// Does `work` when it is the stream's turn, or keeps it for the graph when the stream is being captured.
cudaError_t enqueue(Stream* stream, std::function<void()> work);
/// The same, but in a stream that is being captured does it now, after all that was asked before: it is no
/// part of the step.
void enqueue_beside(Stream* stream, std::function<void()> work);
/// Does all that was asked of all streams.
void finish_all();
/// The device has so much memory from now on; 0: as much as there are addresses, as at first.
void size_memory(size_t bytes);
/// Shared memory that a block may have: HEED_EMULATED_SHARED in bytes, or what devices of compute 9.0 have.
int block_room();
/// True for an address of device memory that is allocated, and for null.
bool on_device(const volatile void* at);
/// What a device refuses while a step is captured, unless this thread has relaxed that.
cudaError_t unless_captured();
/// A capture of the stream has met what it cannot hold.
cudaError_t break_capture(Stream* stream);
/// How many closures a graph holds.
size_t size(const Graph* graph);

/// While one lives, device memory is open to this process; otherwise touching it is a segmentation fault.
struct Open {
  Open();
  ~Open();
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
};

/// Throws unless `at` is an address of device memory.
void need_device_pointer(const volatile void* at);

template <class T>
void check_argument(const T& argument) {
  if constexpr (std::is_pointer_v<T>) need_device_pointer(argument);
}
}  // namespace heed::emulated

using cudaStream_t = heed::emulated::Stream*;
using cudaEvent_t = heed::emulated::Event*;
using cudaGraph_t = heed::emulated::Graph*;
using cudaGraphExec_t = heed::emulated::Graph*;
using cudaGraphNode_t = void*;

/// The fields of CUDA's that Heed asks for.
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int major, minor, multiProcessorCount;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

const char* cudaGetErrorString(cudaError_t status);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);

cudaError_t cudaMalloc(void** at, size_t bytes);
cudaError_t cudaFree(void* at);
cudaError_t cudaMallocHost(void** at, size_t bytes);
cudaError_t cudaFreeHost(void* at);
cudaError_t cudaMemGetInfo(size_t* available, size_t* total);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*)(Parameters...), cudaFuncAttribute, int bytes) {
  return bytes <= heed::emulated::block_room() ? cudaSuccess : cudaErrorInvalidValue;
}

template <class... Parameters, class... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Args&&... args) {
  const auto all = [](const dim3& extent) { return uint64_t{extent.x} * extent.y * extent.z; };
  const dim3 blocks = config->gridDim, threads = config->blockDim;
  if (all(blocks) == 0 || blocks.x > 0x7fffffffU || blocks.y > 65535 || blocks.z > 65535 ||
      all(threads) == 0 || all(threads) > 1024 || threads.z > 64 ||
      static_cast<int>(config->dynamicSmemBytes) > heed::emulated::block_room()) {
    return cudaErrorInvalidValue;
  }
  (heed::emulated::check_argument(args), ...);
  return heed::emulated::enqueue(config->stream, [=, bytes = config->dynamicSmemBytes] {
    const heed::emulated::Open open;
    // Each thread has its own parameters, as on a device.
    heed::emulated::run_grid(blocks, threads, bytes, [&] { kernel(static_cast<Parameters>(args)...); });
  });
}
