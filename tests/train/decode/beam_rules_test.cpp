// tests BeamRules::transformers of train/decode/beam_search.h against a plain search by the same rules.
#include <algorithm>
#include <cmath>

#include "heed/tests/catch.h"
#include "heed/train/decode/beam_search.h"

namespace heed {
namespace {

constexpr int64_t markov_words = 7, markov_steps = 9;
constexpr int32_t markov_end = 0, markov_pad = 6;

/// A model whose next token depends on the last one and its place, so that no two outputs are as probable.
class MarkovModel final : public AutoregressiveModel {
 public:
  /// `table`: logits [place * markov_words + last token, next token].
  explicit MarkovModel(const Tensor& table) : table_(table) {
    const std::vector<float> all = table_.to_host();
    for (int64_t row = 0; row < markov_steps * markov_words; ++row) {
      const float* x = all.data() + row * markov_words;
      double total = 0;
      for (int64_t i = 0; i < markov_words; ++i) total += std::exp(static_cast<double>(x[i]));
      for (int64_t i = 0; i < markov_words; ++i) log_p.push_back(x[i] - std::log(total));
    }
  }
  Tensor next(const Tensor& ids, Decoding& state) const override {
    const int64_t count = ids.extent(1);
    state.length += count;
    std::vector<int32_t> rows;
    for (const double last : slice(ids, 1, count - 1, count).to_doubles())
      rows.push_back(static_cast<int32_t>((state.length - 1) * markov_words) + static_cast<int32_t>(last));
    return embedding(table_, Tensor::of<int32_t>(rows, Shape{ids.extent(0)}));
  }
  Decoding start() const override { return {}; }
  void fields(Fields& f) override { f("table", table_); }

  std::vector<double> log_p;  // [place, last token, next token]

 private:
  Tensor table_;
};

const Shape markov_shape{markov_steps * markov_words, markov_words};

MarkovModel random_model(uint64_t seed) {
  Rng rng(seed);
  const Tensor table = Tensor::zeros(markov_shape);
  fill_normal(table, 0, 1.5, rng);
  // Several hypotheses often end at once.
  return MarkovModel(table + Tensor::from({1.5F, 0, 0, 0, 0, 0, 0}));
}

/// The best output by the rules of Transformers: all candidates are sorted at each step. `is_renormalized`:
/// the probabilities of all tokens but the padding are divided by their sum.
Hypothesis searched_plainly(const MarkovModel& model, int64_t beams, double alpha, int64_t longest,
                            bool is_renormalized = false) {
  const auto better = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
  const auto divided = [&](double score, size_t length) {
    return score / std::pow(static_cast<double>(length), alpha);
  };
  std::vector<Hypothesis> running{Hypothesis{.ids = {markov_pad}, .score = 0}}, finished;
  for (int64_t step = 1;; ++step) {
    std::vector<Hypothesis> candidates;
    for (const Hypothesis& one : running) {
      const double* log_p = model.log_p.data() + ((step - 1) * markov_words + one.ids.back()) * markov_words;
      const double others = is_renormalized ? std::log1p(-std::exp(log_p[markov_pad])) : 0;
      for (int32_t id = 0; id < markov_words; ++id) {
        if (id == markov_pad) continue;
        Hypothesis child = one;
        child.score += log_p[id] - others;
        child.ids.push_back(id);
        candidates.push_back(child);
      }
    }
    std::ranges::sort(candidates, better);
    running.clear();
    for (size_t rank = 0; rank < std::min(candidates.size(), static_cast<size_t>(2 * beams)); ++rank) {
      const Hypothesis& one = candidates[rank];
      const bool ends = one.ids.back() == markov_end || step == longest;
      if (ends && static_cast<int64_t>(rank) < beams)
        finished.push_back({.ids = one.ids, .score = divided(one.score, one.ids.size() - 1)});
      if (!ends && static_cast<int64_t>(running.size()) < beams) running.push_back(one);
    }
    std::ranges::sort(finished, better);
    finished.resize(std::min(finished.size(), static_cast<size_t>(beams)));
    if (step == longest) break;
    const bool is_full = static_cast<int64_t>(finished.size()) == beams;
    if (is_full && divided(running.at(0).score, running.at(0).ids.size() - 1) <= finished.back().score) break;
  }
  Hypothesis best = finished.at(0);
  best.ids.erase(best.ids.begin());
  if (best.ids.back() == markov_end) best.ids.pop_back();
  return best;
}

}  // namespace

TEST_CASE("beam search: by the rules of Transformers it finds what a plain search by them finds") {
  int64_t num_other_by_wu = 0, num_other_renormalized = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const MarkovModel model = random_model(seed);
    for (const double alpha : {-0.5, 0.0, 1.0, 2.0, 4.0}) {
      for (const int64_t beams : {1, 2, 3, 5}) {
        BeamOptions options{.beam_size = beams,
                            .length_penalty = alpha,
                            .rules = BeamRules::transformers,
                            .max_new_tokens = markov_steps,
                            .stop_tokens = {markov_end},
                            .forbidden_tokens = {markov_pad}};
        const Hypothesis found = beam_search_batch(model, {{markov_pad}}, options)[0];
        const Hypothesis plain = searched_plainly(model, beams, alpha, markov_steps);
        CAPTURE(seed, alpha, beams);
        CHECK(found.ids == plain.ids);
        CHECK(found.score == Approx(plain.score).epsilon(1e-4).margin(1e-6));
        options.rules = BeamRules::transformers_renormalized;
        const Hypothesis renormalized = beam_search_batch(model, {{markov_pad}}, options)[0],
                         plain_too = searched_plainly(model, beams, alpha, markov_steps, true);
        CHECK(renormalized.ids == plain_too.ids);
        CHECK(renormalized.score == Approx(plain_too.score).epsilon(1e-4).margin(1e-6));
        num_other_renormalized += renormalized.ids == plain.ids ? 0 : 1;
        options.rules = BeamRules::wu;
        num_other_by_wu += beam_search_batch(model, {{markov_pad}}, options)[0].ids == plain.ids ? 0 : 1;
      }
    }
  }
  CHECK(num_other_by_wu > 20);
  CHECK(num_other_renormalized > 20);
}

TEST_CASE("beam search: by the rules of Transformers an end counts only among the best of the beam") {
  std::vector<float> logits(static_cast<size_t>(markov_shape.size()), -9);
  const auto set = [&](int64_t place, int64_t last, int64_t next, float logit) {
    logits[static_cast<size_t>((place * markov_words + last) * markov_words + next)] = logit;
  };
  set(0, markov_pad, 1, 2);
  set(0, markov_pad, 2, 1.9F);
  // The candidates of step 2 are "1 end", "1 3", "2 end" and "2 1", from the best on: the third is behind the
  // beam of 2.
  set(1, 1, markov_end, 2);
  set(1, 1, 3, 1.9F);
  set(1, 2, markov_end, 0.5F);
  for (const int64_t word : {1, 2}) set(1, 2, word, 0);
  for (int64_t last = 0; last < markov_words; ++last) {
    set(2, last, markov_pad, 9);  // so that step 3 costs much
    set(2, last, 4, 2);
    set(3, last, markov_end, 9);
  }
  const MarkovModel model(Tensor::from(logits, markov_shape));
  const BeamOptions options{.beam_size = 2,
                            .length_penalty = 4,
                            .rules = BeamRules::transformers,
                            .max_new_tokens = markov_steps,
                            .stop_tokens = {markov_end},
                            .forbidden_tokens = {markov_pad}};
  CHECK(searched_plainly(model, 2, 4, markov_steps).ids == std::vector<int32_t>{1, 3, 4});
  CHECK(beam_search(model, {markov_pad}, options) == std::vector<int32_t>{1, 3, 4});
}

}  // namespace heed
