// The data of language models: texts, their tokenizer, windows.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/characters.h"
#include "data/tokenizer.h"
#include "train/task.h"

namespace heed {

/// What a language model reads and writes.
enum class TextUnit { character, byte, byte_pair, unigram, bpe };

/// Options of the group "data".
struct LanguageOptions {
  std::string path;                        ///< empty: embedded verse
  std::string validation_path, test_path;  ///< empty: cut from `path`, and the validation text
  int64_t characters = 1000000;            ///< of the verse
  double share = 0.9;                      ///< of `path` for training, where it is cut
  TextUnit tokenizer = TextUnit::character;
  std::string merges;         ///< folder of a byte-pair tokenizer; empty: trained
  int64_t vocabulary = 8192;  ///< pieces, where they are trained
  int64_t stride = 0;         ///< new tokens a window of the final score; 0: windows do not overlap
  int64_t estimate = 20;      ///< random batches of the estimated validation loss; 0: none
  void fields(Fields& f);
};

/// Held-out text, and what losses are told in.
struct HeldOutText {
  std::unique_ptr<TextWindows> windows;
  double bytes = 0;  ///< of what is predicted: all but the first token
  double words = 0;  ///< the same, blank-separated words and line ends
};

/// Loads, splits, tokenizes and cuts into windows.
class LanguageData {
 public:
  LanguageOptions options;

  void load(const Config& config, const std::vector<NamedBytes>& sealed,
            const std::function<void(const std::string&)>& say);
  void load_tokenizer(const std::vector<NamedBytes>& sealed);
  std::vector<NamedBytes> sealed() const;
  std::vector<std::pair<std::string, std::string>> facts() const { return facts_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

  std::unique_ptr<TextWindows> train;
  HeldOutText validation;
  HeldOutText test;                       ///< of the final score: the test text, or validation's
  std::unique_ptr<TextWindows> estimate;  ///< of validation, in the batches of training
  std::vector<int32_t> opening;           ///< the first ids of validation, for maps and samples

 private:
  void make_tokenizer(std::string_view all, std::string_view training);
  HeldOutText held_out(const std::vector<int32_t>& ids, std::string_view text,
                       const WindowOptions& windows) const;

  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::pair<std::string, std::string>> facts_;
};

}  // namespace heed
