// Greedy decoding, beam search and sampling.
#include "heed/train/decode/decode.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed {
namespace {

constexpr float impossible = -std::numeric_limits<float>::infinity();

Tensor column(const std::vector<int32_t>& ids) {
  return Tensor::of<int32_t>(ids, Shape{static_cast<int64_t>(ids.size()), 1});
}

/// Logits and log probabilities [rows, V] of the next token, on the host; forbidden tokens have -inf.
class NextScores {
 public:
  NextScores(const AutoregressiveModel& model, const std::vector<int32_t>& last, Decoding& state,
             const DecodeIds& ids) {
    const Tensor logits = contiguous(model.next(column(last), state));
    vocabulary = logits.extent(1);
    for (const int32_t id : ids.forbidden) {
      if (id < 0 || id >= vocabulary) continue;  // -1: the tokenizer has no such token
      launch<kernel::Fill>(logits.device(), view::slice(logits, 1, id, id + 1), impossible);
    }
    logits_ = on_host(logits);
    log_ = on_host(log_softmax(logits));
  }
  const float* logits(int64_t row) const { return logits_.data<float>() + row * vocabulary; }
  const float* log(int64_t row) const { return log_.data<float>() + row * vocabulary; }

  int64_t vocabulary = 0;

 private:
  /// Copies only a tensor on a device or of another type.
  static Tensor on_host(const Tensor& x) {
    if (x.device() == Device::cpu && x.dtype() == DType::f32) return x;
    return Tensor::from(x.to_host(), x.shape());
  }

  Tensor logits_, log_;
};

/// The maximum of x[0, count). Independent lanes hide the latency of comparisons.
float largest(const float* x, int64_t count) {
  constexpr int64_t lanes = 16;
  float maxima[lanes];
  std::fill_n(maxima, lanes, impossible);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane)
      maxima[lane] = x[i + lane] > maxima[lane] ? x[i + lane] : maxima[lane];
  }
  for (; i < count; ++i) maxima[0] = std::max(maxima[0], x[i]);
  return *std::max_element(maxima, maxima + lanes);
}

/// Index of the first maximum; 0 when all are NaN.
int32_t first_largest(const float* x, int64_t count) {
  const float* found = std::find(x, x + count, largest(x, count));
  return found == x + count ? 0 : static_cast<int32_t>(found - x);
}

}  // namespace

std::vector<Hypothesis> greedy(const AutoregressiveModel& model, Decoding state,
                               const std::vector<int64_t>& longest, const DecodeIds& ids) {
  const NoGrad no_tape;
  std::vector<Hypothesis> out(longest.size());
  std::vector<size_t> active(longest.size());
  std::iota(active.begin(), active.end(), size_t{0});
  std::vector<int32_t> last(longest.size(), ids.start);
  while (!active.empty()) {
    const NextScores next(model, last, state, ids);
    std::vector<size_t> still;
    std::vector<int32_t> kept;
    last.clear();
    for (size_t row = 0; row < active.size(); ++row) {
      const auto index = static_cast<int64_t>(row);
      const int32_t best = first_largest(next.logits(index), next.vocabulary);
      Hypothesis& hypothesis = out[active[row]];
      hypothesis.score += next.log(index)[best];
      if (best == ids.end) continue;
      hypothesis.ids.push_back(best);
      if (static_cast<int64_t>(hypothesis.ids.size()) >= longest[active[row]]) continue;
      still.push_back(active[row]);
      kept.push_back(static_cast<int32_t>(row));
      last.push_back(best);
    }
    if (kept.size() < active.size() && !kept.empty()) state.reorder(kept);
    active = std::move(still);
  }
  return out;
}

namespace {

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
std::vector<Candidate> best_of(const Search& search, const NextScores& next, int64_t first, int64_t count) {
  constexpr int64_t stretch = 64;
  std::vector<Candidate> heap;
  heap.reserve(static_cast<size_t>(count) + 1);
  for (size_t b = 0; b < search.live.size(); ++b) {
    const float* row = next.log(first + static_cast<int64_t>(b));
    const auto base = static_cast<float>(search.live[b].score);
    for (int64_t id = 0; id < next.vocabulary; ++id) {
      // Skips blocks without a better candidate: most of them.
      while (static_cast<int64_t>(heap.size()) == count && id % stretch == 0 &&
             id + stretch <= next.vocabulary && base + largest(row + id, stretch) <= heap.front().score)
        id += stretch;
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

/// Adds candidates to the search; returns the beams that continue.
std::vector<int32_t> extend(Search& search, const std::vector<Candidate>& candidates, const DecodeIds& ids,
                            const DecodeOptions& options, int64_t longest) {
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
  const int64_t length = search.live.empty() ? longest : static_cast<int64_t>(search.live[0].ids.size());
  if (length >= longest) {
    for (const Live& live : search.live) finish(live.ids, live.score, length);
    search.live.clear();
  }
  // Log probabilities only fall: at best, a live hypothesis keeps its sum up to the maximum length.
  const double hope = search.live.empty()
                          ? -std::numeric_limits<double>::infinity()
                          : search.live[0].score / penalty(longest, std::max(0.0, options.length_penalty));
  search.done = search.live.empty() || hope <= search.best_score;
  return from;
}

}  // namespace

std::vector<Hypothesis> beam_search(const AutoregressiveModel& model, Decoding state,
                                    const std::vector<int64_t>& longest, const DecodeIds& ids,
                                    const DecodeOptions& options) {
  if (options.beam_size < 1 || options.beam_size > 1000)
    fail("decode.beam_size = ", options.beam_size, ". It must be 1 to 1000.");
  const NoGrad no_tape;
  std::vector<Hypothesis> out(longest.size());
  std::vector<Search> searches(longest.size());
  for (size_t i = 0; i < searches.size(); ++i) {
    searches[i].row = i;
    searches[i].live = {Live{}};
  }
  while (!searches.empty()) {
    std::vector<int32_t> last;
    for (const Search& search : searches) {
      for (const Live& live : search.live) last.push_back(live.ids.empty() ? ids.start : live.ids.back());
    }
    const NextScores next(model, last, state, ids);
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
      parents[static_cast<size_t>(s)] = extend(search, candidates, ids, options, longest[search.row]);
    });
    std::vector<int32_t> order;
    std::vector<Search> still;
    for (size_t s = 0; s < searches.size(); ++s) {
      if (searches[s].done) {
        out[searches[s].row] = searches[s].best;
        continue;
      }
      for (int32_t beam : parents[s]) order.push_back(static_cast<int32_t>(first[s]) + beam);
      still.push_back(std::move(searches[s]));
    }
    searches = std::move(still);
    if (!searches.empty()) state.reorder(order);
  }
  return out;
}

void SampleOptions::check() const {
  const auto refuse = [](const char* name, double value, const char* legal) {
    fail("generate: --", name, " = ", value, ". It must be ", legal, ".");
  };
  if (!(temperature >= 0) || std::isinf(temperature)) refuse("temperature", temperature, "at least 0");
  if (top_k < 0) refuse("top-k", static_cast<double>(top_k), "at least 0");
  if (!(top_p > 0 && top_p <= 1)) refuse("top-p", top_p, "above 0 and at most 1");
  if (!(repetition_penalty > 0) || std::isinf(repetition_penalty))
    refuse("repetition-penalty", repetition_penalty, "above 0; 1 is none");
  if (max_new_tokens < 0) refuse("max-new-tokens", static_cast<double>(max_new_tokens), "at least 0");
}

int32_t draw_token(std::span<float> logits, const SampleOptions& options, std::span<const int32_t> context,
                   Rng& rng) {
  for (const float logit : logits) {
    if (std::isnan(logit))
      fail(Fault::numeric,
           "generate: the model's scores are not numbers. Take an earlier checkpoint: --checkpoint.");
  }
  if (options.repetition_penalty != 1) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    std::vector<bool> seen(logits.size());
    for (const int32_t id : context) {
      if (seen[static_cast<size_t>(id)]) continue;
      seen[static_cast<size_t>(id)] = true;
      float& logit = logits[static_cast<size_t>(id)];
      logit = logit > 0 ? logit / penalty : logit * penalty;
    }
  }
  const auto count = static_cast<int64_t>(logits.size());
  const bool greedily = options.temperature == 0;
  const int64_t kept = greedily ? 1 : (options.top_k > 0 ? std::min(options.top_k, count) : count);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  if (kept == 1) return order[0];
  const double max_logit = logits[static_cast<size_t>(order[0])];
  std::vector<double> mass;  // cumulative, by falling probability
  double total = 0;
  for (int64_t i = 0; i < kept; ++i) {
    const double gap = logits[static_cast<size_t>(order[static_cast<size_t>(i)])] - max_logit;
    total += std::exp(gap / options.temperature);
    mass.push_back(total);
  }
  if (options.top_p < 1) {
    const auto enough = std::lower_bound(mass.begin(), mass.end(), options.top_p * total);
    mass.resize(static_cast<size_t>(enough - mass.begin()) + 1);
  }
  if (mass.size() == 1) return order[0];
  const auto at = std::upper_bound(mass.begin(), mass.end(), rng.uniform() * mass.back()) - mass.begin();
  return order[std::min(static_cast<size_t>(at), mass.size() - 1)];
}

void sample(const DecoderOnly& model, std::vector<int32_t> prompt, int64_t max_length,
            const SampleOptions& options, Rng& rng, const std::function<bool(int32_t)>& out) {
  if (prompt.empty()) fail("generate: the prompt is empty. Give at least one token.");
  options.check();
  const NoGrad no_tape;
  std::vector<int32_t> context = std::move(prompt);
  Decoding state;
  std::vector<int32_t> fresh;
  for (int64_t made = 0; made < options.max_new_tokens; ++made) {
    if (made == 0 || static_cast<int64_t>(context.size()) > max_length) {
      const auto room = static_cast<size_t>(made == 0 ? max_length : std::max<int64_t>(max_length / 2, 1));
      if (context.size() > room) context.erase(context.begin(), context.end() - static_cast<int64_t>(room));
      state = model.start();
      fresh = context;
    }
    std::vector<float> logits =
        model.next(Tensor::of<int32_t>(fresh, Shape{1, static_cast<int64_t>(fresh.size())}), state).to_host();
    const int32_t chosen = draw_token(logits, options, context, rng);
    context.push_back(chosen);
    fresh = {chosen};
    if (!out(chosen)) return;
  }
}

}  // namespace heed
