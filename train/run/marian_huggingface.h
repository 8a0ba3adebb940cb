// Marian's translators in the form of Hugging Face's Transformers, read and written: settings and weights.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/run/exported_model.h"
#include "heed/train/run/tensor_files.h"

namespace heed {

/// The settings of a Marian in its config.json. Comments name the fields of Transformers' MarianConfig.
struct MarianConfig {
  int64_t vocabulary = 0;        ///< vocab_size, of both languages
  int64_t width = 0;             ///< d_model
  int64_t layers = 0;            ///< encoder_layers, as many as decoder_layers
  int64_t heads = 0;             ///< encoder_attention_heads, as many as decoder_attention_heads
  int64_t hidden = 0;            ///< encoder_ffn_dim, the same as decoder_ffn_dim
  int64_t positions = 0;         ///< max_position_embeddings
  std::string activation;        ///< activation_function, by the word of model.activation
  bool scales_embedding = true;  ///< scale_embedding
  double dropout = 0;            ///< dropout
  double attention_dropout = 0;  ///< attention_dropout
  int32_t pad = 0;               ///< pad_token_id, with which translations start, too
  int32_t end = 0;               ///< eos_token_id
};

/// Reads a config.json with model_type = marian: norms behind the branches, one table for source, target and
/// output, decoders like encoders. Fault::data that names `name`, the file, and the first member that Heed
/// cannot read, with the legal value.
MarianConfig parse_marian_config(const Json& json, const std::string& name);

/// The settings of a Marian that differ from the preset translate. They contain those of beam search in
/// `generation`, the members of generation_config.json, or of config.json in older folders; `name` names it.
std::vector<std::pair<std::string, std::string>> marian_settings(const MarianConfig& config,
                                                                 const Json& generation,
                                                                 const std::string& name);

/// Converts the weights of a model.safetensors, in f32, bf16 or f16, to those of an EncoderDecoder. The
/// shared table may stand there under any of its names, or under several. Fault::data that names file and
/// tensor where one is missing, unknown, of another shape, or differs from the table that it should be.
std::string marian_weights(const TensorFiles& files, const MarianConfig& config);

/// A model as MarianMTModel.from_pretrained() reads it.
struct MarianFiles {
  Json config;          ///< config.json
  Json generation;      ///< generation_config.json
  std::string weights;  ///< model.safetensors, in f32
};

/// Writes a translator of Marian's shape. Fault::usage that names the first setting that Marian does not
/// have, with the legal value.
MarianFiles encode_marian(const ExportedModel& model);

}  // namespace heed
