// Beam search of all sentences of a batch at once.
#include "heed/train/decode/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/parallel/thread_pool.h"

namespace heed {
namespace {

/// An unfinished hypothesis.
struct Live {
  std::vector<int32_t> ids;
  double score = 0;
};

/// Beam search of one sentence.
struct Search {
  size_t row = 0;  // in the input batch
  std::vector<Live> live;
  Hypothesis best;
  double best_score = -std::numeric_limits<double>::infinity();
  bool done = false;
};

struct Candidate {
  float score;
  int32_t beam, id;
  bool operator<(const Candidate& other) const {
    // Ties go to the earlier beam, then the smaller id, so that the result is deterministic.
    if (score != other.score) return score > other.score;
    return beam != other.beam ? beam < other.beam : id < other.id;
  }
};

double penalty(int64_t length, double alpha) {
  return std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
}

/// The `count` best continuations of a sentence's hypotheses; their scores begin in row `first`.
std::vector<Candidate> best_of(const Search& search, const NextTokenScores& next, int64_t first,
                               int64_t count) {
  constexpr int64_t block = 64;
  std::vector<Candidate> heap;
  heap.reserve(static_cast<size_t>(count) + 1);
  for (size_t b = 0; b < search.live.size(); ++b) {
    const float* row = next.log(first + static_cast<int64_t>(b));
    const auto base = static_cast<float>(search.live[b].score);
    for (int64_t id = 0; id < next.vocabulary; ++id) {
      // Skips blocks without a better candidate: most of them.
      while (static_cast<int64_t>(heap.size()) == count && id % block == 0 && id + block <= next.vocabulary &&
             base + largest(row + id, block) <= heap.front().score)
        id += block;
      if (id == next.vocabulary) break;
      const Candidate candidate{base + row[id], static_cast<int32_t>(b), static_cast<int32_t>(id)};
      if (static_cast<int64_t>(heap.size()) == count && !(candidate < heap.front())) continue;
      heap.push_back(candidate);
      std::push_heap(heap.begin(), heap.end());
      if (static_cast<int64_t>(heap.size()) > count) {
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
      }
    }
  }
  std::sort_heap(heap.begin(), heap.end());
  return heap;
}

/// Extends the hypotheses of a search by candidates, best first; returns the old beam of each new hypothesis.
std::vector<int32_t> extend(Search& search, const std::vector<Candidate>& candidates, const DecodeIds& ids,
                            const DecodeOptions& options, int64_t max_length) {
  std::vector<Live> next;
  std::vector<int32_t> from;
  const auto finish = [&](const std::vector<int32_t>& tokens, double score, int64_t length) {
    const double value = score / penalty(length, options.length_penalty);
    if (value <= search.best_score) return;
    search.best_score = value;
    search.best = {tokens, value};
  };
  for (const Candidate& candidate : candidates) {
    if (candidate.score == impossible || static_cast<int64_t>(next.size()) == options.beam_size) break;
    const Live& parent = search.live[static_cast<size_t>(candidate.beam)];
    const auto length = static_cast<int64_t>(parent.ids.size()) + 1;
    if (candidate.id == ids.end) {
      finish(parent.ids, candidate.score, length);
      continue;
    }
    Live child = parent;
    child.ids.push_back(candidate.id);
    child.score = candidate.score;
    next.push_back(std::move(child));
    from.push_back(candidate.beam);
  }
  search.live = std::move(next);
  const int64_t length = search.live.empty() ? max_length : static_cast<int64_t>(search.live[0].ids.size());
  if (length >= max_length) {
    for (const Live& live : search.live) finish(live.ids, live.score, length);
    search.live.clear();
  }
  // Log probabilities only fall: at best, a live hypothesis keeps its sum up to the maximum length.
  const double best_possible =
      search.live.empty() ? -std::numeric_limits<double>::infinity()
                          : search.live[0].score / penalty(max_length, std::max(0.0, options.length_penalty));
  search.done = search.live.empty() || best_possible <= search.best_score;
  return from;
}

}  // namespace

std::vector<Hypothesis> beam_search(const AutoregressiveModel& model, Decoding state,
                                    const std::vector<int64_t>& max_lengths, const DecodeIds& ids,
                                    const DecodeOptions& options) {
  if (options.beam_size < 1 || options.beam_size > 1000)
    fail("decode.beam_size = ", options.beam_size, ". It must be 1 to 1000.");
  const NoGrad no_grad;
  std::vector<Hypothesis> out(max_lengths.size());
  std::vector<Search> searches(max_lengths.size());
  for (size_t i = 0; i < searches.size(); ++i) {
    searches[i].row = i;
    searches[i].live = {Live{}};
  }
  while (!searches.empty()) {
    std::vector<int32_t> last;
    for (const Search& search : searches) {
      for (const Live& live : search.live) last.push_back(live.ids.empty() ? ids.start : live.ids.back());
    }
    const NextTokenScores next(model, last, state, ids);
    std::vector<int64_t> first;  // row of each search's first beam
    int64_t rows = 0;
    for (const Search& search : searches) {
      first.push_back(rows);
      rows += static_cast<int64_t>(search.live.size());
    }
    std::vector<std::vector<int32_t>> parents(searches.size());
    parallel_for(static_cast<int64_t>(searches.size()), [&](int64_t s) {
      Search& search = searches[static_cast<size_t>(s)];
      const auto candidates = best_of(search, next, first[static_cast<size_t>(s)], 2 * options.beam_size);
      parents[static_cast<size_t>(s)] = extend(search, candidates, ids, options, max_lengths[search.row]);
    });
    std::vector<int32_t> order;
    std::vector<Search> unfinished;
    for (size_t s = 0; s < searches.size(); ++s) {
      if (searches[s].done) {
        out[searches[s].row] = searches[s].best;
        continue;
      }
      for (int32_t beam : parents[s]) order.push_back(static_cast<int32_t>(first[s]) + beam);
      unfinished.push_back(std::move(searches[s]));
    }
    searches = std::move(unfinished);
    if (!searches.empty()) state.reorder(order);
  }
  return out;
}

}  // namespace heed
