// Data of language models: text, its tokenizer, windows of token ids.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heed/data/batching/text_windows.h"
#include "heed/data/text/held_out_end.h"
#include "heed/data/text/split_documents.h"
#include "heed/data/tokenizers/tokenizer.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// The unit of a token.
enum class TextUnit { character, byte, byte_pair, unigram, bpe, ids, wordpiece, tokenizer_json };

/// Settings of the group "data".
struct LanguageOptions {
  std::string path;                          ///< empty: embedded verse
  std::string validation_path;               ///< text to choose the best checkpoint; empty: split off `path`
  std::string test_path;                     ///< text for the final score; empty: the validation text
  int64_t num_examples = 1000000;            ///< length of the embedded verse
  double train_fraction = 0.9;               ///< training fraction of `path`, where it is split
  TextUnit tokenizer = TextUnit::character;  ///< the unit of a token
  std::string merges;                        ///< folder of a tokenizer; empty: train one
  int64_t vocabulary = 8192;                 ///< tokens, where the tokenizer is trained
  DocumentEnd document_end = DocumentEnd::none;  ///< where attention and positions begin anew
  int64_t stride = 0;         ///< new tokens of each window in the test score; 0: no overlap
  int64_t eval_batches = 20;  ///< random batches of the estimated validation loss; 0: none
  void fields(Fields& f);     ///< names every setting of [data] with its help
  /// Whether the tokenizer is always read from `merges`.
  bool tokenizer_is_read() const {
    return tokenizer == TextUnit::wordpiece || tokenizer == TextUnit::tokenizer_json;
  }
  void text_fields(Fields& f);  ///< names the settings of the texts and the tokenizer alone
};

/// Held-out text and the units of its scores.
struct HeldOutText {
  std::unique_ptr<TextWindows> windows;  ///< windows in order, for scores
  double bytes = 0;                      ///< bytes that are predicted: of all tokens but the first
  double words = 0;                      ///< words between blanks, and line ends, among these bytes
};

/// A text in tokens.
struct EncodedText {
  std::vector<int32_t> ids;              ///< its tokens
  std::vector<int64_t> document_starts;  ///< the places in `ids` at which documents begin, without 0
};

/// Loads, splits and tokenizes text, and cuts it into windows.
class LanguageData {
 public:
  LanguageOptions options;  ///< filled from the config before load()
  /// Whether windows are shorter than the model reads by SpecialIds::around_masked().
  bool leaves_room_for_ends = false;

  /// Announces that the next load() is for a trained model, whose only text is the file at `path`.
  void test_on(const std::string& path);
  /// Reads the texts and makes the tokenizer, or takes it from a checkpoint's `artifacts`; reports to `log`.
  void load(const Config& config, const std::vector<NamedBytes>& artifacts,
            const std::function<void(const std::string&)>& log);
  /// Loads only the tokenizer, for a trained model.
  void load_tokenizer(const std::vector<NamedBytes>& artifacts);
  std::vector<NamedBytes> artifacts() const;  ///< the tokenizer, for a checkpoint
  /// The name of the text that is scored: "the validation text", or the file of the test.
  std::string name_of_test() const {
    return options.test_path.empty() ? "the validation text" : options.test_path;
  }
  /// The name of the text that is scored, and how windows of up to `tokens_a_window` tokens cover it: a note.
  std::string tested_text(int64_t tokens_a_window) const;
  /// Hashes and sizes of the texts, for the manifest.
  std::vector<std::pair<std::string, std::string>> metadata() const { return metadata_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }  ///< fails before load() or load_tokenizer()

  std::unique_ptr<TextWindows> train;     ///< windows drawn at random
  HeldOutText validation;                 ///< to choose the best checkpoint
  HeldOutText test;                       ///< for the final score: the test text, or validation's
  std::unique_ptr<TextWindows> estimate;  ///< windows of validation in batches of training size
  std::vector<int32_t> opening;           ///< the first ids of validation, for maps and samples

 private:
  /// The texts of the files, or generated; those without a file of their own are empty.
  struct Texts {
    std::string main, validation, test;
  };
  void check_options(const Config& config) const;
  /// Reads or generates the texts, and records their hashes in metadata_.
  Texts read_texts(const std::function<void(const std::string&)>& log);
  /// Encodes the texts and cuts them into windows; a held-out text shorter than a window is one window.
  /// `is_trained`: the model exists, and its length is given. Fault::data: a text is too short.
  void make_windows(const Texts& texts, const TextSplit& split, const Config& config, bool is_trained);
  /// Makes the tokenizer of data.tokenizer: from the characters of `all` texts, or learned from `training`.
  void make_tokenizer(std::string_view all, std::string_view training);
  /// The ids of a text. The error for what the tokenizer lacks names the file `path`, if there is one.
  EncodedText encoded(std::string_view content, const std::string& path) const;
  /// Windows of a held-out text, which was encoded, and the units of its scores.
  HeldOutText held_out(const EncodedText& encoded, std::string_view text, const WindowOptions& windows) const;

  bool trains_ = true;  ///< false after test_on()
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace heed
