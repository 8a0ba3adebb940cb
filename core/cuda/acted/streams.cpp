// Streams, events and graphs, acted: work is done at once, or kept as closures while a stream is captured.
#include <chrono>
#include <mutex>
#include <vector>

#include "core/cuda/acted/cuda_runtime.h"

namespace heed::acted {

struct Stream;

struct Graph {
  std::vector<std::function<void()>> work;
  std::vector<Stream*> streams;  // that are captured into it
  bool broken = false;
};
struct Stream {
  Graph* captured = nullptr;
  bool origin = false;  // the capture began here
};
struct Event {
  Graph* captured = nullptr;
  std::chrono::steady_clock::time_point when{};
};

namespace {

std::mutex mutex;
int captures = 0;  // how many graphs are being captured
thread_local cudaStreamCaptureMode mode_here = cudaStreamCaptureModeGlobal;
Graph* latest = nullptr;

}  // namespace

cudaError_t unless_captured() {
  const std::lock_guard lock(mutex);
  if (captures == 0 || mode_here == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  latest->broken = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t enqueue(Stream* stream, std::function<void()> work) {
  if (stream == nullptr) {  // the default stream waits for all others
    if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
  } else if (stream->captured != nullptr) {
    stream->captured->work.push_back(std::move(work));
    return cudaSuccess;
  }
  work();
  return cudaSuccess;
}

size_t size(const Graph* graph) { return graph->work.size(); }

}  // namespace heed::acted

using heed::acted::unless_captured;

const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
  }
  return "unknown error";
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidValue; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return cudaErrorInvalidValue;
  *properties = cudaDeviceProp{};
  std::memcpy(properties->name, "acted by the CPU", 17);
  size_t available = 0;
  cudaMemGetInfo(&available, &properties->totalGlobalMem);
  properties->major = 9;
  properties->multiProcessorCount = 4;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return unless_captured(); }
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new heed::acted::Stream;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) return unless_captured();
  if (stream->captured == nullptr) return cudaSuccess;
  stream->captured->broken = true;
  return cudaErrorStreamCaptureUnsupported;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  // Waiting for a captured event draws the stream into the capture.
  if (event->captured != nullptr && stream->captured == nullptr) {
    stream->captured = event->captured;
    event->captured->streams.push_back(stream);
  }
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new heed::acted::Event;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->captured = stream != nullptr ? stream->captured : nullptr;
  event->when = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->captured == nullptr) return cudaSuccess;
  event->captured->broken = true;
  return cudaErrorStreamCaptureUnsupported;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->when - start->when).count();
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, heed::acted::mode_here);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream == nullptr || stream->captured != nullptr) return cudaErrorInvalidValue;
  const std::lock_guard lock(heed::acted::mutex);
  stream->captured = heed::acted::latest = new heed::acted::Graph;
  stream->origin = true;
  stream->captured->streams.push_back(stream);
  ++heed::acted::captures;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (stream == nullptr || !stream->origin) return cudaErrorInvalidValue;
  const std::lock_guard lock(heed::acted::mutex);
  *graph = stream->captured;
  for (cudaStream_t one : (*graph)->streams) one->captured = nullptr;
  stream->origin = false;
  --heed::acted::captures;
  if (!(*graph)->broken) return cudaSuccess;
  delete *graph;
  *graph = nullptr;
  return cudaErrorStreamCaptureInvalidated;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream != nullptr && stream->captured != nullptr ? cudaStreamCaptureStatusActive
                                                             : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new heed::acted::Graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return heed::acted::enqueue(stream, [exec] {
    for (const auto& work : exec->work) work();
  });
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = heed::acted::size(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
