// Streams, events and graphs of an emulated device. Tasks (kernels, copies, waits) run at once, or as late or
// early as the waits of a program allow; tasks of a captured stream become part of the graph.
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
  std::vector<std::function<void()>> tasks;
  std::vector<Stream*> streams;  // streams that are captured into it
  std::thread::id thread;        // thread that began the capture
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool is_invalid = false;
};
struct Stream {
  Graph* graph = nullptr;  // the graph that the stream is captured into
  bool is_origin = false;  // the capture began on this stream
  bool is_first = false;   // created before all other streams
  std::deque<std::function<void()>> waiting;
  uint64_t num_queued = 0, num_started = 0;  // tasks since the stream was created
};
struct Event {
  Graph* graph = nullptr;    // the graph that its stream was captured into
  Stream* stream = nullptr;  // the stream on which it was recorded
  uint64_t num_tasks = 0;    // the first tasks of the stream, which it waits for
};

namespace {

StreamOrder order_of_environment() {
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
  static std::atomic<StreamOrder> current{order_of_environment()};
  return current;
}

/// Held while tasks run. Never destroyed, like the list of streams, since static objects may queue tasks
/// until the end of the program.
std::recursive_mutex& device() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}
std::vector<Stream*>& all_streams() {
  static auto* streams = new std::vector<Stream*>;
  return *streams;
}

/// Runs the first `num_tasks` tasks of a stream that have not run, and those of other streams that they wait
/// for.
void finish(Stream& stream, uint64_t num_tasks) {
  const std::lock_guard lock(device());
  while (stream.num_started < num_tasks) {
    const std::function<void()> task = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    ++stream.num_started;
    task();
  }
}

/// Queues a task on a stream that is not being captured.
void queue(Stream& stream, std::function<void()> task) {
  const StreamOrder current_order = order();
  if (current_order == StreamOrder::at_once) return task();
  if (current_order == StreamOrder::never) return;
  const std::lock_guard lock(device());
  stream.waiting.push_back(std::move(task));
  ++stream.num_queued;
  if (current_order == StreamOrder::early && !stream.is_first) finish(stream, stream.num_queued);
}

std::mutex mutex;
std::vector<Graph*> captures;  // captures that have begun and not ended
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

}  // namespace

cudaError_t unless_captured() {
  const std::lock_guard lock(mutex);
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t status = cudaSuccess;
  for (Graph* graph : captures) {
    const bool is_refused_here =
        graph->thread == std::this_thread::get_id() && graph->mode != cudaStreamCaptureModeRelaxed;
    const bool is_refused_everywhere =
        graph->mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
    if (!is_refused_here && !is_refused_everywhere) continue;
    graph->is_invalid = true;
    status = cudaErrorStreamCaptureUnsupported;
  }
  return status;
}

cudaError_t enqueue(Stream* stream, std::function<void()> task) {
  if (stream == nullptr) {  // the default stream waits for all others
    if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
    finish_all();
    task();
  } else if (stream->graph != nullptr) {
    stream->graph->tasks.push_back(std::move(task));
  } else {
    queue(*stream, std::move(task));
  }
  return cudaSuccess;
}

void enqueue_beside(Stream* stream, std::function<void()> task) {
  if (stream->graph == nullptr) return queue(*stream, std::move(task));
  finish_all();
  task();
}

void finish_all() {
  if (order() == StreamOrder::at_once) return;
  const std::lock_guard lock(device());
  for (size_t i = 0; i < all_streams().size(); ++i) finish(*all_streams()[i], all_streams()[i]->num_queued);
}

StreamOrder order_streams(StreamOrder wanted) {
  finish_all();
  return order().exchange(wanted);
}

cudaError_t break_capture(Stream* stream) {
  stream->graph->is_invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

int max_shared_bytes() {
  static const int limit = [] {
    const char* bytes = std::getenv("HEED_EMULATED_SHARED");
    return bytes != nullptr ? std::atoi(bytes) : 232448;
  }();
  return limit;
}

size_t size(const Graph* graph) { return graph->tasks.size(); }

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
  finish(*stream, stream->num_queued);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) return cudaDeviceSynchronize();
  if (stream->graph == nullptr) {
    finish(*stream, stream->num_queued);
    return cudaSuccess;
  }
  return break_capture(stream);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  // Waiting for a captured event adds the stream to the capture.
  if (event->graph != nullptr && stream->graph == nullptr) {
    stream->graph = event->graph;
    event->graph->streams.push_back(stream);
  }
  if (event->graph != nullptr || event->stream == nullptr) return cudaSuccess;
  return enqueue(stream,
                 [awaited = event->stream, num_tasks = event->num_tasks] { finish(*awaited, num_tasks); });
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
  event->graph = stream != nullptr ? stream->graph : nullptr;
  event->stream = stream;
  event->num_tasks = stream != nullptr ? stream->num_queued : 0;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
  const std::lock_guard lock(device());
  const bool done = event->stream == nullptr || event->stream->num_started >= event->num_tasks;
  return done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->graph == nullptr) {
    if (event->stream != nullptr) finish(*event->stream, event->num_tasks);
    return cudaSuccess;
  }
  event->graph->is_invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream == nullptr || stream->graph != nullptr) return cudaErrorInvalidValue;
  const std::lock_guard lock(mutex);
  stream->graph =
      new Graph{.tasks = {}, .streams = {stream}, .thread = std::this_thread::get_id(), .mode = mode};
  stream->is_origin = true;
  captures.push_back(stream->graph);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (stream == nullptr || !stream->is_origin) return cudaErrorInvalidValue;
  const std::lock_guard lock(mutex);
  *graph = stream->graph;
  for (cudaStream_t stream_of_graph : (*graph)->streams) stream_of_graph->graph = nullptr;
  stream->is_origin = false;
  std::erase(captures, *graph);
  if (!(*graph)->is_invalid) return cudaSuccess;
  delete *graph;
  *graph = nullptr;
  return cudaErrorStreamCaptureInvalidated;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream != nullptr && stream->graph != nullptr ? cudaStreamCaptureStatusActive
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
    for (const auto& task : exec->tasks) task();
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
