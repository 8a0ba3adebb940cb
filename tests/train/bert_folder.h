// A BERT in the form of Hugging Face's Transformers, written from a model of ours.
#pragma once

#include "heed/data/tokenizers/tokenizer.h"
#include "heed/nn/masked_language_model.h"
#include "heed/train/run/exported_model.h"

namespace heed {

/// A small WordPiece tokenizer in lower case, with [PAD] [UNK] [CLS] [SEP] [MASK] as its first pieces.
std::unique_ptr<Tokenizer> small_wordpiece();

/// Settings of a small BERT: 2 blocks of width 12, 2 heads, 16 positions.
TransformerConfig small_bert();

/// A model with two token types and random weights, whose gains and biases can be told apart.
MaskedLanguageModel bert_model(uint64_t seed, const TransformerConfig& config = small_bert());

/// A model with its tokenizer, as `heed export` has it.
struct SmallBert {
  std::unique_ptr<Tokenizer> tokenizer = small_wordpiece();
  MaskedLanguageModel model = bert_model(1);
  SafeTensors weights = SafeTensors::parse(save_bytes(model), "model.safetensors");
  ExportedModel exported{.name = "b",
                         .config = small_bert(),
                         .attention = "softmax",
                         .weights = weights,
                         .tokenizer = *tokenizer,
                         .translator = {},
                         .is_masked = true};

  /// Writes the folder that `heed export --as huggingface` makes.
  void write(const Path& folder) const;
};

}  // namespace heed
