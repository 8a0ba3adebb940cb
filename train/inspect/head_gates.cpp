// Hard concrete gates: z = clip(sigmoid((logit + noise) / temperature) (high - low) + low, 0, 1), where the
// noise is log(u / (1 - u)) with u uniform in (0, 1).
#include "heed/train/inspect/head_gates.h"

#include <algorithm>
#include <cmath>

#include "heed/autograd/tape.h"
#include "heed/core/counted_work.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/table_text.h"
#include "heed/train/optim/optimizer.h"

namespace heed {
namespace {

constexpr double temperature = 2.0 / 3, low = -0.1, high = 1.1;  // beta, gamma and zeta of Louizos et al.
constexpr double initial_logit = 2;                              // most gates begin open
const double open_offset = temperature * std::log(-low / high);  // P(z > 0) = sigmoid(logit - open_offset)

/// The gates of every attention of a model. They multiply the outputs of heads, with new noise in each pass.
class HeadGates final : public Module, public HeadEditor {
 public:
  HeadGates(const std::vector<ModelHead>& heads, uint64_t seed) : rng_(seed) {
    for (const ModelHead& head : heads) {
      if (modules_.empty() || modules_.back() != head.module) {
        modules_.push_back(head.module);
        counts_.push_back(0);
      }
      ++counts_.back();
    }
    for (const int64_t count : counts_) logits_.push_back(leaf(Tensor::full(Shape{count}, initial_logit)));
    for (size_t i = 0; i < logits_.size(); ++i) names_.push_back(text("gate_", i));
  }

  void fields(Fields& f) override {
    for (size_t i = 0; i < logits_.size(); ++i) f(names_[i].c_str(), logits_[i]);
  }

  Tensor edit_heads(const Module& module, const Tensor& heads, const AttentionInput&) override {
    const auto found = std::find(modules_.begin(), modules_.end(), &module);
    if (found == modules_.end()) return heads;
    const Tensor& logits = logits_[static_cast<size_t>(found - modules_.begin())];
    std::vector<float> noise;
    for (int64_t head = 0; head < logits.size(); ++head) {
      const double u = std::clamp(rng_.uniform(), 1e-6, 1 - 1e-6);
      noise.push_back(static_cast<float>(std::log(u / (1 - u))));
    }
    const Tensor noise_tensor = Tensor::from(noise, logits.shape()).to(logits.device());
    const Tensor sigmoids = sigmoid((logits + noise_tensor) / temperature);
    const Tensor gates = minimum(maximum(sigmoids * (high - low) + low, 0.0), 1.0);
    return heads * cast(reshape(gates, Shape{1, gates.size(), 1, 1}), heads.dtype());
  }

  /// The expected number of open gates.
  Tensor expected_open() const {
    Tensor total;
    for (const Tensor& logits : logits_) {
      const Tensor of_attention = sum(sigmoid(logits - open_offset));
      total = total ? total + of_attention : of_attention;
    }
    return total;
  }

  /// The trained gates of these heads, in their order.
  std::vector<HeadGate> values(const std::vector<ModelHead>& heads) const {
    const auto sigmoid_of = [](double x) { return 1 / (1 + std::exp(-x)); };
    std::vector<HeadGate> out;
    for (const Tensor& logits : logits_) {
      for (const double logit : logits.to_doubles())
        out.push_back({.name = heads[out.size()].name,
                       .open = sigmoid_of(logit - open_offset),
                       .value = std::clamp(sigmoid_of(logit) * (high - low) + low, 0.0, 1.0)});
    }
    return out;
  }

 private:
  Rng rng_;
  std::vector<const Module*> modules_;  // the attentions
  std::vector<int64_t> counts_;         // number of heads of each
  std::vector<Tensor> logits_;          // [H] of each
  std::vector<std::string> names_;      // parameter names of the logits
};

}  // namespace

GateReport train_head_gates(Task& task, Module& model, const GateOptions& options,
                            const AblationOptions& measurement, const DecodeOptions& decode) {
  const std::vector<ModelHead> heads = heads_of_model(task, model);
  visit_tensors(model, [](const std::string&, Tensor& x) { x = x.detach(); });  // only gates are trained
  HeadGates gates(heads, options.seed);
  Optimizer optimizer(gates, {.kind = OptimizerKind::adam});
  GateReport out;
  double sum_of_last_losses = 0;
  const int64_t last_steps = std::max<int64_t>(options.steps / 10, 1);
  int64_t epoch = 0, num_batches = task.plan(0), position = 0;
  std::optional<CountedWork> work(static_cast<double>(options.steps));
  for (int64_t step = 0; step < options.steps; ++step) {
    if (position == num_batches) {
      num_batches = task.plan(++epoch);
      position = 0;
    }
    const Tensor loss = task.loss(model, task.batch(position++), {.editor = &gates});
    if (step >= options.steps - last_steps) sum_of_last_losses += loss.item();
    backward(loss + gates.expected_open() * options.penalty);
    optimizer.step(options.learning_rate);
    work->add();
  }
  work.reset();  // ablate_heads() below counts its own work
  out.loss = sum_of_last_losses / static_cast<double>(last_steps);
  out.gates = gates.values(heads);
  AblationOptions closing = measurement;
  closing.by = {};
  closing.curve = false;
  closing.heads.clear();
  constexpr double min_kept_value = 0.5;
  for (const HeadGate& gate : out.gates) {
    if (gate.value >= min_kept_value)
      ++out.kept;
    else
      closing.heads += (closing.heads.empty() ? "" : ",") + gate.name;
  }
  if (closing.heads.empty()) return out;
  const AblationReport closed = ablate_heads(task, model, closing, decode);
  out.effect = closed.layers.empty() ? closed.heads[0] : closed.layers[0];
  out.effect.name = "closed gates";
  return out;
}

Json gates_json(const GateReport& report) {
  Json gates{Json::List{}};
  for (const HeadGate& gate : report.gates)
    gates.push(Json::object({{"name", gate.name}, {"open", gate.open}, {"value", gate.value}}));
  return Json::object({{"gates", std::move(gates)},
                       {"kept", report.kept},
                       {"loss_with_noise", report.loss},
                       {"loss_change", report.effect.loss.value},
                       {"loss_change_error", report.effect.loss.error}});
}

std::string gates_text(const GateReport& report) {
  std::vector<TableRow> rows{{"gate", "value", "open"}};
  for (const HeadGate& gate : report.gates)
    rows.push_back({gate.name, formatted("%.2f", gate.value), formatted("%.2f", gate.open)});
  return aligned_table(rows, {.alignment = "lrr", .indent = 2}) +
         formatted("  %lld of %zu heads stay; closing the others changes the loss by %+.4f +- %.4f\n",
                   static_cast<long long>(report.kept), report.gates.size(), report.effect.loss.value,
                   report.effect.loss.error);
}

}  // namespace heed
