// Language models of LLaMA's shape: sizes, settings, and the names of their tensors in every format.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/train/run/exported_model.h"

namespace heed {

/// The sizes of a model. Comments name the keys of GGUF, behind "llama.", and of a config.json.
struct LlamaSizes {
  int64_t vocabulary = 0;   ///< rows of the table of embeddings; vocab_size
  int64_t width = 0;        ///< embedding_length; hidden_size
  int64_t layers = 0;       ///< block_count; num_hidden_layers
  int64_t hidden = 0;       ///< feed_forward_length; intermediate_size
  int64_t heads = 0;        ///< attention.head_count; num_attention_heads
  int64_t kv_heads = 0;     ///< attention.head_count_kv; num_key_value_heads
  int64_t head_width = 0;   ///< attention.key_length; head_dim; width / heads where it is missing
  int64_t max_length = 0;   ///< context_length; max_position_embeddings
  double norm_epsilon = 0;  ///< attention.layer_norm_rms_epsilon; rms_norm_eps
  double rope_base = 0;     ///< rope.freq_base; rope_theta
  bool tied = true;         ///< whether the output layer is the table of embeddings; tie_word_embeddings
};

/// A tensor by its names in three formats, with its shape.
struct LlamaTensor {
  std::string gguf;            ///< its name in a GGUF file
  std::string huggingface;     ///< its name in a folder of Hugging Face's Transformers
  std::string heed;            ///< its name in a DecoderOnly
  std::vector<int64_t> shape;  ///< extents, the same in all
};

/// All tensors of a model.
std::vector<LlamaTensor> llama_tensors(const LlamaSizes& sizes);

/// The settings of a model that differ from the preset lm. `position`: rope, or rope_interleaved.
std::vector<std::pair<std::string, std::string>> llama_settings(const LlamaSizes& sizes,
                                                                PositionKind position);

/// The sizes of a model that is written. `format`: "a GGUF file". Fault::usage that names the first setting
/// that LLaMA does not have, with the legal value.
LlamaSizes llama_sizes(const ExportedModel& model, const std::string& format);

/// The numbers of a tensor of the model. Rows of queries and keys are moved so that `position` rotates the
/// same numbers together as the model's own position does.
std::vector<float> llama_numbers(const ExportedModel& model, const LlamaTensor& tensor,
                                 const LlamaSizes& sizes, PositionKind position);

}  // namespace heed
