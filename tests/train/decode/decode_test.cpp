// Greedy decoding, beam search and sampling against full recomputation and exhaustive search.
#include "heed/train/decode/beam_search.h"
#include "heed/train/decode/greedy.h"
#include "heed/train/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "heed/attention/variant.h"
#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

constexpr int64_t vocabulary = 6;  // 0 unknown, 1 pad, 2 start, 3 end, 4 and 5 words
constexpr int32_t start_id = 2, end_id = 3;
const std::vector<int32_t> no_words{0, 1, 2};  // forbidden

TransformerConfig tiny() {
  TransformerConfig config;
  config.d_model = 8;
  config.heads = 2;
  config.d_ff = 8;
  config.max_length = 12;
  config.dropout = 0;
  return config;
}

/// A random translator with its sources encoded.
struct Fixture {
  explicit Fixture(uint64_t seed, int64_t words = vocabulary)
      : rng(seed),
        model(tiny(), 9, words,
              {attention_factory("softmax"), attention_factory("softmax"), attention_factory("softmax")},
              rng) {
    // Steeper logits, so that what is likely differs from row to row.
    for (const Named& named : parameters(model)) {
      if (named.name.starts_with("output")) fill_normal(*named.tensor, 0, 1.5, rng);
    }
    const NoGrad no_grad;
    ids = Tensor::of<int32_t>(std::vector<int32_t>{2, 4, 5, 6, 3, 2, 8, 3, 1, 1, 2, 7, 7, 3, 1}, Shape{3, 5});
    lengths = Tensor::of<int32_t>(std::vector<int32_t>{5, 3, 4}, Shape{3});
    encoded = model.encode(ids, lengths, {});
  }
  Decoding start() const { return model.start(encoded, lengths); }
  /// Log probabilities of what follows `prefix` for a row, by one full decode; forbidden ids have none.
  std::vector<double> after(int64_t row, const std::vector<int32_t>& prefix) const {
    const NoGrad no_grad;
    std::vector<int32_t> read{start_id};
    read.insert(read.end(), prefix.begin(), prefix.end());
    const auto count = static_cast<int64_t>(read.size());
    const Tensor hidden =
        model.decode(Tensor::of<int32_t>(read, Shape{1, count}), view::slice(encoded, 0, row, row + 1),
                     view::slice(lengths, 0, row, row + 1), {});
    std::vector<double> logits = model.logits(slice(hidden, 1, count - 1, count)).to_doubles();
    for (const int32_t id : no_words) logits[static_cast<size_t>(id)] = -INFINITY;
    double total = 0;
    for (const double x : logits) total += std::exp(x);
    for (double& x : logits) x -= std::log(total);
    return logits;
  }
  Rng rng;
  EncoderDecoder model;
  Tensor ids, lengths, encoded;
};

/// Greedy decoding of the first rows of a fixture, or from another state.
std::vector<Hypothesis> greedily(const Fixture& f, const std::vector<int64_t>& longest,
                                 std::optional<Decoding> state = {},
                                 const std::vector<int32_t>& forbidden = no_words) {
  return greedy_batch(
      f.model, std::vector<std::vector<int32_t>>(longest.size(), {start_id}),
      {.stop_tokens = {end_id}, .forbidden_tokens = forbidden, .max_new_tokens_of_each = longest},
      state ? std::move(state) : f.start());
}

/// Beam search of the first rows of a fixture, or from another state.
std::vector<Hypothesis> beams_of(const Fixture& f, const std::vector<int64_t>& longest, int64_t beam_size,
                                 double alpha = 1, std::optional<Decoding> state = {},
                                 const std::vector<int32_t>& forbidden = no_words) {
  return beam_search_batch(f.model, std::vector<std::vector<int32_t>>(longest.size(), {start_id}),
                           {.beam_size = beam_size,
                            .length_penalty = alpha,
                            .stop_tokens = {end_id},
                            .forbidden_tokens = forbidden,
                            .max_new_tokens_of_each = longest},
                           state ? std::move(state) : f.start());
}

Hypothesis plain_greedy(const Fixture& f, int64_t row, int64_t longest) {
  Hypothesis out;
  while (static_cast<int64_t>(out.ids.size()) < longest) {
    const std::vector<double> scores = f.after(row, out.ids);
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    out.score += scores[static_cast<size_t>(best)];
    if (best == end_id) break;
    out.ids.push_back(static_cast<int32_t>(best));
  }
  return out;
}

double penalty(size_t length, double alpha) {
  return std::pow((5.0 + static_cast<double>(length)) / 6, alpha);
}

/// The best of all outputs of at most `longest` tokens.
void search_all(const Fixture& f, int64_t row, int64_t longest, double alpha, const Hypothesis& prefix,
                Hypothesis& best) {
  const std::vector<double> scores = f.after(row, prefix.ids);
  const auto offer = [&](const std::vector<int32_t>& ids, double score, size_t length) {
    if (score / penalty(length, alpha) > best.score) best = {ids, score / penalty(length, alpha)};
  };
  offer(prefix.ids, prefix.score + scores[3], prefix.ids.size() + 1);
  for (int32_t id = 4; id < static_cast<int32_t>(scores.size()); ++id) {
    Hypothesis next = prefix;
    next.ids.push_back(id);
    next.score += scores[static_cast<size_t>(id)];
    if (static_cast<int64_t>(next.ids.size()) == longest)
      offer(next.ids, next.score, next.ids.size());
    else
      search_all(f, row, longest, alpha, next, best);
  }
}

}  // namespace

TEST_CASE("decode: greedy takes the most probable token of a full decode at every step") {
  const DefaultDevice here(any_device());
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const Fixture f(seed);
    const std::vector<int64_t> longest{8, 5, 7};
    const std::vector<Hypothesis> found = greedily(f, longest);
    REQUIRE(found.size() == 3);
    for (int64_t row = 0; row < 3; ++row) {
      const auto at = static_cast<size_t>(row);
      CAPTURE(seed, row);
      const Hypothesis plain = plain_greedy(f, row, longest[at]);
      CHECK(found[at].ids == plain.ids);
      CHECK(found[at].score == Approx(plain.score).epsilon(1e-4));
      CHECK(static_cast<int64_t>(found[at].ids.size()) <= longest[at]);
    }
  }
}

TEST_CASE("decode: a beam of one without length penalty is greedy") {
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const Fixture f(seed);
    const auto one = greedily(f, {6, 6, 6});
    const auto other = beams_of(f, {6, 6, 6}, 1, 0);
    for (size_t row = 0; row < 3; ++row) CHECK(one[row].ids == other[row].ids);
  }
}

TEST_CASE("decode: a beam wide enough finds what exhaustive search finds") {
  const DefaultDevice here(any_device());
  for (const uint64_t seed : {1, 2, 3}) {
    for (const double alpha : {0.0, 1.0}) {
      const Fixture f(seed);
      const std::vector<int64_t> longest{4, 3, 4};
      const auto found = beams_of(f, longest, 40, alpha);
      for (int64_t row = 0; row < 3; ++row) {
        const auto at = static_cast<size_t>(row);
        CAPTURE(seed, alpha, row);
        Hypothesis best{{}, -INFINITY};
        search_all(f, row, longest[at], alpha, {}, best);
        CHECK(found[at].ids == best.ids);
        CHECK(found[at].score == Approx(best.score).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("decode: a wider beam is never less probable where only the sum counts, at full width") {
  const Fixture f(7);
  const auto narrow = beams_of(f, {5, 5, 5}, 2, 0);
  const auto wide = beams_of(f, {5, 5, 5}, 64, 0);
  for (size_t row = 0; row < 3; ++row) CHECK(wide[row].score >= narrow[row].score - 1e-5);
}

TEST_CASE("decode: rows that leave the batch do not change the others") {
  const Fixture f(5, 12);
  const auto together = greedily(f, {1, 9, 4});
  const auto beams = beams_of(f, {1, 9, 4}, 3);
  for (const size_t row : {0, 1, 2}) {
    CAPTURE(row);
    const auto at = static_cast<int64_t>(row);
    const int64_t longest = std::vector<int64_t>{1, 9, 4}[row];
    const Tensor states = view::slice(f.encoded, 0, at, at + 1),
                 lengths = view::slice(f.lengths, 0, at, at + 1);
    CHECK(greedily(f, {longest}, f.model.start(states, lengths))[0].ids == together[row].ids);
    CHECK(beams_of(f, {longest}, 3, 1, f.model.start(states, lengths))[0].ids == beams[row].ids);
  }
}

TEST_CASE("decode: forbidden ids are never made, and negative ones forbid nothing") {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const Fixture f(seed, 12);
    const std::vector<int32_t> forbidden{0, 1, 2, 3, 7, 8, -1};
    for (const auto& found :
         {greedily(f, {9, 9, 9}, {}, forbidden), beams_of(f, {9, 9, 9}, 4, 1, {}, forbidden)}) {
      for (const Hypothesis& one : found) {
        CHECK(one.ids.size() == 9);  // the end is forbidden too
        for (const int32_t id : one.ids) CHECK((id >= 4 && id < 12 && id != 7 && id != 8));
      }
    }
  }
}

TEST_CASE("decode: a width that makes no sense is refused") {
  const Fixture f(1);
  for (const int64_t size : {0, 1001})
    CHECK_THROWS_WITH(beams_of(f, {3, 3, 3}, size),
                      containing(text("beam_search: beam_size = ", size, ". It must be 1 to 1000")));
}

namespace {

struct Language {
  Language() : rng(3), model(tiny(), 20, attention_factory("softmax"), rng) {
    for (const Named& named : parameters(model)) {
      if (named.name.starts_with("output")) fill_normal(*named.tensor, 0, 1, rng);
    }
  }
  std::vector<int32_t> drawn(SampleOptions options, uint64_t seed = 1,
                             const std::vector<int32_t>& prompt = {4, 5}) const {
    options.seed = seed;
    return sample(model, prompt, options);
  }
  Rng rng;
  DecoderOnly model;
};

}  // namespace

TEST_CASE("decode: sampling at temperature zero or among one token is greedy") {
  const Language language;
  std::vector<int32_t> context{4, 5};
  const NoGrad no_grad;
  for (int i = 0; i < 8; ++i) {
    const auto count = static_cast<int64_t>(context.size());
    const auto logits =
        slice(language.model(Tensor::of<int32_t>(context, Shape{1, count}), {}), 1, count - 1, count)
            .to_host();
    context.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  const std::vector<int32_t> plain(context.begin() + 2, context.end());
  CHECK(language.drawn({.temperature = 0, .max_new_tokens = 8}) == plain);
  CHECK(language.drawn({.temperature = 1.5, .top_k = 1, .max_new_tokens = 8}) == plain);
}

TEST_CASE("decode: sampling depends on the seed alone, and top-k bounds what is drawn") {
  const Language language;
  const auto one = language.drawn({.temperature = 1, .top_k = 0, .max_new_tokens = 30}, 1);
  CHECK(one == language.drawn({.temperature = 1, .top_k = 0, .max_new_tokens = 30}, 1));
  CHECK(one != language.drawn({.temperature = 1, .top_k = 0, .max_new_tokens = 30}, 2));
  const NoGrad no_grad;
  const auto logits =
      slice(language.model(Tensor::of<int32_t>(std::vector<int32_t>{4, 5}, Shape{1, 2}), {}), 1, 1, 2)
          .to_host();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const int32_t first = language.drawn({.temperature = 3, .top_k = 2, .max_new_tokens = 1}, seed)[0];
    CHECK(std::count_if(logits.begin(), logits.end(),
                        [&](float x) { return x > logits[static_cast<size_t>(first)]; }) < 2);
  }
}

TEST_CASE("decode: sampling frequencies are the softmax at the temperature") {
  const Language language;
  const NoGrad no_grad;
  const auto logits =
      slice(language.model(Tensor::of<int32_t>(std::vector<int32_t>{4, 5}, Shape{1, 2}), {}), 1, 1, 2)
          .to_host();
  const double temperature = 0.7;
  double total = 0;
  for (const float x : logits) total += std::exp(x / temperature);
  std::vector<double> seen(20);
  constexpr int draws = 1500;
  for (uint64_t seed = 1; seed <= draws; ++seed)
    ++seen[static_cast<size_t>(language.drawn({.temperature = temperature, .max_new_tokens = 1}, seed)[0])];
  for (size_t id = 0; id < 20; ++id) {
    const double p = std::exp(logits[id] / temperature) / total;
    CHECK(std::abs(seen[id] / draws - p) < 5 * std::sqrt(p * (1 - p) / draws) + 1e-3);
  }
}

TEST_CASE("decode: a token is drawn among the fewest that have the share top-p") {
  const double shares[] = {0.1, 0.5, 0.15, 0.25};  // by falling share: 1, 3, 2, 0
  const auto drawn = [&](const SampleOptions& options) {
    std::set<int32_t> seen;
    Rng rng(5);
    for (int i = 0; i < 400; ++i) {
      std::vector<float> logits;
      for (const double share : shares) logits.push_back(static_cast<float>(std::log(share)));
      seen.insert(draw_token(logits, options, {}, rng));
    }
    return seen;
  };
  CHECK(drawn({.temperature = 1, .top_k = 0}) == std::set<int32_t>{0, 1, 2, 3});
  CHECK(drawn({.temperature = 1, .top_k = 0, .top_p = 0.95}) == std::set<int32_t>{0, 1, 2, 3});
  CHECK(drawn({.temperature = 1, .top_k = 0, .top_p = 0.8}) == std::set<int32_t>{1, 2, 3});
  CHECK(drawn({.temperature = 1, .top_k = 0, .top_p = 0.6}) == std::set<int32_t>{1, 3});
  CHECK(drawn({.temperature = 1, .top_k = 0, .top_p = 0.4}) == std::set<int32_t>{1});
  // The share is that of the tokens that top-k leaves: 0.5 of 0.75.
  CHECK(drawn({.temperature = 1, .top_k = 2, .top_p = 0.6}) == std::set<int32_t>{1});
  // A high temperature spreads the shares before they are added up.
  CHECK(drawn({.temperature = 100, .top_k = 0, .top_p = 0.6}).size() == 3);
}

TEST_CASE("decode: the repetition penalty divides what is positive and multiplies what is not") {
  Rng rng(1);
  const SampleOptions options{.temperature = 0, .repetition_penalty = 2};
  const auto first = [&](std::vector<float> logits, std::vector<int32_t> context) {
    return draw_token(logits, options, context, rng);
  };
  CHECK(first({3, 2, 1}, {}) == 0);
  CHECK(first({3, 2, 1}, {0, 0, 0}) == 1);  // 1.5 once, however often it was there
  CHECK(first({3, 1, 1}, {0}) == 0);
  CHECK(first({-1, -1.5F, -3}, {0}) == 1);
  CHECK(first({-1, -1.5F, -3}, {0, 1, 2}) == 0);
  CHECK(first({2, 2}, {}) == 0);  // ties go to the smaller id
}

TEST_CASE("decode: ways of drawing that cannot be are refused") {
  const Language language;
  for (const auto& [options, said] : std::vector<std::pair<SampleOptions, const char*>>{
           {{.top_k = -1}, "sample: top_k = -1"},
           {{.top_p = 0}, "sample: top_p = 0"},
           {{.top_p = 1.5}, "sample: top_p = 1.5"},
           {{.top_p = NAN}, "sample: top_p = "},
           {{.repetition_penalty = 0}, "sample: repetition_penalty = 0"},
           {{.temperature = INFINITY}, "sample: temperature = "},
           {{.max_new_tokens = -2}, "sample: max_new_tokens = -2"}}) {
    CHECK_THROWS_WITH(language.drawn(options), containing(said));
  }
  std::vector<float> logits{1, NAN};
  Rng rng(1);
  CHECK(fault_of([&] { draw_token(logits, {}, {}, rng); }) == Fault::numeric);
}

TEST_CASE("decode: sampling goes on past the longest context and starts from prompts longer than it") {
  const Language language;
  CHECK(language.drawn({.temperature = 1, .max_new_tokens = 60}).size() == 60);
  CHECK(language.drawn({.temperature = 1, .max_new_tokens = 30}, 1, std::vector<int32_t>(40, 6)).size() ==
        30);
  CHECK(language.drawn({.temperature = 1, .max_new_tokens = 0}).empty());
  CHECK_THROWS_WITH(language.drawn({.max_new_tokens = 5}, 1, {}), containing("prompt is empty"));
  CHECK_THROWS_WITH(language.drawn({.temperature = -1}), containing("sample: temperature = -1"));
  int made = 0;
  const auto seven =
      sample(language.model, {4}, {.max_new_tokens = 50, .on_token = [&](int32_t) { return ++made < 7; }});
  CHECK(made == 7);
  CHECK(seven.size() == 7);
}
