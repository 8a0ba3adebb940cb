// Subword tokenizers, trained in this process by the sentencepiece library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/data/tokenizers/tokenizer.h"

namespace heed {

/// The kind of subword model.
enum class SubwordModel {
  unigram,  ///< Kudo 2018, https://arxiv.org/abs/1804.10959
  bpe,      ///< Sennrich, Haddow, Birch 2016, https://arxiv.org/abs/1508.07909
};

/// How to train a subword model. Every field changes the bytes of the model, even `threads`.
struct SubwordOptions {
  SubwordModel model = SubwordModel::unigram;  ///< how pieces are found
  int64_t size = 8000;  ///< tokens, including the four special ones; a small text yields fewer
  int threads = 4;      ///< threads of training; their number changes the model's bytes
};

/// Trains on the sentences; each of their characters gets a token. Deterministic for equal sentences and
/// options. Fault::data when there are too few sentences or they hold bad UTF-8, Fault::usage when the size
/// cannot be reached.
std::unique_ptr<Tokenizer> train_sentencepiece(std::span<const std::string_view> sentences,
                                               const SubwordOptions& options = {});

/// A sentencepiece model of another program, whose ids do not matter: cuts text into pieces and joins them.
/// Immutable, so threads may share one.
class PieceModel {
 public:
  /// `bytes`: a serialised model. Fault::data that names `name` where it is damaged or of a kind that Heed
  /// cannot read: pieces of bytes, say. Fault::usage in a build without the library.
  PieceModel(std::string bytes, std::string_view name);

  /// The pieces of a text, normalised as the model says; characters that it does not know are pieces, too.
  std::vector<std::string> cut(std::string_view text) const;
  /// The text of pieces, which need not be the model's.
  std::string joined(const std::vector<std::string>& pieces) const;
  const std::string& bytes() const { return bytes_; }  ///< as given to the constructor

 private:
  struct Library;
  std::string bytes_;
  std::shared_ptr<Library> library_;
};

namespace detail {
/// Makes a tokenizer from the bytes of save().
std::unique_ptr<Tokenizer> load_sentencepiece(std::string_view bytes, std::string_view name);
}  // namespace detail

}  // namespace heed
