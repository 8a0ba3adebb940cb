// Derivatives of outputs by scores, computed in double from the queries, keys and values of heads.
#include "heed/train/experiments/score_gradients.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/spec.h"
#include "heed/core/io/number_text.h"

namespace heed {
namespace {

constexpr double std_epsilon = 1e-6;  // added to a variance

using Row = std::span<double>;

double norm_of(Row row) {
  double sum = 0;
  for (const double x : row) sum += x * x;
  return std::sqrt(sum);
}

double mean_of(Row row) {
  double sum = 0;
  for (const double x : row) sum += x;
  return sum / static_cast<double>(row.size());
}

/// Calls edit(row) for each row of d numbers.
template <class Edit>
void each_row(std::vector<double>& x, int64_t d, const Edit& edit) {
  const auto width = static_cast<size_t>(d);
  for (size_t begin = 0; begin < x.size(); begin += width) edit(Row(x).subspan(begin, width));
}

void divide(Row row, double by) {
  for (double& x : row) x /= by;
}

/// (x - mean) / sqrt(variance + epsilon), over the features of each token.
void standardise(std::vector<double>& x, int64_t d) {
  each_row(x, d, [](Row row) {
    const double mean = mean_of(row);
    for (double& value : row) value -= mean;
    divide(row, std::sqrt(norm_of(row) * norm_of(row) / static_cast<double>(row.size()) + std_epsilon));
  });
}

/// Subtracts the mean over all tokens from each feature.
void centre(std::vector<double>& x, int64_t d) {
  const auto width = static_cast<size_t>(d);
  for (size_t feature = 0; feature < width; ++feature) {
    double sum = 0;
    for (size_t i = feature; i < x.size(); i += width) sum += x[i];
    for (size_t i = feature; i < x.size(); i += width) x[i] -= sum / static_cast<double>(x.size() / width);
  }
}

/// Adds one query, which sees n keys with these scores and values [n, dv]. The sum g may be zero, so a
/// derivative that is not finite counts as infinite.
void add_query(ScoreGradients& sums, const ScoreWeighting& f, std::span<const double> scores,
               std::span<const double> values) {
  const size_t n = scores.size(), width = values.size() / n;
  const double printed = 10 / (2 * static_cast<double>(n) + 3);
  const double shift = f.shift(scores);
  double total = 0, largest_value = 0;
  for (const double value : values) largest_value = std::max(largest_value, std::abs(value));
  std::vector<double> output(width);
  for (size_t l = 0; l < n; ++l) {
    const double weight = f.weight(scores[l] - shift);
    total += weight;
    for (size_t j = 0; j < width; ++j) output[j] += weight * values[l * width + j];
  }
  for (size_t l = 0; l < n; ++l) {
    double farthest = 0;
    for (size_t j = 0; j < width; ++j)
      farthest = std::max(farthest, std::abs(values[l * width + j] - output[j] / total));
    const double slope = std::abs(f.slope(scores[l] - shift) / total);
    double derivative = n == 1 ? 0 : slope * farthest / largest_value / printed;
    if (!std::isfinite(derivative)) derivative = INFINITY;
    sums.largest = std::max(sums.largest, derivative);
    sums.by_scores = std::max(sums.by_scores, 2 * slope / printed);
    sums.num_above += derivative > 1 ? 1 : 0;
    sums.min_score = sums.num_pairs == 0 ? scores[l] : std::min(sums.min_score, scores[l]);
    sums.max_score = sums.num_pairs == 0 ? scores[l] : std::max(sums.max_score, scores[l]);
    sums.num_pairs += 1;
  }
}

std::vector<double> in_double(const Tensor& x) {
  const std::vector<float> values = x.to_host();
  return {values.begin(), values.end()};
}

}  // namespace

ScoreWeighting::ScoreWeighting(const std::string& spec) {
  const Spec parsed = parse_spec(spec);
  const bool is_polynomial = parsed.name == "fastmax";
  bool is_known = is_polynomial || (parsed.name == "softmax" && parsed.options.empty());
  if (is_polynomial) {
    degree_ = 2;
    normalise_ = "std";
  }
  for (const auto& [name, value] : parsed.options) {
    if (name == "p")
      degree_ = parsed_integer(value).value_or(0);
    else if (name == "normalise")
      normalise_ = value;
    else
      is_known = false;
  }
  if (!is_known || (is_polynomial && degree_ != 1 && degree_ != 2))
    fail(Fault::internal, "score gradients: '", spec, "' is neither softmax nor fastmax with p = 1 or 2.");
}

double ScoreWeighting::weight(double score) const {
  if (degree_ == 0) return std::exp(score);
  return 1 + score + (degree_ == 2 ? score * score / 2 : 0);
}

double ScoreWeighting::slope(double score) const {
  if (degree_ == 0) return std::exp(score);
  return degree_ == 2 ? 1 + score : 1;
}

double ScoreWeighting::shift(std::span<const double> scores) const {
  return degree_ == 0 ? *std::ranges::max_element(scores) : 0;
}

void ScoreWeighting::normalise(std::vector<double>& x, int64_t d) const {
  if (normalise_ == "std") standardise(x, d);
  if (normalise_ == "l2") each_row(x, d, [](Row row) { divide(row, std::max(norm_of(row), 1e-12)); });
  if (normalise_ == "maxnorm") centre(x, d);
  if (normalise_ == "maxnorm" || normalise_ == "scaled") {
    double largest = 1e-12;
    each_row(x, d, [&](Row row) { largest = std::max(largest, norm_of(row)); });
    divide(x, largest);
  }
}

std::vector<double> ScoreWeighting::scores(std::vector<double> queries, std::vector<double> keys,
                                           int64_t d) const {
  normalise(queries, d);
  normalise(keys, d);
  const double root = std::sqrt(static_cast<double>(d));
  const double scale = degree_ == 0 ? 1 / root : normalise_ == "none" ? 1 / (8 * root) : 1;
  std::vector<double> out;
  each_row(queries, d, [&](Row query) {
    each_row(keys, d, [&](Row key) {
      double sum = 0;
      for (size_t i = 0; i < query.size(); ++i) sum += query[i] * key[i];
      out.push_back(scale * sum);
    });
  });
  return out;
}

void ScoreGradients::add(const ScoreWeighting& f, const Heads& heads, bool causal) {
  const int64_t all = heads.q.extent(0) * heads.q.extent(1);
  const int64_t queries = heads.q.extent(2), keys = heads.k.extent(2), d = heads.q.extent(3),
                width = heads.v.extent(3);
  const std::vector<double> q = in_double(heads.q), k = in_double(heads.k), v = in_double(heads.v);
  const auto part = [](const std::vector<double>& x, int64_t head, int64_t size) {
    return std::vector<double>(x.begin() + head * size, x.begin() + (head + 1) * size);
  };
  for (int64_t head = 0; head < all; ++head) {
    const std::vector<double> scores = f.scores(part(q, head, queries * d), part(k, head, keys * d), d);
    const std::vector<double> values = part(v, head, keys * width);
    for (int64_t i = 0; i < queries; ++i) {
      const auto seen = static_cast<size_t>(causal ? i + 1 : keys);
      add_query(*this, f, std::span(scores).subspan(static_cast<size_t>(i * keys), seen),
                std::span(values).first(seen * static_cast<size_t>(width)));
    }
  }
}

}  // namespace heed
