// The part of CUDA's runtime that Heed uses, emulated on the CPU with the same names and results, and with
// stricter checks.
#pragma once

#include <functional>
#include <utility>

#include "heed/core/cuda/emulator/block.h"
#include "heed/core/scope.h"

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

/// When streams run their tasks (kernels, copies, waits).
enum class StreamOrder {
  at_once,  ///< when a task is queued
  late,     ///< when the host or another stream waits for the task
  early,    ///< `late` on the first stream, `at_once` on others
  never     ///< not at all: for counting operations
};
/// Sets the order, which is first that of HEED_EMULATED_STREAMS (at_once, late, early or never), and returns
/// the previous one. A program with correct waits between streams computes the same in all orders but the
/// last.
StreamOrder order_streams(StreamOrder order);

/// Queues a task on the stream, or adds it to the graph while the stream is being captured.
cudaError_t enqueue(Stream* stream, std::function<void()> task);
/// Queues a task on the stream; while the stream is being captured, runs it now, behind all queued tasks,
/// instead of adding it to the graph.
void enqueue_beside(Stream* stream, std::function<void()> task);
/// Runs the queued tasks of all streams.
void finish_all();
/// Limits the memory of the device to `bytes`; 0 lifts the limit.
void size_memory(size_t bytes);
/// Maximum shared memory of a block: HEED_EMULATED_SHARED in bytes, or that of devices of compute 9.0.
int max_shared_bytes();
/// True for an address of allocated device memory, and for null.
bool on_device(const volatile void* address);
/// The error of calls that CUDA refuses during a capture, which they invalidate; success where none is under
/// way or this thread has the relaxed mode.
cudaError_t unless_captured();
/// Invalidates the capture of the stream, and returns the error of a call that cannot be captured.
cudaError_t break_capture(Stream* stream);
/// Number of nodes of a graph.
size_t size(const Graph* graph);

/// While one lives, this process may access device memory; otherwise an access is a segmentation fault.
struct Open : NonCopyable {
  Open();
  ~Open();
};

/// Fails unless on_device() is true of the pointer.
void need_device_pointer(const volatile void* pointer);

/// Fails where an argument of a kernel is a pointer to memory of the host.
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

/// The fields of CUDA's struct that Heed reads.
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
  return bytes <= heed::emulated::max_shared_bytes() ? cudaSuccess : cudaErrorInvalidValue;
}

template <class... Parameters, class... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Args&&... args) {
  const auto count = [](const dim3& extent) { return uint64_t{extent.x} * extent.y * extent.z; };
  const dim3 blocks = config->gridDim, threads = config->blockDim;
  if (count(blocks) == 0 || blocks.x > 0x7fffffffU || blocks.y > 65535 || blocks.z > 65535 ||
      count(threads) == 0 || count(threads) > 1024 || threads.z > 64 ||
      static_cast<int>(config->dynamicSmemBytes) > heed::emulated::max_shared_bytes()) {
    return cudaErrorInvalidValue;
  }
  (heed::emulated::check_argument(args), ...);
  return heed::emulated::enqueue(config->stream, [=, bytes = config->dynamicSmemBytes] {
    const heed::emulated::Open open;
    // Each thread gets its own copy of the parameters, as on a device.
    heed::emulated::run_grid(blocks, threads, bytes, [&] { kernel(static_cast<Parameters>(args)...); });
  });
}
