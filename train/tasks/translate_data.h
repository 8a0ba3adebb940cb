// The data of the translation task: corpus, tokenizers, batches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/batch.h"
#include "data/corpus.h"
#include "data/tokenizer.h"
#include "train/task.h"

namespace heed {

enum class TokenizerChoice { word, unigram, bpe };
enum class ShapeChoice { automatic, exact, few };

/// Options of the group "data".
struct TranslateOptions {
  std::string path;  ///< empty: the embedded phrasebook
  std::string from = "en", into = "it";
  int64_t pairs = 48000;  ///< of the phrasebook
  TokenizerChoice tokenizer = TokenizerChoice::word;
  int64_t vocabulary = 8000;  ///< of subwords
  bool joint = true;          ///< one subword vocabulary for both languages
  int64_t minimum = 2, most = 30000;
  bool blanks = false;  ///< words joined by blanks, references too
  bool vocabulary_on_all = false;
  std::string source_vocabulary, target_vocabulary;
  bool distinct = true;
  int64_t longest = 128;
  int64_t validation = 1000, test = 1000;
  int64_t split_seed = 1234;
  bool buckets = true;
  int64_t fixed_length = 0;
  ShapeChoice shapes = ShapeChoice::automatic;
  int64_t bleu_pairs = 200;
  void fields(Fields& f);
};

/// Loads, cleans, splits, tokenizes and batches.
class TranslateData {
 public:
  TranslateOptions options;

  void load(const Config& config, const std::vector<NamedBytes>& sealed,
            const std::function<void(const std::string&)>& say);
  void load_tokenizers(const std::vector<NamedBytes>& sealed);
  std::vector<NamedBytes> sealed() const;
  std::vector<std::pair<std::string, std::string>> facts() const { return facts_; }
  const Tokenizer& source() const { return *source_; }
  const Tokenizer& target() const { return target_ ? *target_ : *source_; }
  /// What outputs are compared with: the text as it is, or its pieces joined by blanks (the published
  /// recipe).
  std::string reference(const std::string& text) const;

  std::unique_ptr<PairBatches> train, validation, test;
  std::vector<Pair> validation_text, test_text;
  double smoothing = 0;
  int64_t max_length = 0, extra = 0;  ///< tokens a sentence has at most, and an output more than its source

 private:
  void train_tokenizers(const ParallelCorpus& corpus, const std::function<void(const std::string&)>& say);
  std::vector<EncodedPair> encode(const std::vector<Pair>& pairs, bool drop_long, int64_t& long_pairs) const;

  std::unique_ptr<Tokenizer> source_, target_;  // one when joint
  std::vector<std::pair<std::string, std::string>> facts_;
};

}  // namespace heed
