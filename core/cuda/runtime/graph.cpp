// Streams captured into graphs.
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

thread_local Capture* recording = nullptr;

class Recorded;

/// Of all threads: who recorded a graph need not be who destroys it.
struct Evictable {
  std::mutex mutex;
  std::vector<Recorded*> list;
};
Evictable& spared() {
  static auto* one = new Evictable;  // never destroyed, as graphs in static objects may be later
  return *one;
}

class Recorded final : public Graph {
 public:
  Recorded(cudaGraph_t graph, int64_t launches, std::vector<std::shared_ptr<Storage>> held)
      : held_(std::move(held)), launches_(launches) {
    size_t nodes = 0;
    cudaError_t status = cudaGraphGetNodes(graph, nullptr, &nodes);
    if (status == cudaSuccess) status = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    // What the device wants of its memory for a graph it takes now, not when the graph is launched first:
    // here there is another way to take the step.
    if (status == cudaSuccess) status = cudaGraphUpload(exec_, stream());
    if (status != cudaSuccess && exec_ != nullptr) cudaGraphExecDestroy(exec_);
    check(status, "making a graph of a step");
    kernels_ = static_cast<int64_t>(nodes);
  }
  ~Recorded() override {
    {
      const std::lock_guard lock(spared().mutex);
      std::erase(spared().list, this);
    }
    give_up();
  }
  /// What may still run ends first; there is nobody to tell of a failure.
  void give_up() {
    if (exec_ == nullptr) return;
    cudaStreamSynchronize(stream());
    cudaGraphExecDestroy(exec_);
    exec_ = nullptr;
    kept_.reset();
  }
  void evictable() override {
    const std::lock_guard lock(spared().mutex);
    spared().list.push_back(this);
  }
  bool given_up() const override { return exec_ == nullptr; }
  std::thread::id thread() const { return thread_; }
  void launch() override {
    check(cudaGraphLaunch(exec_, stream()), "replaying a step");
    count_launches(launches_);
  }
  int64_t kernels() const override { return kernels_; }

 private:
  cudaGraphExec_t exec_ = nullptr;
  std::vector<std::shared_ptr<Storage>> held_;
  int64_t launches_, kernels_ = 0;
  std::thread::id thread_ = std::this_thread::get_id();
  std::optional<CapturedKept> kept_{std::in_place};
};

}  // namespace

bool give_up_graphs() {
  const std::lock_guard lock(spared().mutex);
  return std::erase_if(spared().list, [](Recorded* graph) {
           if (graph->thread() != std::this_thread::get_id()) return false;
           graph->give_up();
           return true;
         }) > 0;
}

bool capturing() { return recording != nullptr; }

void refuse_capture(const char* what, const char* why) {
  if (capturing()) fail(Fault::device, what, " ", why);
}

void hold(const std::shared_ptr<Storage>& memory) {
  if (recording == nullptr) return;
  auto& held = recording->held_;
  if (std::find(held.begin(), held.end(), memory) == held.end()) held.push_back(memory);
}

Capture::Capture() : launches_(launches()) {
  check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "recording a step");
  recording = this;
}

Capture::~Capture() {
  if (!open_) return;
  recording = nullptr;
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream(), &graph) == cudaSuccess) cudaGraphDestroy(graph);
  cudaGetLastError();
}

std::unique_ptr<Graph> Capture::finish() {
  open_ = false;
  recording = nullptr;
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream(), &graph), "recording a step");
  const int64_t asked = launches() - launches_;
  count_launches(-asked);  // recorded, not started
  return std::make_unique<Recorded>(graph, asked, std::move(held_));
}

}  // namespace heed::cuda
