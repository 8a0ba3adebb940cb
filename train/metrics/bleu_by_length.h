// BLEU by the length of the source sentence: shows where a translator fails on long sentences.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/metrics/evaluation.h"

namespace heed {

/// The score of the sentences whose source has `from` to `to` words.
struct LengthBucket {
  int64_t from = 0;         ///< minimum number of words of a source
  int64_t to = 0;           ///< maximum number of words of a source
  int64_t sentences = 0;    ///< number of sentences, at least 1
  double bleu = 0;          ///< corpus BLEU of these sentences, 0 to 100
  double length_ratio = 0;  ///< tokens of the outputs over tokens of the references
};

/// The default width of a bucket in words.
inline constexpr int64_t usual_bucket_words = 5;

/// Splits sentences by the words of their sources, at white space, into buckets of `words` lengths: 1 to
/// `words`, and so on; an empty source counts as one word. Buckets without a sentence are left out. Each is
/// scored by corpus_bleu(). A usage error when the numbers of sentences differ, or for `words` below 1.
std::vector<LengthBucket> bleu_by_length(std::span<const std::string> sources,
                                         std::span<const std::string> outputs,
                                         std::span<const std::string> references,
                                         int64_t words = usual_bucket_words);
/// Splits and scores the test sentences of an evaluation; gives no bucket where it has none, as for tasks
/// other than translation.
std::vector<LengthBucket> bleu_by_length(std::span<const ReportSample> sentences,
                                         int64_t words = usual_bucket_words);

/// The buckets as a JSON list of objects with the names of the members.
Json to_json(const std::vector<LengthBucket>& buckets);
/// The inverse of to_json(). Fault::data for anything else.
std::vector<LengthBucket> length_buckets(const Json& list);

/// "11-15", or "7" for a bucket of one length.
std::string to_string(const LengthBucket& bucket);

}  // namespace heed
