// A model of this program, ready to be written in the format of another.
#pragma once

#include <optional>
#include <string>

#include "heed/core/io/json.h"
#include "heed/core/io/safetensors.h"
#include "heed/data/tokenizers/tokenizer.h"
#include "heed/nn/transformer.h"

namespace heed {

/// What a translator has besides the parts of a language model.
struct ExportedTranslator {
  std::string encoder_attention;  ///< spec of the encoder's self-attention
  std::string cross_attention;    ///< spec of the attention from decoder to encoder
  const Tokenizer& target;        ///< tokenizer of translations
  int64_t beam_size;              ///< number of hypotheses with which it decodes
  double length_penalty;          ///< exponent of their length
  bool is_renormalized = false;   ///< whether tokens that are never written have no share of the probability
};

/// A trained DecoderOnly, MaskedLanguageModel or EncoderDecoder, with its tokenizer.
struct ExportedModel {
  std::string name;            ///< its name in files that have one
  TransformerConfig config;    ///< its settings
  std::string attention;       ///< spec of the decoder's self-attention, or of an encoder's
  const SafeTensors& weights;  ///< weights of the model, in f32
  const Tokenizer& tokenizer;  ///< tokenizer of its texts; a translator's of its source
  std::optional<ExportedTranslator> translator = {};  ///< none for a language model
  bool is_masked = false;                             ///< whether it is a MaskedLanguageModel
  /// What modeling_heed.py needs of the attention, for a folder with this file; null: softmax alone is
  /// written. See polynomial_settings().
  Json attention_code = {};
};

/// Fails unless `holds`, as Fault::usage: "export: MODEL needs SETTING". `model`: "a GPT-2"; `setting`: the
/// setting with its legal value.
void demand_setting(bool holds, const std::string& model, const std::string& setting);

/// Demands the tokenizer that single files with a tokenizer have: byte pairs.
void demand_byte_pairs(const ExportedModel& exported, const std::string& model);

/// Demands a tokenizer that a tokenizer.json can say: byte pairs, or one that was read from such a file.
void demand_folder_tokenizer(const ExportedModel& exported, const std::string& model);

/// Demands that a model has none of the parts that Heed alone has, and a feed-forward network.
void demand_common_parts(const TransformerConfig& config, const std::string& model);

/// Demands what GPT-2 and LLaMA share: softmax attention, norms before branches, logits without a bias and a
/// scale, and none of the parts that Heed alone has.
void demand_shared_shape(const ExportedModel& exported, const std::string& model);

/// Sets bos_token_id and eos_token_id of a config.json: the start and the end of texts. A tokenizer without a
/// start has its end there, one without an end null.
void set_token_ids(Json& config, const Tokenizer& tokenizer);

/// The numbers of a tensor. Fault::data unless it is f32 and of this shape.
std::vector<float> exported_numbers(const ExportedModel& model, const std::string& tensor,
                                    const std::vector<int64_t>& shape);

}  // namespace heed
