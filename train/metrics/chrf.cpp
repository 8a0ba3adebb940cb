// chrF: precision and recall of character n-grams, averaged over their lengths.
#include "heed/train/metrics/chrf.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

#include "heed/core/error.h"
#include "heed/core/version.h"
#include "heed/data/text/text.h"
#include "heed/train/metrics/whitespace.h"

namespace heed {
namespace {

constexpr size_t max_order = 6;
constexpr double beta_squared = 4;  // recall weighs twice as much as precision

std::u32string without_space(std::string_view sentence) {
  std::u32string out;
  for (size_t at = 0; at < sentence.size();) {
    const char32_t code = next_code_point(sentence, at);
    if (!is_score_space(code)) out += code;
  }
  return out;
}

std::unordered_map<std::u32string_view, int64_t> count_ngrams(std::u32string_view text, size_t order) {
  std::unordered_map<std::u32string_view, int64_t> counts;
  for (size_t i = 0; i + order <= text.size(); ++i) ++counts[text.substr(i, order)];
  return counts;
}

/// Numbers of n-grams of one length.
struct NgramCounts {
  int64_t output = 0;
  int64_t reference = 0;
  int64_t match = 0;  // in both, clipped
};

}  // namespace

double corpus_chrf(std::span<const std::string> outputs, std::span<const std::string> references) {
  check_references("chrf", outputs, references);
  std::array<NgramCounts, max_order> sums;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::u32string output = without_space(outputs[i]);
    const std::u32string reference = without_space(references[i]);
    for (size_t n = 0; n < max_order; ++n) {
      const auto reference_counts = count_ngrams(reference, n + 1);
      if (reference_counts.empty()) continue;  // a reference too short for this length is skipped
      sums[n].reference += static_cast<int64_t>(reference.size() - n);
      for (const auto& [ngram, count] : count_ngrams(output, n + 1)) {
        sums[n].output += count;
        const auto found = reference_counts.find(ngram);
        if (found != reference_counts.end()) sums[n].match += std::min(count, found->second);
      }
    }
  }
  double precision = 0;
  double recall = 0;
  int64_t num_orders = 0;
  for (const NgramCounts& sum : sums) {
    if (sum.output == 0 || sum.reference == 0) continue;
    precision += static_cast<double>(sum.match) / static_cast<double>(sum.output);
    recall += static_cast<double>(sum.match) / static_cast<double>(sum.reference);
    ++num_orders;
  }
  if (precision + recall == 0) return 0;
  precision /= static_cast<double>(num_orders);
  recall /= static_cast<double>(num_orders);
  return 100 * (1 + beta_squared) * precision * recall / (beta_squared * precision + recall);
}

std::string chrf_signature() {
  return "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:heed-" HEED_VERSION;
}

}  // namespace heed
