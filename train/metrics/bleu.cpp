// BLEU: clipped n-gram counts over a corpus, their geometric mean, brevity penalty.
#include "heed/train/metrics/bleu.h"

#include <cmath>
#include <unordered_map>

#include "heed/core/error.h"
#include "heed/core/io/number_text.h"
#include "heed/core/version.h"
#include "heed/train/metrics/whitespace.h"

namespace heed {
namespace {

constexpr size_t max_bleu_order = 4;  // tokens of the longest n-grams

/// Replaces every `from` in the text.
void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  size_t at = 0;
  for (size_t found = text.find(from); found != std::string::npos; found = text.find(from, at)) {
    out.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  out.append(text, at);
  text = std::move(out);
}

bool is_period_or_comma(char letter) { return letter == '.' || letter == ','; }

bool is_digit_byte(char letter) { return letter >= '0' && letter <= '9'; }

/// True for ASCII punctuation and symbols except apostrophe, comma, dash and period.
bool is_separate_token(char letter) {
  if (letter < ' ' || letter > '~') return false;
  const bool alphanumeric =
      is_digit_byte(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
  return !alphanumeric && letter != '\'' && letter != ',' && letter != '-' && letter != '.';
}

/// One substitution pass of the original script over adjacent bytes: where `first` and `second` hold for two
/// bytes, calls put(out, a, b) and skips both; copies all other bytes. Bytes suffice, since those of
/// multi-byte characters are in none of the classes and count as "not a digit".
template <class First, class Second, class Put>
std::string substitute_pairs(const std::string& text, First first, Second second, Put put) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      put(out, text[i], text[i + 1]);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string_view without_trailing_space(std::string_view sentence) {
  const std::vector<std::string_view> words = score_words(sentence);
  if (words.empty()) return {};
  return sentence.substr(0, static_cast<size_t>(words.back().data() - sentence.data()) + words.back().size());
}

/// Counts each n-gram of a sentence; tokens have no space, so a space joins them.
std::unordered_map<std::string, int64_t> count_ngrams(const std::vector<std::string>& tokens, size_t order) {
  std::unordered_map<std::string, int64_t> counts;
  for (size_t i = 0; i + order <= tokens.size(); ++i) {
    std::string joined = tokens[i];
    for (size_t k = 1; k < order; ++k) joined.append(1, ' ').append(tokens[i + k]);
    ++counts[joined];
  }
  return counts;
}

/// Computes brevity penalty, smoothed precisions and score from the counts.
void compute_score(Bleu& bleu) {
  if (bleu.length < bleu.reference_length) {
    bleu.brevity_penalty =
        bleu.length == 0
            ? 0
            : std::exp(1 - static_cast<double>(bleu.reference_length) / static_cast<double>(bleu.length));
  }
  if (bleu.correct[0] == 0) return;  // without a common token no longer n-gram matches either
  double smoothing = 1;
  double sum_of_logs = 0;
  for (size_t n = 0; n < max_bleu_order; ++n) {
    if (bleu.total[n] == 0) return;  // no n-gram of this length: BLEU is 0 by definition
    const auto total = static_cast<double>(bleu.total[n]);
    if (bleu.correct[n] == 0) {
      smoothing *= 2;
      bleu.precisions[n] = 100 / (smoothing * total);
    } else {
      bleu.precisions[n] = 100 * static_cast<double>(bleu.correct[n]) / total;
    }
    sum_of_logs += std::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(sum_of_logs / max_bleu_order);
}

}  // namespace

std::vector<std::string> tokenize_13a(std::string_view sentence) {
  std::string text(without_trailing_space(sentence));
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");

  std::string spaced = " ";
  for (const char letter : text) {
    if (is_separate_token(letter)) {
      spaced.append(1, ' ').append(1, letter).append(1, ' ');
    } else {
      spaced += letter;
    }
  }
  spaced += ' ';
  const auto no_digit = [](char letter) { return !is_digit_byte(letter); };
  const auto is_dash = [](char letter) { return letter == '-'; };
  const auto separate_second = [](std::string& out, char a, char b) {
    out.append(1, a).append(1, ' ').append(1, b).append(1, ' ');
  };
  const auto separate_first = [](std::string& out, char a, char b) {
    out.append(1, ' ').append(1, a).append(1, ' ').append(1, b);
  };
  spaced = substitute_pairs(spaced, no_digit, is_period_or_comma, separate_second);
  spaced = substitute_pairs(spaced, is_period_or_comma, no_digit, separate_first);
  spaced = substitute_pairs(spaced, is_digit_byte, is_dash, separate_second);

  std::vector<std::string> tokens;
  for (const std::string_view word : score_words(spaced)) tokens.emplace_back(word);
  return tokens;
}

Bleu corpus_bleu(std::span<const std::string> outputs, std::span<const std::string> references) {
  check_references("bleu", outputs, references);
  Bleu bleu;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<std::string> output = tokenize_13a(outputs[i]);
    const std::vector<std::string> reference = tokenize_13a(references[i]);
    bleu.length += static_cast<int64_t>(output.size());
    bleu.reference_length += static_cast<int64_t>(reference.size());
    for (size_t n = 0; n < max_bleu_order; ++n) {
      const auto reference_counts = count_ngrams(reference, n + 1);
      for (const auto& [ngram, count] : count_ngrams(output, n + 1)) {
        bleu.total[n] += count;
        const auto found = reference_counts.find(ngram);
        if (found != reference_counts.end()) bleu.correct[n] += std::min(count, found->second);
      }
    }
  }
  compute_score(bleu);
  return bleu;
}

double Bleu::ratio() const {
  return reference_length == 0 ? 0 : static_cast<double>(length) / static_cast<double>(reference_length);
}

std::string Bleu::summary() const {
  return formatted("BLEU = %.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)",
                   score, precisions[0], precisions[1], precisions[2], precisions[3], brevity_penalty,
                   ratio(), static_cast<long long>(length), static_cast<long long>(reference_length));
}

Bleu bleu_of_counts(Bleu counts) {
  compute_score(counts);
  return counts;
}

std::string bleu_signature() {
  return "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed-" HEED_VERSION;
}

}  // namespace heed
