// Data of the translation task: corpus, tokenizers, batches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heed/data/batching/padded_batches.h"
#include "heed/data/text/parallel_corpus.h"
#include "heed/data/tokenizers/tokenizer.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// The kind of tokenizer.
enum class TokenizerChoice { word, unigram, bpe };
/// How many padded shapes batches have: automatic is few on a GPU, exact on the CPU.
enum class ShapeChoice { automatic, exact, few };

/// Settings of the group "data".
struct TranslateOptions {
  std::string path;              ///< empty: the embedded phrasebook
  std::string from = "en";       ///< source language, as file names and JSON keys spell it
  std::string into = "it";       ///< target language
  int64_t num_examples = 48000;  ///< sentence pairs of the phrasebook
  TokenizerChoice tokenizer = TokenizerChoice::word;  ///< pieces of text
  int64_t vocabulary = 8000;                          ///< tokens of a subword tokenizer
  bool joint = true;                                  ///< one subword vocabulary for both languages
  int64_t min_frequency = 2;                          ///< least count of a word in the vocabulary
  int64_t vocab_size = 30000;                         ///< most words in the vocabulary
  bool join_with_spaces = false;                      ///< join words by blanks, in references too
  bool vocabulary_on_all = false;  ///< count words of held-out pairs too, as the published recipe does
  std::string source_vocabulary;   ///< a word-level tokenizer file (JSON) instead of counting; empty: count
  std::string target_vocabulary;   ///< a word-level tokenizer file (JSON) for the target; empty: count
  bool deduplicate = true;         ///< drop exact repeats before the split
  int64_t max_length = 128;        ///< words of a sentence at most; 0: no limit
  int64_t validation = 1000;       ///< pairs held out to choose the best checkpoint
  int64_t test_size = 1000;        ///< pairs held out for the final score
  int64_t split_seed = 1234;       ///< seed of the one shuffle before holding out
  bool buckets = true;             ///< batches of like length
  int64_t fixed_length = 0;        ///< above 0: pad every row to this length
  ShapeChoice shapes = ShapeChoice::automatic;  ///< how many padded shapes batches have
  int64_t bleu_pairs = 200;                     ///< validation pairs translated at each validation
  void fields(Fields& f);                       ///< names every setting of [data] with its help
};

/// Loads, cleans, splits, tokenizes and batches sentence pairs.
class TranslateData {
 public:
  TranslateOptions options;   ///< filled from the config before load()
  bool all_for_test = false;  ///< load() makes all pairs the test split, for a trained model

  /// Reads or generates the pairs; takes tokenizers from a checkpoint's `artifacts`, else trains them.
  void load(const Config& config, const std::vector<NamedBytes>& artifacts,
            const std::function<void(const std::string&)>& log);
  /// Loads only the tokenizers of a checkpoint's `artifacts`, for a trained model.
  void load_tokenizers(const std::vector<NamedBytes>& artifacts);
  std::vector<NamedBytes> artifacts() const;  ///< the tokenizers, for a checkpoint
  /// Hashes, sizes and counts of the corpus, for the manifest.
  std::vector<std::pair<std::string, std::string>> metadata() const { return metadata_; }
  const Tokenizer& source() const { return *source_; }  ///< tokenizer of sentences to translate
  /// The tokenizer of translations; source() where one serves both.
  const Tokenizer& target() const { return target_ ? *target_ : *source_; }
  /// The reference that outputs are compared with: the text itself, or its tokens joined by blanks (the
  /// published recipe).
  std::string reference(const std::string& text) const;

  std::unique_ptr<PairBatches> train;       ///< learned from
  std::unique_ptr<PairBatches> validation;  ///< chooses the best checkpoint
  std::unique_ptr<PairBatches> test;        ///< for the final score
  std::vector<Pair> validation_text;        ///< the pairs of `validation` as text
  std::vector<Pair> test_text;              ///< the pairs of `test` as text
  double smoothing = 0;                     ///< train.label_smoothing of the run
  int64_t max_length = 0;                   ///< maximum tokens of a sentence
  int64_t cut = 0;                          ///< held-out pairs that were longer
  bool carries_packing = false;             ///< batches have a Packing::table() of each side
  DecodeOptions decode;                     ///< [decode] of the run
  /// `decode` with one hypothesis: how validation translates.
  DecodeOptions greedy() const {
    DecodeOptions out = decode;
    out.beam_size = 1;
    return out;
  }

 private:
  void train_tokenizers(const ParallelCorpus& corpus, const std::function<void(const std::string&)>& log);
  std::vector<EncodedPair> encode(const std::vector<Pair>& pairs, bool drop_long, int64_t& long_pairs) const;

  std::unique_ptr<Tokenizer> source_, target_;  // one when joint
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace heed
