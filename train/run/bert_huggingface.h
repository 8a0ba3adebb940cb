// BERT in the form of Hugging Face's Transformers, read and written: settings and weights.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/run/exported_model.h"
#include "heed/train/run/tensor_files.h"

namespace heed {

/// The sizes of a BERT. Comments name the members of config.json.
struct BertConfig {
  int64_t vocabulary = 0;        ///< vocab_size
  int64_t width = 0;             ///< hidden_size
  int64_t layers = 0;            ///< num_hidden_layers
  int64_t heads = 0;             ///< num_attention_heads
  int64_t hidden = 0;            ///< intermediate_size
  int64_t positions = 0;         ///< max_position_embeddings
  int64_t token_types = 2;       ///< type_vocab_size
  std::string activation;        ///< hidden_act, by Heed's word: "gelu"
  double norm_epsilon = 1e-12;   ///< layer_norm_eps
  double dropout = 0.1;          ///< hidden_dropout_prob
  double attention_dropout = 0;  ///< attention_probs_dropout_prob
  bool tied = true;              ///< tie_word_embeddings
};

/// Reads a config.json with model_type = bert. Fault::data that names `name`, the file, and the first member
/// that Heed cannot read: a decoder, relative positions, or another activation.
BertConfig parse_bert_config(const Json& json, const std::string& name);

/// The settings of a model that differ from the preset mlm.
std::vector<std::pair<std::string, std::string>> bert_settings(const BertConfig& config);

/// Converted weights.
struct BertWeights {
  std::string bytes;               ///< a safetensors file, for load_bytes()
  std::vector<std::string> notes;  ///< sentences about tensors that are new or left out
};

/// Converts the weights of a folder, in f32, bf16 or f16, to those of a MaskedLanguageModel. Names
/// may begin with "bert.", and norms may have gamma and beta. Where there is no head, as in a BertModel, one
/// is drawn; pooler and sentence classifier are left out. Fault::data that names file and tensor where one is
/// missing, unknown or of another shape.
BertWeights bert_weights(const TensorFiles& files, const BertConfig& config);

/// A model as BertForMaskedLM.from_pretrained() reads it.
struct BertFiles {
  Json config;          ///< config.json
  std::string weights;  ///< model.safetensors, in f32
};

/// Writes a MaskedLanguageModel whose tokenizer is a WordPiece. Fault::usage that names the first setting
/// that BERT does not have, with the legal value.
BertFiles encode_bert(const ExportedModel& model);

}  // namespace heed
