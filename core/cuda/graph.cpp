// Streams captured into graphs.
#include "core/cuda/graph.h"

#include "core/cuda/stream.h"

namespace heed::cuda {
namespace {

thread_local int recording = 0;

class Recorded final : public Graph {
 public:
  Recorded(cudaGraph_t graph, int64_t launches) : launches_(launches) {
    size_t nodes = 0;
    cudaError_t status = cudaGraphGetNodes(graph, nullptr, &nodes);
    if (status == cudaSuccess) status = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "making a graph of a step");
    kernels_ = static_cast<int64_t>(nodes);
  }
  ~Recorded() override {
    // What may still run must end first; in a destructor there is nobody to tell of a failure.
    cudaStreamSynchronize(stream());
    cudaGraphExecDestroy(exec_);
  }
  void launch() override {
    check(cudaGraphLaunch(exec_, stream()), "replaying a step");
    count_launches(launches_);
  }
  int64_t kernels() const override { return kernels_; }

 private:
  cudaGraphExec_t exec_ = nullptr;
  int64_t launches_, kernels_ = 0;
};

}  // namespace

bool capturing() { return recording > 0; }

void refuse_capture(const char* what) {
  if (capturing()) fail(Fault::device, what, " is decided on the host, anew in every step");
}

Capture::Capture() : launches_(launches()) {
  check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "recording a step");
  ++recording;
}

Capture::~Capture() {
  if (!open_) return;
  --recording;
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream(), &graph) == cudaSuccess) cudaGraphDestroy(graph);
  cudaGetLastError();
}

std::unique_ptr<Graph> Capture::finish() {
  open_ = false;
  --recording;
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream(), &graph), "recording a step");
  const int64_t asked = launches() - launches_;
  count_launches(-asked);  // recorded, not started
  return std::make_unique<Recorded>(graph, asked);
}

}  // namespace heed::cuda
