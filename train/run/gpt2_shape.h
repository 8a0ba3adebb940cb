// Language models of GPT-2's shape: sizes, settings, and the table of their tensors.
#pragma once

#include <list>
#include <string>
#include <utility>
#include <vector>

#include "heed/train/run/exported_model.h"
#include "heed/train/run/tensor_conversion.h"

namespace heed {

/// The sizes of a model. Comments name the fields of Transformers' GPT2Config.
struct Gpt2Config {
  int64_t vocabulary = 0;                         ///< vocab_size
  int64_t positions = 0;                          ///< n_positions: maximum number of tokens in the context
  int64_t width = 0;                              ///< n_embd
  int64_t layers = 0;                             ///< n_layer
  int64_t heads = 0;                              ///< n_head
  int64_t hidden = 0;                             ///< n_inner; 4 n_embd where it is null
  double norm_epsilon = 1e-5;                     ///< layer_norm_epsilon
  double dropout = 0;                             ///< resid_pdrop
  double attention_dropout = 0;                   ///< attn_pdrop
  Activation activation = Activation::gelu_tanh;  ///< gelu_tanh, which is "gelu_new"; or gelu
  bool has_biases = true;  ///< whether linear layers and norms have biases; nanoGPT may leave them out
};

/// How a format spells the tensors of gpt2_shape.cpp.
struct Gpt2Spelling {
  std::string prefix;     ///< before each name but lm_head.weight: "transformer." or nothing
  bool is_in_out = true;  ///< whether matrices are [in, out], as in Transformers; else [out, in]
};

/// The settings of a model that differ from the preset lm. `tied`: the output layer is the embedding.
std::vector<std::pair<std::string, std::string>> gpt2_settings(const Gpt2Config& config, bool tied);

/// Moves all tensors of a GPT-2 to those of a DecoderOnly with softmax attention and learned positions:
/// renames them, and splits the joint layer of query, key and value. Returns whether the output layer is the
/// embedding. The masks in old files are left out. Fault::data for more layers than tensors.
bool convert_gpt2(TensorConversion& conversion, const Gpt2Config& config, const Gpt2Spelling& spelling);

/// What a format asks of a model beyond GPT-2's shape.
struct Gpt2Demands {
  std::string name;                               ///< in errors: "a GPT-2"
  Activation activation = Activation::gelu_tanh;  ///< its activation
  bool is_strict = false;  ///< whether the format fixes d_ff = 4 d_model, norm_epsilon = 1e-5 and one table
  bool may_lack_biases = false;  ///< whether it can have no biases at all
};

/// The sizes of a model that is written. Fault::usage that names the first setting that the format does not
/// have, with the legal value.
Gpt2Config gpt2_sizes(const ExportedModel& model, const Gpt2Demands& demands);

/// All tensors of a model by their names there; lm_head.weight only where it is not the embedding.
std::list<std::pair<std::string, FloatTensor>> gpt2_tensors(const ExportedModel& model,
                                                            const Gpt2Config& sizes,
                                                            const Gpt2Spelling& spelling);

}  // namespace heed
