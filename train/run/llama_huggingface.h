// LLaMA in the form of Hugging Face's Transformers, read and written: settings and weights.
#pragma once

#include <string>

#include "heed/core/io/json.h"
#include "heed/train/run/imported_model.h"
#include "heed/train/run/llama_shape.h"
#include "heed/train/run/tensor_files.h"

namespace heed {

/// Reads a config.json with model_type = llama: RMS norms, SwiGLU, rotary positions with any base, groups of
/// heads, no biases. Fault::data that names `name`, the file, and the first member that Heed cannot read:
/// scaled positions, say.
LlamaSizes parse_llama_config(const Json& json, const std::string& name);

/// Converts the weights of a model.safetensors, in f32, bf16 or f16, to those of a DecoderOnly whose position
/// is rope. Fault::data that names file and tensor where one is missing, unknown or of another shape.
std::string llama_weights(const TensorFiles& files, const LlamaSizes& sizes);

/// A model as LlamaForCausalLM.from_pretrained() reads it.
struct LlamaFiles {
  Json config;          ///< config.json
  std::string weights;  ///< model.safetensors, in f32
};

/// Writes a model of LLaMA's shape. Fault::usage that names the first setting that LLaMA does not have, with
/// the legal value.
LlamaFiles encode_llama_folder(const ExportedModel& model);

}  // namespace heed
