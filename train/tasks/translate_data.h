// Data of the translation task: corpus, tokenizers, batches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heed/data/batching/padded_batches.h"
#include "heed/data/text/corpus.h"
#include "heed/data/tokenizers/tokenizer.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// The kind of tokenizer.
enum class TokenizerChoice { word, unigram, bpe };
/// How many padded shapes batches have: automatic is few on a GPU, exact on the CPU.
enum class ShapeChoice { automatic, exact, few };

/// Settings of the group "data".
struct TranslateOptions {
  std::string path;  ///< empty: the embedded phrasebook
  std::string from = "en", into = "it";
  int64_t num_examples = 48000;  ///< sentence pairs of the phrasebook
  TokenizerChoice tokenizer = TokenizerChoice::word;
  int64_t vocabulary = 8000;  ///< tokens of a subword tokenizer
  bool joint = true;          ///< one subword vocabulary for both languages
  int64_t min_frequency = 2, vocab_size = 30000;
  bool join_with_spaces = false;  ///< join words by blanks, in references too
  bool vocabulary_on_all = false;
  std::string source_vocabulary, target_vocabulary;
  bool deduplicate = true;
  int64_t max_length = 128;
  int64_t validation = 1000, test_size = 1000;
  int64_t split_seed = 1234;
  bool buckets = true;
  int64_t fixed_length = 0;
  ShapeChoice shapes = ShapeChoice::automatic;
  int64_t bleu_pairs = 200;
  void fields(Fields& f);
};

/// Loads, cleans, splits, tokenizes and batches sentence pairs.
class TranslateData {
 public:
  TranslateOptions options;

  void load(const Config& config, const std::vector<NamedBytes>& artifacts,
            const std::function<void(const std::string&)>& log);
  void load_tokenizers(const std::vector<NamedBytes>& artifacts);
  std::vector<NamedBytes> artifacts() const;
  std::vector<std::pair<std::string, std::string>> metadata() const { return metadata_; }
  const Tokenizer& source() const { return *source_; }
  const Tokenizer& target() const { return target_ ? *target_ : *source_; }
  /// The reference that outputs are compared with: the text itself, or its tokens joined by blanks (the
  /// published recipe).
  std::string reference(const std::string& text) const;

  std::unique_ptr<PairBatches> train, validation, test;
  std::vector<Pair> validation_text, test_text;
  double smoothing = 0;
  int64_t max_length = 0;  ///< of a sentence, in tokens
  int64_t extra = 0;       ///< tokens of an output beyond its source's length

 private:
  void train_tokenizers(const ParallelCorpus& corpus, const std::function<void(const std::string&)>& log);
  std::vector<EncodedPair> encode(const std::vector<Pair>& pairs, bool drop_long, int64_t& long_pairs) const;

  std::unique_ptr<Tokenizer> source_, target_;  // one when joint
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace heed
