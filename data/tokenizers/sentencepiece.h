// Subword tokenizers trained in the process by the sentencepiece library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/tokenizer.h"

namespace heed {

/// Which subword model is trained.
enum class SubwordModel {
  unigram,  ///< Kudo 2018, https://arxiv.org/abs/1804.10959
  bpe,      ///< Sennrich, Haddow, Birch 2016, https://arxiv.org/abs/1508.07909
};

/// How a subword model is trained. Each of these changes the bytes of the model, the threads too.
struct SubwordOptions {
  SubwordModel model = SubwordModel::unigram;
  int64_t size = 8000;  ///< pieces, the four special ones included; a small text gives fewer
  int threads = 4;
};

/// Trains on the sentences, every character of which gets a piece. The same sentences and options give the
/// same bytes. Fault::data when the sentences are too few or hold bad UTF-8, Fault::usage when the size
/// cannot be reached.
std::unique_ptr<Tokenizer> train_sentencepiece(std::span<const std::string_view> sentences,
                                               const SubwordOptions& options = {});

namespace detail {
std::unique_ptr<Tokenizer> load_sentencepiece(std::string_view bytes, std::string_view name);
}  // namespace detail

}  // namespace heed
