// Gradients of what receivers read, over steps from the corrupted to the clean embeddings.
#include "heed/attention/inspect/edge_attribution.h"

#include <utility>

#include "heed/autograd/ops.h"

namespace heed {
namespace {

/// While one lives, the tensors of a model are constants, so that backward() leaves their gradients alone.
class ConstantTensors : NonCopyable {
 public:
  explicit ConstantTensors(Module& model) {
    visit_tensors(model, [this](const std::string&, Tensor& x) {
      tensors_.emplace_back(&x, x);
      x = x.detach();
    });
  }
  ~ConstantTensors() {
    while (!tensors_.empty()) {  // the last first: a tied tensor was visited more than once
      *tensors_.back().first = tensors_.back().second;
      tensors_.pop_back();
    }
  }

 private:
  std::vector<std::pair<Tensor*, Tensor>> tensors_;
};

/// The sum over `steps` of the gradient of the logit difference by what each receiver reads, [1, T, width]
/// each; empty where none flows.
std::vector<Tensor> summed_gradients(const ResidualGraph& graph, const ContrastPair& pair,
                                     const Tensor& clean, const Tensor& corrupted, int64_t steps) {
  const ConstantTensors constants(graph.model());
  const EnableGrad recorded;
  std::vector<Tensor> shifts;  // zeros, added to what each receiver reads
  for (size_t i = 0; i < graph.receivers().size(); ++i)
    shifts.push_back(leaf(Tensor::zeros(clean.shape(), clean.dtype(), clean.device())));
  for (int64_t k = 1; k <= steps; ++k) {
    const double share =
        1 - static_cast<double>(k) / static_cast<double>(steps);  // weight of the corrupted input
    const Tensor hidden =
        graph.hidden(clean + (corrupted - clean) * share, 0,
                     [&](size_t receiver, const Tensor& x) { return x + shifts[receiver]; });
    backward(logit_difference(graph.model(), hidden, pair));
  }
  std::vector<Tensor> out;
  for (const Tensor& shift : shifts) out.push_back(grad_of(shift));
  return out;
}

}  // namespace

std::vector<double> edge_attribution(const ResidualGraph& graph, const ContrastPair& pair, int64_t steps) {
  check(pair, graph.model());
  if (steps < 1) fail("edge attribution: ", steps, " steps. It must be at least 1, such as 5.");
  const GraphTrace clean = graph.trace(pair.clean), corrupted = graph.trace(pair.corrupted);
  const std::vector<Tensor> gradients =
      summed_gradients(graph, pair, clean.outputs[0], corrupted.outputs[0], steps);
  const NoGrad no_grad;
  const Tensor changes = concat(corrupted.outputs, 0) - concat(clean.outputs, 0);  // [senders, T, width]
  const Tensor rows = reshape(changes, Shape{changes.extent(0), -1});
  std::vector<double> out;
  for (size_t receiver = 0; receiver < gradients.size(); ++receiver) {
    const size_t senders = graph.num_senders(receiver);
    if (!gradients[receiver]) {
      out.insert(out.end(), senders, 0.0);
      continue;
    }
    const Tensor products =
        matmul(slice(rows, 0, 0, static_cast<int64_t>(senders)), reshape(gradients[receiver], Shape{-1, 1}));
    for (const double product : products.to_doubles()) out.push_back(product / static_cast<double>(steps));
  }
  return out;
}

}  // namespace heed
