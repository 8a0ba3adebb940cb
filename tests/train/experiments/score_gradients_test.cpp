// Derivatives of outputs by scores: beside the layers' own maps, and beside differences of outputs.
#include "heed/train/experiments/score_gradients.h"

#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/random.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

constexpr int64_t length = 7, width = 4;
constexpr const char* specs[] = {"softmax",
                                 "fastmax:p=1",
                                 "fastmax",
                                 "fastmax:normalise=l2",
                                 "fastmax:p=1,normalise=l2",
                                 "fastmax:normalise=maxnorm",
                                 "fastmax:normalise=scaled",
                                 "fastmax:normalise=none",
                                 "fastmax:p=1,normalise=maxnorm",
                                 "fastmax:p=1,normalise=scaled",
                                 "fastmax:p=1,normalise=none"};

Heads random_heads(uint64_t seed) {
  Rng rng(seed);
  Heads out;
  for (Tensor* x : {&out.q, &out.k, &out.v}) {
    *x = Tensor::zeros(Shape{1, 1, length, width});
    fill_normal(*x, 0, 1, rng);
  }
  return out;
}

std::vector<double> numbers(const Tensor& x) {
  const std::vector<float> values = x.to_host();
  return {values.begin(), values.end()};
}

/// Outputs [n, width] of one query, by its scores and the values [n, width].
std::vector<double> output_of(const ScoreWeighting& f, const std::vector<double>& scores,
                              const std::vector<double>& values) {
  std::vector<double> out(width);
  double total = 0;
  for (const double score : scores) total += f.weight(score);
  for (size_t l = 0; l < scores.size(); ++l) {
    for (size_t j = 0; j < out.size(); ++j)
      out[j] += f.weight(scores[l]) / total * values[l * out.size() + j];
  }
  return out;
}

}  // namespace

TEST_CASE("score gradients: scores and weights are those of the layers") {
  const Heads heads = random_heads(3);
  for (const char* spec : specs) {
    CAPTURE(spec);
    Rng rng(1);
    const std::unique_ptr<Attention> attention =
        make_attention(spec, {.d_model = width, .heads = 1, .causal = false, .max_length = length}, rng);
    MapRecorder recorder;
    AttentionInput input;
    input.context.recorder = &recorder;
    const NoGrad no_grad;
    dynamic_cast<MultiHeadAttention&>(*attention).on_heads(heads, input);
    const std::vector<double> map = numbers(recorder.maps.at(0).weights);
    const ScoreWeighting f(spec);
    const std::vector<double> scores = f.scores(numbers(heads.q), numbers(heads.k), width);
    REQUIRE(scores.size() == map.size());
    for (size_t row = 0; row < static_cast<size_t>(length); ++row) {
      double total = 0;
      for (size_t l = 0; l < length; ++l) total += f.weight(scores[row * length + l]);
      for (size_t l = 0; l < length; ++l) {
        const double weight = f.weight(scores[row * length + l]) / total;
        CHECK(std::abs(weight - map[row * length + l]) < 1e-4 * (1 + std::abs(weight)));
      }
    }
  }
}

TEST_CASE("score gradients: the largest derivative is that of differences of outputs") {
  const Heads heads = random_heads(5);
  const std::vector<double> values = numbers(heads.v);
  for (const char* spec : specs) {
    for (const bool causal : {false, true}) {
      CAPTURE(spec, causal);
      const ScoreWeighting f(spec);
      const std::vector<double> scores = f.scores(numbers(heads.q), numbers(heads.k), width);
      double largest = 0, num_above = 0, num_pairs = 0;
      for (size_t row = 0; row < length; ++row) {
        const size_t n = causal ? row + 1 : length;
        const double bound = 10 / (2 * static_cast<double>(n) + 3);
        double largest_value = 0;
        for (size_t i = 0; i < n * width; ++i) largest_value = std::max(largest_value, std::abs(values[i]));
        std::vector<double> seen(scores.begin() + static_cast<std::ptrdiff_t>(row * length),
                                 scores.begin() + static_cast<std::ptrdiff_t>(row * length + n));
        for (size_t l = 0; l < n; ++l, ++num_pairs) {
          constexpr double step = 1e-6;
          std::vector<double> above = seen, below = seen;
          above[l] += step;
          below[l] -= step;
          const std::vector<double> high = output_of(f, above, values), low = output_of(f, below, values);
          double of_pair = 0;
          for (size_t j = 0; j < high.size(); ++j)
            of_pair = std::max(of_pair, std::abs(high[j] - low[j]) / (2 * step) / largest_value / bound);
          largest = std::max(largest, of_pair);
          num_above += of_pair > 1 ? 1 : 0;
        }
      }
      ScoreGradients found;
      found.add(f, heads, causal);
      CHECK(std::abs(found.largest - largest) < 1e-4 * (1 + largest));
      CHECK(found.num_pairs == num_pairs);
      CHECK(found.num_above == num_above);
      const bool has_negative_weights = std::string(spec) == "fastmax:p=1";
      if (!has_negative_weights) CHECK(found.largest <= found.by_scores);
    }
  }
}

TEST_CASE("score gradients: a sum of weights that is zero counts as infinite") {
  // Scores -1 and -1: weights 1 + s of Fastmax1 are zero.
  Heads heads;
  heads.q = Tensor::from({1, 0}, Shape{1, 1, 1, 2});
  heads.k = Tensor::from({-1, 0, -1, 0}, Shape{1, 1, 2, 2});
  heads.v = Tensor::from({1, 2}, Shape{1, 1, 2, 1});
  ScoreGradients found;
  found.add(ScoreWeighting("fastmax:p=1,normalise=l2"), heads, false);
  CHECK(std::isinf(found.largest));
  CHECK(found.num_above == 2);
  CHECK(found.num_pairs == 2);
}

TEST_CASE("score gradients: large scores of softmax do not overflow") {
  Heads heads;
  heads.q = Tensor::from({4000}, Shape{1, 1, 1, 1});
  heads.k = Tensor::from({1, 1}, Shape{1, 1, 2, 1});
  heads.v = Tensor::from({1, -1}, Shape{1, 1, 2, 1});
  ScoreGradients found;
  found.add(ScoreWeighting("softmax"), heads, false);
  CHECK(found.max_score == 4000);
  CHECK(found.largest == Approx(0.5 / (10.0 / 7)));  // w (1 - w) |1 - -1| with w = 1 / 2
}

TEST_CASE("score gradients: another attention is refused") {
  for (const char* spec : {"linear", "fastmax:p=3", "fastmax:a2=1"})
    CHECK_THROWS_AS(ScoreWeighting(spec), Error);
}
