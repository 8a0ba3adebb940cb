// Edge attribution against derivatives, exact effects and the sum that they must have.
#include "heed/attention/inspect/edge_attribution.h"

#include "heed/attention/inspect/path_patching.h"
#include "heed/tests/attention/inspect/contrast_models.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// The derivative of the logit difference by what one edge carries, along the change of its sender, by
/// central differences.
double edge_derivative(const ResidualGraph& graph, const GraphTrace& clean, const GraphTrace& corrupted,
                       const GraphEdge& edge) {
  const NoGrad no_grad;
  constexpr double step = 1e-5;
  const Tensor change = corrupted.outputs[edge.sender] - clean.outputs[edge.sender];
  const auto difference_at = [&](double share) {
    const Tensor hidden = graph.hidden(clean.outputs[0], 0, [&](size_t receiver, const Tensor& x) {
      return receiver == edge.receiver ? x + change * share : Tensor();
    });
    return logit_difference(graph.model(), hidden, contrast_pair()).item();
  };
  return (difference_at(step) - difference_at(-step)) / (2 * step);
}

/// A model whose norms are linear to 1e-12: the constant under their root is far above the variance.
std::unique_ptr<DecoderOnly> model_with_linear_norms() {
  TransformerConfig config = contrast_config();
  config.norm_epsilon = 1e12;
  auto model = contrast_model("softmax", config);
  visit_tensors(*model, [](const std::string& name, Tensor& x) {
    if (name.ends_with("norm.gain")) x = leaf(Tensor::full(x.shape(), 1e6, DType::f64));
  });
  return model;
}

/// The sum of the scores of all edges from the embedding.
double sum_from_embedding(const ResidualGraph& graph, int64_t steps) {
  const std::vector<double> scores = edge_attribution(graph, contrast_pair(), steps);
  const std::vector<GraphEdge> edges = graph.edges();
  double sum = 0;
  for (size_t i = 0; i < edges.size(); ++i) sum += edges[i].sender == 0 ? scores[i] : 0;
  return sum;
}

}  // namespace

TEST_CASE("edge attribution: with one step, a score is the derivative along the edge") {
  TransformerConfig grouped = contrast_config(4);
  grouped.kv_heads = 2;
  grouped.short_convolution = 2;
  const std::vector<std::pair<std::string, TransformerConfig>> all{{"softmax", grouped},
                                                                   {"gla", contrast_config()}};
  for (const auto& [spec, config] : all) {
    CAPTURE(spec);
    const auto model = contrast_model(spec, config);
    const ResidualGraph graph(*model);
    const GraphTrace clean = graph.trace(contrast_pair().clean),
                     corrupted = graph.trace(contrast_pair().corrupted);
    const std::vector<GraphEdge> edges = graph.edges();
    const std::vector<double> scores = edge_attribution(graph, contrast_pair(), 1);
    REQUIRE(scores.size() == edges.size());
    for (size_t i = 0; i < edges.size(); ++i) {
      CAPTURE(graph.senders()[edges[i].sender].name(), graph.receivers()[edges[i].receiver].name());
      CHECK(scores[i] ==
            Approx(edge_derivative(graph, clean, corrupted, edges[i])).epsilon(1e-5).margin(1e-8));
    }
  }
}

TEST_CASE("edge attribution: it is exact where the answer is linear in the edge") {
  const auto model = model_with_linear_norms();
  const ResidualGraph graph(*model);
  const std::vector<double> exact = PathPatching(graph, contrast_pair()).effects();
  const std::vector<double> plain = edge_attribution(graph, contrast_pair(), 1),
                            integrated = edge_attribution(graph, contrast_pair(), 3);
  const std::vector<GraphEdge> edges = graph.edges();
  double furthest = 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    const EdgeReceiver& receiver = graph.receivers()[edges[i].receiver];
    CAPTURE(graph.senders()[edges[i].sender].name(), receiver.name());
    if (receiver.kind == ReceiverKind::logits) {
      CHECK(plain[i] == Approx(exact[i]).margin(1e-10));
      CHECK(integrated[i] == Approx(exact[i]).margin(1e-10));
    } else {
      furthest = std::max(furthest, std::abs(plain[i] - exact[i]));
    }
  }
  CHECK(furthest > 1e-4);  // other edges pass a softmax or a relu
}

TEST_CASE("edge attribution: edges from the embedding sum to the whole difference of logits") {
  // Each receiver reads the embedding, so their gradients sum to that of the embedding, and its integral
  // along the path is the difference. The sum of m steps is off by about 1 / m; 2 S(2m) - S(m) by 1 / m^2.
  TransformerConfig smooth = contrast_config();
  smooth.activation = Activation::gelu;
  for (const std::string spec : {"softmax", "gla"}) {
    CAPTURE(spec);
    const auto model = contrast_model(spec, smooth);
    const ResidualGraph graph(*model);
    const PathPatching patching(graph, contrast_pair());
    const double whole = patching.corrupted() - patching.clean();
    const double one = sum_from_embedding(graph, 32), two = sum_from_embedding(graph, 64);
    CHECK(std::abs(whole) > 0.05);
    CHECK(2 * two - one == Approx(whole).margin(0.01 * std::abs(whole)));
    CHECK(std::abs(two - whole) < 0.7 * std::abs(one - whole));
  }
}

TEST_CASE("edge attribution: parameters keep their values and get no gradients") {
  TransformerConfig tied = contrast_config();
  tied.tie_embeddings = Tie::output;
  const auto model = contrast_model("softmax", tied);
  const std::string before = save_bytes(*model);
  const size_t count = parameters(*model).size();
  const ResidualGraph graph(*model);
  edge_attribution(graph, contrast_pair(), 2);
  CHECK(save_bytes(*model) == before);
  REQUIRE(parameters(*model).size() == count);
  for (const Named& one : parameters(*model)) CHECK(!grad_of(*one.tensor));
  CHECK_THROWS_WITH(edge_attribution(graph, contrast_pair(), 0), Catch::Contains("0 steps"));
}
