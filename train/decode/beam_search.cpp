// Beam search over a whole batch: each step runs the model on the live hypotheses of all sentences.
#include "heed/train/decode/beam_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "heed/core/parallel/thread_pool.h"
#include "heed/train/decode/decoding_batch.h"

namespace heed {
namespace {

constexpr double none_finished = -std::numeric_limits<double>::infinity();  // score of Search::best

/// Beam search of one sentence.
struct Search {
  size_t row = 0;                // index of the sentence in the input batch
  std::vector<Hypothesis> live;  // unfinished hypotheses, best first; their scores are log probabilities
  /// The best finished hypothesis; its score is divided by the length penalty.
  Hypothesis best{.ids = {}, .score = none_finished};
  std::vector<double> finished;  // scores of the best finished hypotheses, at most beam_size, best first
  bool is_done = false;
};

/// A continuation of a live hypothesis by one token.
struct Candidate {
  float score;   // log probability of the continued hypothesis
  int32_t beam;  // index of the hypothesis in Search::live
  int32_t id;    // the token
  /// True for the better candidate.
  bool operator<(const Candidate& other) const {
    // Ties go to the earlier beam, then the smaller id, so that the result is deterministic.
    if (score != other.score) return score > other.score;
    return beam != other.beam ? beam < other.beam : id < other.id;
  }
};

/// ((5 + length) / 6)^alpha, or length^alpha by the rules of Transformers.
double length_penalty(int64_t length, double alpha, BeamRules rules) {
  const auto tokens = static_cast<double>(length);
  return std::pow(rules == BeamRules::wu ? (5.0 + tokens) / 6.0 : tokens, alpha);
}

/// The `count` best continuations of a sentence's live hypotheses, best first. Row `first_row` of `next` has
/// the scores of the first hypothesis.
std::vector<Candidate> best_candidates(const Search& search, const NextTokenScores& next, int64_t first_row,
                                       int64_t count) {
  constexpr int64_t block = 64;  // number of ids that are skipped together
  std::vector<Candidate> heap;   // the worst candidate is at the front
  heap.reserve(static_cast<size_t>(count) + 1);
  const auto is_full = [&] { return static_cast<int64_t>(heap.size()) >= count; };
  for (size_t beam = 0; beam < search.live.size(); ++beam) {
    const float* log_p = next.log(first_row + static_cast<int64_t>(beam));
    const auto beam_score = static_cast<float>(search.live[beam].score);
    for (int64_t id = 0; id < next.vocabulary; ++id) {
      // Skips blocks without a better candidate: most blocks have none.
      while (is_full() && id % block == 0 && id + block <= next.vocabulary &&
             beam_score + largest(log_p + id, block) <= heap.front().score)
        id += block;
      if (id == next.vocabulary) break;
      const Candidate candidate{.score = beam_score + log_p[id],
                                .beam = static_cast<int32_t>(beam),
                                .id = static_cast<int32_t>(id)};
      if (is_full() && !(candidate < heap.front())) continue;
      if (is_full()) {
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
      }
      heap.push_back(candidate);
      std::push_heap(heap.begin(), heap.end());
    }
  }
  std::sort_heap(heap.begin(), heap.end());
  return heap;
}

/// Continues the hypotheses of a search by candidates, best first. Returns, for each new live hypothesis, the
/// index of the one it continues.
std::vector<int32_t> extend(Search& search, const std::vector<Candidate>& candidates,
                            const DecodingBatch& batch, const BeamOptions& options, int64_t max_length) {
  std::vector<Hypothesis> next;
  std::vector<int32_t> parents;
  const bool is_wu = options.rules == BeamRules::wu;
  const double alpha = options.length_penalty;
  const auto finish = [&](const std::vector<int32_t>& tokens, double log_p, int64_t length) {
    const double score = log_p / length_penalty(length, alpha, options.rules);
    std::vector<double>& scores = search.finished;
    scores.insert(std::ranges::upper_bound(scores, score, std::greater<>()), score);
    scores.resize(std::min(scores.size(), static_cast<size_t>(options.beam_size)));
    if (score <= search.best.score) return;
    search.best = {.ids = tokens, .score = score};
  };
  size_t num_endable = 0;  // the first of `next`, which may end here
  int64_t rank = -1;
  for (const Candidate& candidate : candidates) {
    if (candidate.score == impossible || static_cast<int64_t>(next.size()) == options.beam_size) break;
    const bool is_endable = ++rank < options.beam_size || is_wu;
    const Hypothesis& parent = search.live[static_cast<size_t>(candidate.beam)];
    const auto length = static_cast<int64_t>(parent.ids.size()) + 1;
    if (batch.is_stop(candidate.id)) {
      if (is_endable) finish(parent.ids, candidate.score, length);
      continue;
    }
    num_endable += is_endable ? 1 : 0;
    Hypothesis child = parent;
    child.ids.push_back(candidate.id);
    child.score = candidate.score;
    next.push_back(std::move(child));
    parents.push_back(candidate.beam);
  }
  search.live = std::move(next);
  const int64_t length = search.live.empty() ? max_length : static_cast<int64_t>(search.live[0].ids.size());
  if (length >= max_length) {
    for (size_t i = 0; i < num_endable; ++i) finish(search.live[i].ids, search.live[i].score, length);
    search.live.clear();
  }
  if (search.live.empty()) {
    search.is_done = true;
  } else if (is_wu) {
    // Log probabilities only fall: at best, the first hypothesis keeps its own up to the maximum length.
    search.is_done = search.live[0].score / length_penalty(max_length, std::max(0.0, alpha), options.rules) <=
                     search.best.score;
  } else {
    search.is_done =
        static_cast<int64_t>(search.finished.size()) == options.beam_size &&
        search.live[0].score / length_penalty(length, alpha, options.rules) <= search.finished.back();
  }
  return parents;
}

}  // namespace

std::vector<Hypothesis> beam_search_batch(const AutoregressiveModel& model,
                                          const std::vector<std::vector<int32_t>>& prompts,
                                          const BeamOptions& options, std::optional<Decoding> state) {
  if (options.beam_size < 1 || options.beam_size > 1000)
    fail("beam_search: beam_size = ", options.beam_size, ". It must be 1 to 1000.");
  if (!std::isfinite(options.length_penalty))
    fail("beam_search: length_penalty = ", options.length_penalty, ". It must be finite.");
  const NoGrad no_grad;
  DecodingBatch batch("beam_search", model, prompts, options.stop_tokens, std::move(state),
                      DecodingBatch::WhenFull::stop);
  const std::vector<int64_t> limits = batch.limits(options.max_new_tokens, options.max_new_tokens_of_each);
  std::vector<Hypothesis> out(prompts.size());
  std::vector<Search> searches(prompts.size());
  for (size_t i = 0; i < searches.size(); ++i) {
    searches[i].row = i;
    searches[i].live = {Hypothesis{}};
  }
  if (std::ranges::count(limits, 0) > 0) return out;  // then all limits are 0
  // One candidate of each beam may end by each stop token; these leave enough that continue.
  const int64_t num_candidates = options.beam_size * (1 + static_cast<int64_t>(options.stop_tokens.size()));
  while (!searches.empty()) {
    const NextTokenScores next(
        "beam_search", batch.read(), options.forbidden_tokens,
        options.rules == BeamRules::transformers ? Forbidden::keep_share : Forbidden::no_share);
    std::vector<size_t> first_rows;  // row of each search's first hypothesis
    size_t num_rows = 0;
    for (const Search& search : searches) {
      first_rows.push_back(num_rows);
      num_rows += search.live.size();
    }
    std::vector<std::vector<int32_t>> parents(searches.size());
    parallel_for(static_cast<int64_t>(searches.size()), [&](int64_t index) {
      const auto s = static_cast<size_t>(index);
      Search& search = searches[s];
      if (batch.is_given(first_rows[s])) {  // its prompt is not read to the end
        parents[s] = {0};
        return;
      }
      const auto candidates =
          best_candidates(search, next, static_cast<int64_t>(first_rows[s]), num_candidates);
      parents[s] = extend(search, candidates, batch, options, limits[search.row]);
    });
    std::vector<int32_t> order;  // row that each row of the next step continues
    std::vector<Search> unfinished;
    for (size_t s = 0; s < searches.size(); ++s) {
      if (searches[s].is_done) {
        if (searches[s].best.score != none_finished) out[searches[s].row] = searches[s].best;
        continue;
      }
      for (int32_t beam : parents[s]) order.push_back(static_cast<int32_t>(first_rows[s]) + beam);
      unfinished.push_back(std::move(searches[s]));
    }
    searches = std::move(unfinished);
    batch.reorder(order);
    size_t row = 0;
    for (const Search& search : searches)
      for (const Hypothesis& live : search.live) {
        if (!live.ids.empty()) batch.append(row, live.ids.back());
        ++row;
      }
  }
  return out;
}

std::vector<int32_t> beam_search(const AutoregressiveModel& model, const std::vector<int32_t>& prompt,
                                 const BeamOptions& options, std::optional<Decoding> state) {
  return beam_search_batch(model, {prompt}, options, std::move(state))[0].ids;
}

}  // namespace heed
