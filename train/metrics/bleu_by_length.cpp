// BLEU by the length of the source sentence.
#include "heed/train/metrics/bleu_by_length.h"

#include <algorithm>
#include <map>
#include <utility>

#include "heed/core/error.h"
#include "heed/train/metrics/bleu.h"
#include "heed/train/metrics/whitespace.h"

namespace heed {

std::vector<LengthBucket> bleu_by_length(std::span<const std::string> sources,
                                         std::span<const std::string> outputs,
                                         std::span<const std::string> references, int64_t bucket_words) {
  if (bucket_words < 1) fail("BLEU by length: buckets of ", bucket_words, " words. Give at least 1.");
  if (sources.size() != outputs.size() || sources.size() != references.size())
    fail("BLEU by length: ", sources.size(), " sources, ", outputs.size(), " outputs and ", references.size(),
         " references. There must be one of each for every sentence.");
  struct Sentences {
    std::vector<std::string> outputs, references;
  };
  std::map<int64_t, Sentences> found;  // by the number of the bucket
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto length = std::max<int64_t>(1, static_cast<int64_t>(score_words(sources[i]).size()));
    Sentences& bucket = found[(length - 1) / bucket_words];
    bucket.outputs.push_back(outputs[i]);
    bucket.references.push_back(references[i]);
  }
  std::vector<LengthBucket> out;
  for (const auto& [number, sentences] : found) {
    const Bleu bleu = corpus_bleu(sentences.outputs, sentences.references);
    out.push_back({.from = number * bucket_words + 1,
                   .to = (number + 1) * bucket_words,
                   .sentences = static_cast<int64_t>(sentences.outputs.size()),
                   .bleu = bleu.score,
                   .length_ratio = bleu.ratio()});
  }
  return out;
}

std::vector<LengthBucket> bleu_by_length(std::span<const ReportSample> sentences, int64_t bucket_words) {
  std::vector<std::string> sources, outputs, references;
  for (const ReportSample& sentence : sentences) {
    sources.push_back(sentence.source);
    outputs.push_back(sentence.hypothesis);
    references.push_back(sentence.reference);
  }
  return bleu_by_length(sources, outputs, references, bucket_words);
}

Json to_json(const std::vector<LengthBucket>& buckets) {
  Json out(Json::List{});
  for (const LengthBucket& bucket : buckets) {
    out.push(Json::object({{"from", bucket.from},
                           {"to", bucket.to},
                           {"sentences", bucket.sentences},
                           {"bleu", bucket.bleu},
                           {"length_ratio", bucket.length_ratio}}));
  }
  return out;
}

std::vector<LengthBucket> length_buckets(const Json& list) {
  std::vector<LengthBucket> out;
  for (const Json& bucket : list.list()) {
    out.push_back({.from = bucket.at("from").integer(),
                   .to = bucket.at("to").integer(),
                   .sentences = bucket.at("sentences").integer(),
                   .bleu = bucket.at("bleu").real(),
                   .length_ratio = bucket.at("length_ratio").real()});
  }
  return out;
}

std::string to_string(const LengthBucket& bucket) {
  if (bucket.from == bucket.to) return std::to_string(bucket.from);
  return std::to_string(bucket.from) + "-" + std::to_string(bucket.to);
}

}  // namespace heed
