// Averages effects of edges over pairs of inputs, and sorts and prints them.
#include "heed/train/inspect/circuit.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "heed/attention/inspect/edge_attribution.h"
#include "heed/attention/inspect/path_patching.h"
#include "heed/core/counted_work.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/train/metrics/rank_correlation.h"
#include "heed/train/tasks/recall_provider.h"

namespace heed {
namespace {

/// Adds values / count to sums, element by element.
void add_share(std::vector<double>& sums, const std::vector<double>& values, double count) {
  sums.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i] / count;
}

/// The edges of a graph with their effects, the largest first.
std::vector<CircuitEdge> sorted_edges(const ResidualGraph& graph, const std::vector<double>& scores,
                                      const std::vector<double>& exact) {
  std::vector<CircuitEdge> out;
  for (const GraphEdge& edge : graph.edges()) {
    const size_t i = out.size();
    out.push_back({.sender = graph.senders()[edge.sender].name(),
                   .receiver = graph.receivers()[edge.receiver].name(),
                   .score = scores[i],
                   .exact = exact.empty() ? 0 : exact[i]});
  }
  std::ranges::stable_sort(out, [&](const CircuitEdge& a, const CircuitEdge& b) {
    return exact.empty() ? std::abs(a.score) > std::abs(b.score) : std::abs(a.exact) > std::abs(b.exact);
  });
  return out;
}

}  // namespace

std::vector<ContrastPair> contrast_pairs(const Task& task, int64_t examples) {
  std::vector<ContrastPair> out;
  for (const KeySwap& swap : recall_provider(task).key_swaps(examples)) {
    const auto end = static_cast<std::ptrdiff_t>(swap.question + 1);
    out.push_back({.clean = {swap.tokens.begin(), swap.tokens.begin() + end},
                   .corrupted = {swap.swapped.begin(), swap.swapped.begin() + end},
                   .position = swap.question,
                   .right = swap.answer,
                   .wrong = swap.other_answer});
  }
  return out;
}

CircuitReport circuit(Module& model, std::span<const ContrastPair> pairs, const CircuitOptions& options) {
  auto* decoder = dynamic_cast<DecoderOnly*>(&model);
  if (decoder == nullptr)
    fail(
        "circuit: this model is no decoder-only transformer. Take a run of a language model, of mqar, "
        "mad-recall or mad-noisy.");
  if (pairs.empty()) fail("circuit: no pairs of inputs. Give at least one.");
  const ResidualGraph graph(*decoder);
  CircuitReport report{.pairs = std::ssize(pairs), .options = options};
  const auto count = static_cast<double>(pairs.size());
  std::vector<double> scores, exact;
  std::optional<CountedWork> work;
  if (pairs.size() > 1) work.emplace(count);  // else PathPatching counts its receivers
  for (const ContrastPair& pair : pairs) {
    const PathPatching patching(graph, pair);
    report.clean += patching.clean() / count;
    report.corrupted += patching.corrupted() / count;
    add_share(scores, edge_attribution(graph, pair, options.steps), count);
    if (options.is_exact) add_share(exact, patching.effects(), count);
    if (work) work->add();
  }
  report.edges = sorted_edges(graph, scores, exact);
  if (options.is_exact) report.correlation = rank_correlation(scores, exact);
  return report;
}

Json circuit_json(const CircuitReport& report) {
  std::vector<Json> edges;
  for (const CircuitEdge& edge : report.edges) {
    edges.push_back(
        Json::object({{"sender", edge.sender}, {"receiver", edge.receiver}, {"score", edge.score}}));
    if (report.options.is_exact) edges.back().append("exact", edge.exact);
  }
  Json out = Json::object({{"pairs", report.pairs},
                           {"steps", report.options.steps},
                           {"clean", report.clean},
                           {"corrupted", report.corrupted}});
  if (report.options.is_exact) out.append("correlation", report.correlation);
  out.append("edges", std::move(edges));
  return out;
}

std::string circuit_text(const CircuitReport& report, int64_t top) {
  const auto number = [](double value) { return formatted("%.4f", value); };
  const bool is_exact = report.options.is_exact;
  std::vector<TableRow> rows{{"sender", "receiver", "score"}};
  if (is_exact) rows.front().push_back("exact");
  const size_t shown = std::min(report.edges.size(), static_cast<size_t>(top));
  for (const CircuitEdge& edge : std::span(report.edges).first(shown)) {
    rows.push_back({edge.sender, edge.receiver, number(edge.score)});
    if (is_exact) rows.back().push_back(number(edge.exact));
  }
  std::string out =
      text("logit difference  clean ", number(report.clean), ", corrupted ", number(report.corrupted), "\n",
           shown, " of ", report.edges.size(), " edges, ", report.pairs,
           report.pairs == 1 ? " pair" : " pairs", ", steps ", report.options.steps, "\n\n");
  out += aligned_table(rows, {.alignment = "llrr"});
  if (is_exact) out += text("\nrank correlation of score and exact  ", number(report.correlation), "\n");
  return out;
}

}  // namespace heed
