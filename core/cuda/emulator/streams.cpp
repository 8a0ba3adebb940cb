// Streams, events and graphs of an emulated device. Work is done at once, or as late or early as the waits of
// a program allow; while a stream is captured, it becomes part of the graph.
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "heed/core/cuda/emulator/cuda_runtime.h"
#include "heed/core/error.h"

namespace heed::emulated {

struct Stream;

struct Graph {
  std::vector<std::function<void()>> work;
  std::vector<Stream*> streams;  // those captured into it
  std::thread::id thread;        // that began the capture
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool is_invalid = false;
};
struct Stream {
  Graph* captured = nullptr;
  bool is_origin = false;  // the capture began on this stream
  bool is_first = false;   // created before all other streams
  std::deque<std::function<void()>> waiting;
  uint64_t queued = 0, begun = 0;  // counts of work
};
struct Event {
  Graph* captured = nullptr;
  Stream* stream = nullptr;  // on which it was recorded, behind the first `place` pieces of work
  uint64_t place = 0;
};

namespace {

StreamOrder order_at_first() {
  const char* requested = std::getenv("HEED_EMULATED_STREAMS");
  const std::string name = requested == nullptr ? "at_once" : requested;
  if (name == "late") return StreamOrder::late;
  if (name == "early") return StreamOrder::early;
  if (name == "never") return StreamOrder::never;
  if (name != "at_once")
    fail("HEED_EMULATED_STREAMS: '", name, "' is no order of streams. Known: at_once, late, early, never.");
  return StreamOrder::at_once;
}

std::atomic<StreamOrder>& order() {
  static std::atomic<StreamOrder> one{order_at_first()};
  return one;
}

/// Held while queued work is done. Never destroyed, like the list of streams, since static objects may queue
/// work until the end of the program.
std::recursive_mutex& device() {
  static auto* one = new std::recursive_mutex;
  return *one;
}
std::vector<Stream*>& all_streams() {
  static auto* one = new std::vector<Stream*>;
  return *one;
}

/// Does the first `place` pieces of a stream's work, and the work of other streams for which they wait.
void finish(Stream& stream, uint64_t place) {
  const std::lock_guard lock(device());
  while (stream.begun < place) {
    const std::function<void()> work = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    ++stream.begun;
    work();
  }
}

/// Queues work on a stream that is not being captured.
void queue(Stream& stream, std::function<void()> work) {
  const StreamOrder now = order();
  if (now == StreamOrder::at_once) return work();
  if (now == StreamOrder::never) return;
  const std::lock_guard lock(device());
  stream.waiting.push_back(std::move(work));
  ++stream.queued;
  if (now == StreamOrder::early && !stream.is_first) finish(stream, stream.queued);
}

std::mutex mutex;
std::vector<Graph*> captures;  // those under way
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

}  // namespace

cudaError_t unless_captured() {
  const std::lock_guard lock(mutex);
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t status = cudaSuccess;
  for (Graph* graph : captures) {
    const bool own =
        graph->thread == std::this_thread::get_id() && graph->mode != cudaStreamCaptureModeRelaxed;
    const bool all = graph->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
    if (!own && !all) continue;
    graph->is_invalid = true;
    status = cudaErrorStreamCaptureUnsupported;
  }
  return status;
}

cudaError_t enqueue(Stream* stream, std::function<void()> work) {
  if (stream == nullptr) {  // the default stream waits for all others
    if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
    finish_all();
    work();
  } else if (stream->captured != nullptr) {
    stream->captured->work.push_back(std::move(work));
  } else {
    queue(*stream, std::move(work));
  }
  return cudaSuccess;
}

void enqueue_beside(Stream* stream, std::function<void()> work) {
  if (stream->captured == nullptr) return queue(*stream, std::move(work));
  finish_all();
  work();
}

void finish_all() {
  if (order() == StreamOrder::at_once) return;
  const std::lock_guard lock(device());
  for (size_t i = 0; i < all_streams().size(); ++i) finish(*all_streams()[i], all_streams()[i]->queued);
}

StreamOrder order_streams(StreamOrder wanted) {
  finish_all();
  return order().exchange(wanted);
}

cudaError_t break_capture(Stream* stream) {
  stream->captured->is_invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

int max_shared_bytes() {
  static const int room = [] {
    const char* bytes = std::getenv("HEED_EMULATED_SHARED");
    return bytes != nullptr ? std::atoi(bytes) : 232448;
  }();
  return room;
}

size_t size(const Graph* graph) { return graph->work.size(); }

}  // namespace heed::emulated

using namespace heed::emulated;

const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
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
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  if (device != 0 || bytes < 1) return cudaErrorInvalidValue;
  std::snprintf(id, static_cast<size_t>(bytes), "emulated");
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return cudaErrorInvalidValue;
  *properties = cudaDeviceProp{};
  std::memcpy(properties->name, "emulated on the CPU", 20);
  size_t available = 0;
  cudaMemGetInfo(&available, &properties->totalGlobalMem);
  properties->major = 9;
  properties->multiProcessorCount = 4;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor   ? 9
           : attribute == cudaDevAttrComputeCapabilityMinor ? 0
                                                            : max_shared_bytes();
  return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
  finish_all();
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const std::lock_guard lock(device());
  auto& all = all_streams();
  *stream = new Stream;
  (*stream)->is_first = all.empty();
  all.push_back(*stream);  // never removed: events may refer to it
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  finish(*stream, stream->queued);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) return cudaDeviceSynchronize();
  if (stream->captured == nullptr) {
    finish(*stream, stream->queued);
    return cudaSuccess;
  }
  return break_capture(stream);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  // Waiting for a captured event adds the stream to the capture.
  if (event->captured != nullptr && stream->captured == nullptr) {
    stream->captured = event->captured;
    event->captured->streams.push_back(stream);
  }
  if (event->captured != nullptr || event->stream == nullptr) return cudaSuccess;
  return enqueue(stream, [from = event->stream, place = event->place] { finish(*from, place); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new Event;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(device());
  event->captured = stream != nullptr ? stream->captured : nullptr;
  event->stream = stream;
  event->place = stream != nullptr ? stream->queued : 0;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
  const std::lock_guard lock(device());
  const bool done = event->stream == nullptr || event->stream->begun >= event->place;
  return done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->captured == nullptr) {
    if (event->stream != nullptr) finish(*event->stream, event->place);
    return cudaSuccess;
  }
  event->captured->is_invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream == nullptr || stream->captured != nullptr) return cudaErrorInvalidValue;
  const std::lock_guard lock(mutex);
  stream->captured =
      new Graph{.work = {}, .streams = {stream}, .thread = std::this_thread::get_id(), .mode = mode};
  stream->is_origin = true;
  captures.push_back(stream->captured);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (stream == nullptr || !stream->is_origin) return cudaErrorInvalidValue;
  const std::lock_guard lock(mutex);
  *graph = stream->captured;
  for (cudaStream_t one : (*graph)->streams) one->captured = nullptr;
  stream->is_origin = false;
  std::erase(captures, *graph);
  if (!(*graph)->is_invalid) return cudaSuccess;
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
  *exec = new Graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return enqueue(stream, [exec] {
    for (const auto& work : exec->work) work();
  });
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = size(graph);
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
