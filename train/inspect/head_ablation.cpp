// Measures the effects of replaced heads. Scores are paired over examples, so errors are those of
// differences.
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

constexpr int64_t max_rows = 64;  // limit of a batch
constexpr int64_t bootstrap_samples = 200;

/// Scores of one model, example by example.
struct Outcome {
  std::vector<ExampleScore> scores;  ///< scores of all examples
  std::vector<Bleu> bleu;            ///< n-gram counts of the translated examples
};

/// Numbers of passes over the examples.
struct PassCounts {
  int64_t full = 0;    ///< over all examples
  int64_t sample = 0;  ///< over the sample
};

/// Runs a model over fixed examples, with heads replaced by an editor or (null) without.
class AblationBench {
 public:
  AblationBench(const Task& task, Module& model, const AblationOptions& options, const DecodeOptions& decode)
      : task_(task), model_(model), decode_(decode) {
    int64_t count = 0;
    const auto lists = batches_of_equal_lengths(task, options.examples, options.max_tokens, max_rows);
    for (const auto& numbers : lists) count += static_cast<int64_t>(numbers.size());
    // The sample takes every `stride`-th example in the order of lengths.
    const int64_t stride =
        std::max<int64_t>((count + options.curve_examples - 1) / options.curve_examples, 1);
    for (const auto& numbers : lists) {
      batches_.push_back(example_provider(task).test_batch(numbers, options.max_tokens));
      std::vector<int64_t> sampled;
      for (const int64_t number : numbers)
        if (num_examples_++ % stride == 0) sampled.push_back(number);
      if (!sampled.empty())
        sample_batches_.push_back(example_provider(task).test_batch(sampled, options.max_tokens));
    }
    translated_.resize(static_cast<size_t>(std::min(options.outputs, num_test_examples(task))));
    std::iota(translated_.begin(), translated_.end(), 0);
  }
  int64_t num_examples() const { return num_examples_; }

  /// Begins to show progress toward these numbers of passes. Called before the first pass.
  void begin_progress(const PassCounts& passes) {
    work_.emplace(static_cast<double>(passes.full) *
                      static_cast<double>(batches_.size() + translated_.size()) +
                  static_cast<double>(passes.sample) * static_cast<double>(sample_batches_.size()));
  }

  /// The sum of the losses over the sample, by which pruning chooses between heads.
  double loss_of_sample(HeadEditor* editor) {
    double loss = 0;
    for (const ExampleBatch& batch : sample_batches_) {
      for (const ExampleScore& score :
           example_provider(task_).example_scores(model_, batch, {.editor = editor}))
        loss += score.loss;
      work_->add();
    }
    return loss;
  }

  /// Runs over all examples.
  Outcome run(HeadEditor* editor) {
    const ExampleProvider& provider = example_provider(task_);
    Outcome out;
    if (!translated_.empty()) {
      for (const ReportSample& sample : provider.test_outputs(model_, translated_, decode_, editor))
        out.bleu.push_back(corpus_bleu(std::span(&sample.hypothesis, 1), std::span(&sample.reference, 1)));
      work_->add(static_cast<double>(translated_.size()));
    }
    for (const ExampleBatch& batch : batches_) {
      const auto scores = provider.example_scores(model_, batch, {.editor = editor});
      out.scores.insert(out.scores.end(), scores.begin(), scores.end());
      work_->add();
    }
    return out;
  }

 private:
  const Task& task_;
  Module& model_;
  const DecodeOptions& decode_;
  std::vector<ExampleBatch> batches_, sample_batches_;
  std::vector<int64_t> translated_;  // numbers of the examples that are translated
  int64_t num_examples_ = 0;
  std::optional<CountedWork> work_;
};

/// The change per target: sum of changes / sum of targets over examples, with its linearised standard error.
MeanChange change_per_target(const std::vector<double>& changes, const std::vector<ExampleScore>& scores) {
  double sum = 0, targets = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    sum += changes[i];
    targets += scores[i].targets;
  }
  const auto n = static_cast<double>(changes.size());
  MeanChange out{.value = targets > 0 ? sum / targets : 0};
  if (changes.size() < 2 || targets <= 0) return out;
  double squares = 0;
  for (size_t i = 0; i < changes.size(); ++i)
    squares += std::pow(changes[i] - out.value * scores[i].targets, 2);
  out.error = std::sqrt(n / (n - 1) * squares) / targets;
  return out;
}

/// BLEU of a corpus of the examples with these indices, from the n-gram counts of each example.
double bleu_of_examples(const std::vector<Bleu>& counts, const std::vector<size_t>& indices) {
  Bleu sum;
  for (const size_t index : indices) {
    const Bleu& example = counts[index];
    for (size_t n = 0; n < sum.correct.size(); ++n) {
      sum.correct[n] += example.correct[n];
      sum.total[n] += example.total[n];
    }
    sum.length += example.length;
    sum.reference_length += example.reference_length;
  }
  return bleu_of_counts(sum).score;
}

/// 0, 1, ..., count - 1.
std::vector<size_t> indices_up_to(size_t count) {
  std::vector<size_t> out(count);
  std::iota(out.begin(), out.end(), size_t{0});
  return out;
}

/// The change of BLEU; its error is the standard deviation over paired bootstrap samples (Koehn 2004).
std::optional<MeanChange> bleu_change(const std::vector<Bleu>& unpruned, const std::vector<Bleu>& pruned) {
  if (unpruned.empty()) return {};
  const auto change_over = [&](const std::vector<size_t>& indices) {
    return bleu_of_examples(pruned, indices) - bleu_of_examples(unpruned, indices);
  };
  MeanChange out{.value = change_over(indices_up_to(unpruned.size()))};
  double sum = 0, squares = 0;
  std::vector<size_t> drawn(unpruned.size());
  for (int64_t sample = 0; sample < bootstrap_samples; ++sample) {
    for (size_t i = 0; i < drawn.size(); ++i)
      drawn[i] = static_cast<size_t>(
          counter_below(1, static_cast<uint64_t>(sample), i, static_cast<int64_t>(unpruned.size())));
    const double change = change_over(drawn);
    sum += change;
    squares += change * change;
  }
  const auto n = static_cast<double>(bootstrap_samples);
  out.error = std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
  return out;
}

AblationEffect effect_of(const std::string& name, const Outcome& unpruned, const Outcome& pruned) {
  std::vector<double> loss_changes, right_changes;
  for (size_t i = 0; i < unpruned.scores.size(); ++i) {
    loss_changes.push_back(pruned.scores[i].loss - unpruned.scores[i].loss);
    right_changes.push_back(pruned.scores[i].right - unpruned.scores[i].right);
  }
  return {.name = name,
          .loss = change_per_target(loss_changes, unpruned.scores),
          .accuracy = change_per_target(right_changes, unpruned.scores),
          .bleu = bleu_change(unpruned.bleu, pruned.bleu)};
}

/// The scores over all examples.
AblationScores total_scores(const Outcome& outcome) {
  double loss = 0, right = 0, targets = 0;
  for (const ExampleScore& example : outcome.scores) {
    loss += example.loss;
    right += example.right;
    targets += example.targets;
  }
  AblationScores out{.loss = loss / std::max(targets, 1.0), .accuracy = right / std::max(targets, 1.0)};
  if (!outcome.bleu.empty()) out.bleu = bleu_of_examples(outcome.bleu, indices_up_to(outcome.bleu.size()));
  return out;
}

/// Removes one head after the other: each time the one of `tried` candidates whose removal costs least.
class GreedyPruning {
 public:
  GreedyPruning(AblationBench& bench, HeadAblation& ablation, const AblationOptions& options)
      : bench_(bench), ablation_(ablation), options_(options) {}

  /// Removes all heads. `costs`: the change of the loss when each head alone is removed.
  std::vector<PruningStep> run(std::vector<ModelHead> heads_left, std::vector<double> costs,
                               const Outcome& unpruned) {
    std::vector<PruningStep> out{{.removed = "", .left = static_cast<int64_t>(heads_left.size())}};
    std::vector<ModelHead> removed;
    while (!heads_left.empty()) {
      const size_t next = cheapest(heads_left, costs, removed);
      removed.push_back(heads_left[next]);
      ablation_.replace(removed);
      heads_left.erase(heads_left.begin() + static_cast<int64_t>(next));
      costs.erase(costs.begin() + static_cast<int64_t>(next));
      const std::string& name = removed.back().name;
      out.push_back({.removed = name,
                     .left = static_cast<int64_t>(heads_left.size()),
                     .effect = effect_of(name, unpruned, bench_.run(&ablation_))});
    }
    return out;
  }

 private:
  /// The index of the head whose removal, after those of `removed`, gives the lowest loss of the sample. Only
  /// the heads that cost least so far are tried; their costs become these losses.
  size_t cheapest(const std::vector<ModelHead>& heads_left, std::vector<double>& costs,
                  const std::vector<ModelHead>& removed) {
    std::vector<size_t> candidates = indices_up_to(heads_left.size());
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](size_t a, size_t b) { return costs[a] < costs[b]; });
    candidates.resize(std::min(candidates.size(), static_cast<size_t>(options_.tried)));
    if (candidates.size() == 1) return candidates[0];
    size_t best = candidates[0];
    for (const size_t candidate : candidates) {
      std::vector<ModelHead> tried = removed;
      tried.push_back(heads_left[candidate]);
      ablation_.replace(tried);
      costs[candidate] = bench_.loss_of_sample(&ablation_);
      if (costs[candidate] < costs[best]) best = candidate;
    }
    return best;
  }

  AblationBench& bench_;
  HeadAblation& ablation_;
  const AblationOptions& options_;
};

/// The maximum numbers of passes of a measurement.
PassCounts max_passes(int64_t num_heads, int64_t num_groups, const AblationOptions& options) {
  PassCounts out{.full = 1 + num_heads + num_groups};
  if (!options.curve || !options.heads.empty()) return out;
  out.full += num_heads;
  for (int64_t left = num_heads; left > 1; --left) {
    const int64_t tried = std::min(left, options.tried);
    out.sample += tried > 1 ? tried : 0;
  }
  return out;
}

}  // namespace

bool writes_outputs(const Task& task, Module& model, const DecodeOptions& decode) {
  const std::vector<int64_t> first{0};
  const WorkScope no_progress([](const WorkDone&) {});
  return !example_provider(task).test_outputs(model, first, decode, nullptr).empty();
}

void check_outputs(const Task& task, Module& model, const AblationOptions& options,
                   const DecodeOptions& decode) {
  if (options.outputs == 0 || num_test_examples(task) == 0 || writes_outputs(task, model, decode)) return;
  fail(advice("--", "AblationOptions::"), "outputs = ", options.outputs,
       " is of translators: this task writes no texts. Leave it out.");
}

AblationReport ablate_heads(const Task& task, Module& model, const AblationOptions& options,
                            const DecodeOptions& decode) {
  check_outputs(task, model, options, decode);
  const double began = seconds_now();
  const std::vector<ModelHead> all = heads_of_model(task, model);
  const bool has_list = !options.heads.empty();
  const std::vector<ModelHead> heads = has_list ? named_heads(all, options.heads) : all;
  std::vector<std::vector<ModelHead>> groups;  // heads replaced together: a layer's, or all of the list
  for (const ModelHead& head : heads) {
    if (groups.empty() || (!has_list && groups.back().back().module != head.module)) groups.emplace_back();
    groups.back().push_back(head);
  }
  MeanOutputs means;
  if (options.by.kind == HeadReplacement::Kind::mean)
    means = mean_outputs(task, model, options.examples, options.max_tokens);
  HeadAblation ablation(options.by, &means);
  AblationBench bench(task, model, options, decode);
  bench.begin_progress(
      max_passes(static_cast<int64_t>(heads.size()), static_cast<int64_t>(groups.size()), options));
  const Outcome unpruned = bench.run(nullptr);
  AblationReport out{.by = options.by,
                     .examples = bench.num_examples(),
                     .outputs = static_cast<int64_t>(unpruned.bleu.size()),
                     .unpruned = total_scores(unpruned)};
  std::vector<double> costs;
  for (const ModelHead& head : heads) {
    ablation.replace({head});
    out.heads.push_back(effect_of(head.name, unpruned, bench.run(&ablation)));
    costs.push_back(out.heads.back().loss.value);
  }
  for (const std::vector<ModelHead>& group : groups) {
    if (has_list && group.size() == 1) continue;  // measured above
    ablation.replace(group);
    const std::string name = has_list ? "all of these" : group[0].layer;
    out.layers.push_back(effect_of(name, unpruned, bench.run(&ablation)));
  }
  if (options.curve && !has_list)
    out.curve = GreedyPruning(bench, ablation, options).run(heads, costs, unpruned);
  out.seconds = seconds_now() - began;
  return out;
}

}  // namespace heed
