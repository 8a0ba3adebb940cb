// Measures what replaced heads cost: paired over examples, so that errors are those of differences.
#include "heed/train/inspect/head_ablation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/core/counted_work.h"
#include "heed/core/settings_in_errors.h"
#include "heed/data/batching/shuffle.h"
#include "heed/train/metrics/bleu.h"
#include "heed/train/progress/progress.h"
#include "heed/train/tasks/example_provider.h"

namespace heed {
namespace {

constexpr int64_t rows_at_once = 64, bootstrap_samples = 200;

/// How each example went: losses, and counts of BLEU for the first ones.
struct Outcome {
  std::vector<ExampleScore> scores;
  std::vector<Bleu> bleu;
};

/// Passes over the examples: all of them, and the sample of them.
struct Passes {
  int64_t runs = 0, samples = 0;
};

/// Runs a model over the same examples again and again, with heads replaced or without.
class AblationBench {
 public:
  AblationBench(const Task& task, Module& model, const AblationOptions& options, const DecodeOptions& decode)
      : task_(task), model_(model), decode_(decode) {
    int64_t count = 0;
    const auto lists = batches_of_equal_lengths(task, options.examples, options.max_tokens, rows_at_once);
    for (const auto& numbers : lists) count += static_cast<int64_t>(numbers.size());
    const int64_t skip = std::max<int64_t>((count + options.curve_examples - 1) / options.curve_examples, 1);
    for (const auto& numbers : lists) {
      batches_.push_back(example_provider(task).test_batch(numbers, options.max_tokens));
      std::vector<int64_t> some;  // every so many, in the order of lengths
      for (const int64_t number : numbers)
        if (examples_++ % skip == 0) some.push_back(number);
      if (!some.empty()) sample_.push_back(example_provider(task).test_batch(some, options.max_tokens));
    }
    outputs_.resize(static_cast<size_t>(std::min(options.outputs, num_test_examples(task))));
    std::iota(outputs_.begin(), outputs_.end(), 0);
  }
  int64_t examples() const { return examples_; }

  /// Counts from now on, as part of so many runs and samples.
  void count(const Passes& all) {
    work_.emplace(static_cast<double>(all.runs) * static_cast<double>(batches_.size() + outputs_.size()) +
                  static_cast<double>(all.samples) * static_cast<double>(sample_.size()));
  }

  /// The sum of the losses of a sample of the examples, for choosing between heads.
  double loss_of_sample(HeadEditor* editor) {
    double loss = 0;
    for (const ExampleBatch& batch : sample_) {
      for (const ExampleScore& score :
           example_provider(task_).example_scores(model_, batch, {.editor = editor}))
        loss += score.loss;
      work_->add();
    }
    return loss;
  }

  Outcome run(HeadEditor* editor) {
    Outcome out;
    if (!outputs_.empty()) translate(editor, out);
    for (const ExampleBatch& batch : batches_) {
      const auto scores = example_provider(task_).example_scores(model_, batch, {.editor = editor});
      out.scores.insert(out.scores.end(), scores.begin(), scores.end());
      work_->add();
    }
    return out;
  }

 private:
  void translate(HeadEditor* editor, Outcome& out) {
    for (const ReportSample& one : example_provider(task_).test_outputs(model_, outputs_, decode_, editor))
      out.bleu.push_back(corpus_bleu(std::span(&one.hypothesis, 1), std::span(&one.reference, 1)));
    if (out.bleu.empty())
      fail(advice("--", "AblationOptions::"), "outputs = ", outputs_.size(),
           " is of translators: this task writes no texts. Leave it out.");
    work_->add(static_cast<double>(outputs_.size()));
  }

  const Task& task_;
  Module& model_;
  const DecodeOptions& decode_;
  std::vector<ExampleBatch> batches_, sample_;
  std::vector<int64_t> outputs_;
  int64_t examples_ = 0;
  std::optional<CountedWork> work_;
};

/// The ratio of sums of `part` and targets over examples, and its standard error (linearised).
MeanChange ratio(const std::vector<double>& part, const std::vector<ExampleScore>& scores) {
  double sum = 0, targets = 0;
  for (size_t i = 0; i < part.size(); ++i) {
    sum += part[i];
    targets += scores[i].targets;
  }
  const auto n = static_cast<double>(part.size());
  MeanChange out{.value = targets > 0 ? sum / targets : 0};
  if (part.size() < 2 || targets <= 0) return out;
  double squares = 0;
  for (size_t i = 0; i < part.size(); ++i) squares += std::pow(part[i] - out.value * scores[i].targets, 2);
  out.error = std::sqrt(n / (n - 1) * squares) / targets;
  return out;
}

Bleu summed(const std::vector<Bleu>& counts, const std::vector<size_t>& chosen) {
  Bleu sum;
  for (const size_t i : chosen) {
    const Bleu& one = counts[i];
    for (size_t n = 0; n < sum.correct.size(); ++n) {
      sum.correct[n] += one.correct[n];
      sum.total[n] += one.total[n];
    }
    sum.length += one.length;
    sum.reference_length += one.reference_length;
  }
  return bleu_of_counts(sum);
}

std::vector<size_t> all_of(size_t count) {
  std::vector<size_t> out(count);
  std::iota(out.begin(), out.end(), size_t{0});
  return out;
}

/// The change of BLEU, and the deviation of that of paired bootstrap samples (Koehn 2004).
std::optional<MeanChange> bleu_change(const std::vector<Bleu>& before, const std::vector<Bleu>& after) {
  if (before.empty()) return {};
  const std::vector<size_t> all = all_of(before.size());
  MeanChange out{.value = summed(after, all).score - summed(before, all).score};
  double sum = 0, squares = 0;
  std::vector<size_t> chosen(before.size());
  for (int64_t sample = 0; sample < bootstrap_samples; ++sample) {
    for (size_t i = 0; i < chosen.size(); ++i)
      chosen[i] = static_cast<size_t>(
          counter_below(1, static_cast<uint64_t>(sample), i, static_cast<int64_t>(before.size())));
    const double change = summed(after, chosen).score - summed(before, chosen).score;
    sum += change;
    squares += change * change;
  }
  const auto n = static_cast<double>(bootstrap_samples);
  out.error = std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
  return out;
}

AblationEffect effect_of(const std::string& name, const Outcome& before, const Outcome& after) {
  std::vector<double> loss, right;
  for (size_t i = 0; i < before.scores.size(); ++i) {
    loss.push_back(after.scores[i].loss - before.scores[i].loss);
    right.push_back(after.scores[i].right - before.scores[i].right);
  }
  return {.name = name,
          .loss = ratio(loss, before.scores),
          .accuracy = ratio(right, before.scores),
          .bleu = bleu_change(before.bleu, after.bleu)};
}

AblationScores scores_of_outcome(const Outcome& unpruned) {
  AblationScores out;
  double targets = 0;
  for (const ExampleScore& one : unpruned.scores) {
    out.loss += one.loss;
    out.accuracy += one.right;
    targets += one.targets;
  }
  out.loss /= std::max(targets, 1.0);
  out.accuracy /= std::max(targets, 1.0);
  if (!unpruned.bleu.empty()) out.bleu = summed(unpruned.bleu, all_of(unpruned.bleu.size())).score;
  return out;
}

/// Removes head after head: each time the one whose removal costs least among the candidates.
class GreedyPruning {
 public:
  GreedyPruning(AblationBench& bench, HeadAblation& ablation, const AblationOptions& options)
      : bench_(bench), ablation_(ablation), options_(options) {}

  std::vector<PruningStep> run(std::vector<ModelHead> left, std::vector<double> cost,
                               const Outcome& unpruned) {
    std::vector<PruningStep> out{{.removed = "", .left = static_cast<int64_t>(left.size())}};
    std::vector<ModelHead> off;
    while (!left.empty()) {
      const size_t next = cheapest(left, cost, off);
      off.push_back(left[next]);
      ablation_.set(off);
      const std::string name = left[next].name;
      left.erase(left.begin() + static_cast<int64_t>(next));
      cost.erase(cost.begin() + static_cast<int64_t>(next));
      out.push_back({.removed = name,
                     .left = static_cast<int64_t>(left.size()),
                     .effect = effect_of(name, unpruned, bench_.run(&ablation_))});
    }
    return out;
  }

 private:
  /// Tries the heads that cost least so far, and refreshes their costs.
  size_t cheapest(const std::vector<ModelHead>& left, std::vector<double>& cost,
                  const std::vector<ModelHead>& off) {
    std::vector<size_t> order = all_of(left.size());
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return cost[a] < cost[b]; });
    order.resize(std::min(order.size(), static_cast<size_t>(options_.tried)));
    if (order.size() == 1) return order[0];
    size_t best = order[0];
    for (const size_t candidate : order) {
      std::vector<ModelHead> tried = off;
      tried.push_back(left[candidate]);
      ablation_.set(tried);
      cost[candidate] = bench_.loss_of_sample(&ablation_);
      if (cost[candidate] < cost[best] || candidate == best) best = candidate;
    }
    return best;
  }

  AblationBench& bench_;
  HeadAblation& ablation_;
  const AblationOptions& options_;
};

/// Passes over the examples that a report takes at most.
Passes passes(int64_t heads, int64_t layers, const AblationOptions& options) {
  Passes out{.runs = 1 + heads + layers};
  if (!options.curve || !options.heads.empty()) return out;
  out.runs += heads;
  for (int64_t left = heads; left > 1; --left) {
    const int64_t tried = std::min(left, options.tried);
    out.samples += tried > 1 ? tried : 0;
  }
  return out;
}

}  // namespace

AblationReport ablate_heads(const Task& task, Module& model, const AblationOptions& options,
                            const DecodeOptions& decode) {
  const double began = seconds_now();
  const std::vector<ModelHead> all = heads_of_model(task, model);
  const bool chosen = !options.heads.empty();
  const std::vector<ModelHead> heads = chosen ? named_heads(all, options.heads) : all;
  std::vector<std::vector<ModelHead>> groups;  // whole layers, or all that were asked for
  for (const ModelHead& head : heads) {
    if (groups.empty() || (!chosen && groups.back().back().module != head.module)) groups.emplace_back();
    groups.back().push_back(head);
  }
  MeanOutputs means;
  if (options.by.kind == HeadReplacement::Kind::mean)
    means = mean_outputs(task, model, options.examples, options.max_tokens);
  HeadAblation ablation(options.by, &means);
  AblationBench bench(task, model, options, decode);
  bench.count(passes(static_cast<int64_t>(heads.size()), static_cast<int64_t>(groups.size()), options));
  const Outcome unpruned = bench.run(nullptr);
  AblationReport out{.by = options.by,
                     .examples = bench.examples(),
                     .outputs = static_cast<int64_t>(unpruned.bleu.size()),
                     .unpruned = scores_of_outcome(unpruned)};
  std::vector<double> cost;
  for (const ModelHead& head : heads) {
    ablation.set({head});
    out.heads.push_back(effect_of(head.name, unpruned, bench.run(&ablation)));
    cost.push_back(out.heads.back().loss.value);
  }
  for (const std::vector<ModelHead>& group : groups) {
    if (group.size() == 1 && chosen) continue;
    ablation.set(group);
    out.layers.push_back(effect_of(chosen ? "all of these" : group[0].layer, unpruned, bench.run(&ablation)));
  }
  if (options.curve && !chosen) {
    GreedyPruning pruning(bench, ablation, options);
    out.curve = pruning.run(heads, cost, unpruned);
  }
  out.seconds = seconds_now() - began;
  return out;
}

}  // namespace heed
