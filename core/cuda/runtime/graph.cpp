// Captures what a stream queues into CUDA graphs, and gives up graphs whose memory is needed.
#include "heed/core/cuda/runtime/graph.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "heed/core/cuda/runtime/stream.h"
#include "heed/core/memory/capture_reservation.h"

namespace heed::cuda {
namespace {

thread_local Capture* active_capture = nullptr;

class CapturedGraph;

/// The evictable graphs of all threads: a graph may be destroyed by another thread than that of its capture.
struct EvictableGraphs {
  std::mutex mutex;
  std::vector<CapturedGraph*> list;
};
EvictableGraphs& evictable_graphs() {
  static auto* graphs = new EvictableGraphs;  // never destroyed: graphs in static objects may live longer
  return *graphs;
}

/// An instantiated graph, and the memory that its kernels use.
class CapturedGraph final : public Graph {
 public:
  CapturedGraph(cudaGraph_t graph, int64_t launches, std::vector<std::shared_ptr<Storage>> held)
      : held_(std::move(held)), launches_(launches) {
    size_t nodes = 0;
    cudaError_t status = cudaGraphGetNodes(graph, nullptr, &nodes);
    if (status == cudaSuccess) status = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    // Allocates the graph's memory on the device now instead of at the first launch: if it fails here, the
    // step can run without a graph.
    if (status == cudaSuccess) status = cudaGraphUpload(exec_, stream());
    if (status != cudaSuccess && exec_ != nullptr) cudaGraphExecDestroy(exec_);
    check(status, "making a graph of a step");
    kernels_ = static_cast<int64_t>(nodes);
  }
  ~CapturedGraph() override {
    {
      const std::lock_guard lock(evictable_graphs().mutex);
      std::erase(evictable_graphs().list, this);
    }
    give_up();
  }
  /// Waits for replays and frees the memory. Ignores failures, since the destructor calls it.
  void give_up() {
    if (exec_ == nullptr) return;
    cudaStreamSynchronize(stream());
    cudaGraphExecDestroy(exec_);
    exec_ = nullptr;
    kept_.reset();
  }
  void evictable() override {
    const std::lock_guard lock(evictable_graphs().mutex);
    evictable_graphs().list.push_back(this);
  }
  bool given_up() const override { return exec_ == nullptr; }
  std::thread::id thread() const { return thread_; }
  void launch() override {
    check(cudaGraphLaunch(exec_, stream()), "replaying a step");
    count_launches(launches_);
  }
  int64_t kernels() const override { return kernels_; }

 private:
  cudaGraphExec_t exec_ = nullptr;              // null once the graph is given up
  std::vector<std::shared_ptr<Storage>> held_;  // memory from before the capture that kernels read
  int64_t launches_, kernels_ = 0;
  std::thread::id thread_ = std::this_thread::get_id();
  std::optional<CapturedKept> kept_{std::in_place};
};

}  // namespace

bool give_up_graphs() {
  const std::lock_guard lock(evictable_graphs().mutex);
  return std::erase_if(evictable_graphs().list, [](CapturedGraph* graph) {
           if (graph->thread() != std::this_thread::get_id()) return false;
           graph->give_up();
           return true;
         }) > 0;
}

bool capturing() { return active_capture != nullptr; }

void refuse_capture(const char* what, const char* why) {
  if (capturing()) fail(Fault::device, what, " ", why);
}

void hold(const std::shared_ptr<Storage>& memory) {
  if (active_capture == nullptr) return;
  auto& held = active_capture->held_;
  if (std::find(held.begin(), held.end(), memory) == held.end()) held.push_back(memory);
}

Capture::Capture() : launches_(launches()) {
  check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "recording a step");
  active_capture = this;
}

Capture::~Capture() {
  if (!is_open_) return;
  active_capture = nullptr;
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream(), &graph) == cudaSuccess) cudaGraphDestroy(graph);
  cudaGetLastError();
}

std::unique_ptr<Graph> Capture::finish() {
  is_open_ = false;
  active_capture = nullptr;
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream(), &graph), "recording a step");
  const int64_t captured = launches() - launches_;
  count_launches(-captured);  // captured kernels have not run
  return std::make_unique<CapturedGraph>(graph, captured, std::move(held_));
}

}  // namespace heed::cuda
