// Streams, events and graphs, emulated: work is done at once, or in the order that is hardest on those who do
// not wait for it; while a stream is captured, it is kept for the graph.
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
  std::vector<Stream*> streams;  // that are captured into it
  std::thread::id thread;        // which captures
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool broken = false;
};
struct Stream {
  Graph* captured = nullptr;
  bool origin = false;  // the capture began here
  bool first = false;   // of all that were made
  std::deque<std::function<void()>> waiting;
  uint64_t asked = 0, begun = 0;  // pieces of work
};
struct Event {
  Graph* captured = nullptr;
  Stream* stream = nullptr;  // that it was recorded in, behind `place` pieces of its work
  uint64_t place = 0;
};

namespace {

StreamOrder order_at_first() {
  const char* wish = std::getenv("HEED_EMULATED_STREAMS");
  const std::string name = wish == nullptr ? "at_once" : wish;
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

/// One thread at a time has work done that waited. Never destroyed, like the list of streams: other static
/// objects may ask for work until the end.
std::recursive_mutex& device() {
  static auto* one = new std::recursive_mutex;
  return *one;
}
std::vector<Stream*>& all_streams() {
  static auto* one = new std::vector<Stream*>;
  return *one;
}

/// Does the first `place` pieces of a stream's work, and whatever of other streams they wait for.
void finish(Stream& stream, uint64_t place) {
  const std::lock_guard lock(device());
  while (stream.begun < place) {
    const std::function<void()> work = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    ++stream.begun;
    work();
  }
}

/// Work of a stream that is not being captured.
void ask(Stream& stream, std::function<void()> work) {
  const StreamOrder now = order();
  if (now == StreamOrder::at_once) return work();
  if (now == StreamOrder::never) return;
  const std::lock_guard lock(device());
  stream.waiting.push_back(std::move(work));
  ++stream.asked;
  if (now == StreamOrder::early && !stream.first) finish(stream, stream.asked);
}

std::mutex mutex;
std::vector<Graph*> captures;  // that are under way
thread_local cudaStreamCaptureMode mode_here = cudaStreamCaptureModeGlobal;

}  // namespace

cudaError_t unless_captured() {
  const std::lock_guard lock(mutex);
  if (mode_here == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t status = cudaSuccess;
  for (Graph* graph : captures) {
    const bool own =
        graph->thread == std::this_thread::get_id() && graph->mode != cudaStreamCaptureModeRelaxed;
    const bool all = graph->mode == cudaStreamCaptureModeGlobal && mode_here == cudaStreamCaptureModeGlobal;
    if (!own && !all) continue;
    graph->broken = true;
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
    ask(*stream, std::move(work));
  }
  return cudaSuccess;
}

void enqueue_beside(Stream* stream, std::function<void()> work) {
  if (stream->captured == nullptr) return ask(*stream, std::move(work));
  finish_all();
  work();
}

void finish_all() {
  if (order() == StreamOrder::at_once) return;
  const std::lock_guard lock(device());
  for (size_t i = 0; i < all_streams().size(); ++i) finish(*all_streams()[i], all_streams()[i]->asked);
}

StreamOrder order_streams(StreamOrder wanted) {
  finish_all();
  return order().exchange(wanted);
}

cudaError_t break_capture(Stream* stream) {
  stream->captured->broken = true;
  return cudaErrorStreamCaptureUnsupported;
}

int block_room() {
  static const int room = [] {
    const char* wish = std::getenv("HEED_EMULATED_SHARED");
    return wish != nullptr ? std::atoi(wish) : 232448;
  }();
  return room;
}

size_t size(const Graph* graph) { return graph->work.size(); }

}  // namespace heed::emulated

using heed::emulated::unless_captured;

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
                                                            : heed::emulated::block_room();
  return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
  heed::emulated::finish_all();
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
  const std::lock_guard lock(heed::emulated::device());
  auto& all = heed::emulated::all_streams();
  *stream = new heed::emulated::Stream;
  (*stream)->first = all.empty();
  all.push_back(*stream);  // for good: events may still speak of it
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  heed::emulated::finish(*stream, stream->asked);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) return cudaDeviceSynchronize();
  if (stream->captured == nullptr) {
    heed::emulated::finish(*stream, stream->asked);
    return cudaSuccess;
  }
  return heed::emulated::break_capture(stream);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  // Waiting for a captured event draws the stream into the capture.
  if (event->captured != nullptr && stream->captured == nullptr) {
    stream->captured = event->captured;
    event->captured->streams.push_back(stream);
  }
  if (event->captured != nullptr || event->stream == nullptr) return cudaSuccess;
  return heed::emulated::enqueue(
      stream, [from = event->stream, place = event->place] { heed::emulated::finish(*from, place); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new heed::emulated::Event;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(heed::emulated::device());
  event->captured = stream != nullptr ? stream->captured : nullptr;
  event->stream = stream;
  event->place = stream != nullptr ? stream->asked : 0;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t status = unless_captured(); status != cudaSuccess) return status;
  const std::lock_guard lock(heed::emulated::device());
  const bool done = event->stream == nullptr || event->stream->begun >= event->place;
  return done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->captured == nullptr) {
    if (event->stream != nullptr) heed::emulated::finish(*event->stream, event->place);
    return cudaSuccess;
  }
  event->captured->broken = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, heed::emulated::mode_here);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream == nullptr || stream->captured != nullptr) return cudaErrorInvalidValue;
  const std::lock_guard lock(heed::emulated::mutex);
  stream->captured = new heed::emulated::Graph{
      .work = {}, .streams = {stream}, .thread = std::this_thread::get_id(), .mode = mode};
  stream->origin = true;
  heed::emulated::captures.push_back(stream->captured);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (stream == nullptr || !stream->origin) return cudaErrorInvalidValue;
  const std::lock_guard lock(heed::emulated::mutex);
  *graph = stream->captured;
  for (cudaStream_t one : (*graph)->streams) one->captured = nullptr;
  stream->origin = false;
  std::erase(heed::emulated::captures, *graph);
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
  *exec = new heed::emulated::Graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return heed::emulated::enqueue(stream, [exec] {
    for (const auto& work : exec->work) work();
  });
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = heed::emulated::size(graph);
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
