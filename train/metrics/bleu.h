// Corpus BLEU with sacreBLEU's defaults, comparable with published scores.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A BLEU score and its parts (Papineni et al. 2002).
struct Bleu {
  double score = 0;                    ///< 0 to 100
  std::array<double, 4> precisions{};  ///< precisions of 1- to 4-grams, in percent, after smoothing
  double brevity_penalty = 1;          ///< exp(1 - reference length / length) if the output is shorter
  std::array<int64_t, 4> correct{};  ///< n-grams of the output that the reference has, clipped to its counts
  std::array<int64_t, 4> total{};    ///< n-grams of the output
  int64_t length = 0;                ///< tokens of the output
  int64_t reference_length = 0;      ///< tokens of the references
  double ratio() const;              ///< length / reference length; 0 without references
  /// One line: score, precisions, brevity penalty, ratio and lengths.
  std::string summary() const;
};

/// BLEU of sentences against one reference each: tokens of tokenize_13a(), case-sensitive, 4-grams,
/// exponential smoothing (Chen and Cherry 2014, method 3). Post 2018, "A Call for Clarity in Reporting BLEU
/// Scores". A usage error when the numbers of sentences differ.
Bleu corpus_bleu(std::span<const std::string> outputs, std::span<const std::string> references);

/// The score of counts alone, such as sums over sentences: correct, total, length and reference_length.
Bleu bleu_of_counts(Bleu counts);

/// The settings in sacreBLEU's format:
/// nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed-...
std::string bleu_signature();

/// The tokens of NIST's mteval-v13a: resolves entities, splits off punctuation and symbols, keeps periods and
/// commas within numbers, splits a dash off a digit before it.
std::vector<std::string> tokenize_13a(std::string_view sentence);

}  // namespace heed
