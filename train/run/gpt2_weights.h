// A trained GPT-2 in the form of Hugging Face's Transformers, as settings and weights of a DecoderOnly.
#pragma once

#include <string>

#include "heed/core/io/json.h"
#include "heed/core/io/safetensors.h"

namespace heed {

/// What the config.json of a GPT-2 says of the model: the fields of Transformers' GPT2Config.
struct Gpt2Config {
  int64_t vocabulary = 0;        ///< vocab_size
  int64_t positions = 0;         ///< n_positions: tokens that it reads at most
  int64_t width = 0;             ///< n_embd
  int64_t layers = 0;            ///< n_layer
  int64_t heads = 0;             ///< n_head
  int64_t hidden = 0;            ///< n_inner; 4 n_embd where that is null
  double norm_epsilon = 1e-5;    ///< layer_norm_epsilon
  double dropout = 0;            ///< resid_pdrop
  double attention_dropout = 0;  ///< attn_pdrop
};

/// Reads it. Fault::data naming `name` and the key where one is missing or of another type, and where the
/// model is none that Heed has: another model_type or activation, or scores that are scaled otherwise.
Gpt2Config parse_gpt2_config(const Json& json, const std::string& name);

/// A model.safetensors that load_bytes() takes.
struct Gpt2Weights {
  std::string bytes;  ///< the file
  bool tied = true;   ///< the embedding is the output layer; else the file has an output layer of its own
};

/// The weights of `file` under the names that they have in a DecoderOnly with softmax attention, learned
/// positions and all biases: matrices [in, out] are transposed, query, key and value are cut apart. Names may
/// begin with "transformer."; masks that old files keep are left out. Fault::data naming file and tensor
/// where one is missing, unknown, of another shape, or neither f32 nor bf16.
Gpt2Weights gpt2_weights(const SafeTensors& file, const Gpt2Config& config);

}  // namespace heed
