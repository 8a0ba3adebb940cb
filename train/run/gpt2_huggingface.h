// GPT-2 in the form of Hugging Face's Transformers, read and written: settings and weights.
#pragma once

#include <string>

#include "heed/core/io/json.h"
#include "heed/train/run/gpt2_shape.h"

namespace heed {

/// Reads a config.json. Fault::data that names `name`, the file, and the key where a member is missing or of
/// another type, or where Heed lacks such a model: another model_type or activation, or another scale of
/// scores.
Gpt2Config parse_gpt2_config(const Json& json, const std::string& name);

/// A converted model.safetensors, which load_bytes() reads.
struct Gpt2Weights {
  std::string bytes;  ///< bytes of the file
  bool tied = true;   ///< whether the output layer is the embedding; else the file has both
};

/// Converts weights to those of a DecoderOnly with softmax attention, learned positions and all
/// biases: renames them, transposes matrices [in, out], and splits the joint layer of query, key and value.
/// Names may begin with "transformer."; the masks in old files are left out. Fault::data that names file and
/// tensor where one is missing, unknown, of another shape, or neither f32, bf16 nor f16.
Gpt2Weights gpt2_weights(const TensorFiles& files, const Gpt2Config& config);

/// A model as GPT2LMHeadModel.from_pretrained() reads it.
struct Gpt2Files {
  Json config;          ///< config.json
  std::string weights;  ///< model.safetensors, in f32
};

/// Writes a model of GPT-2's shape. Fault::usage that names the first setting that GPT-2 does not have, with
/// the legal value.
Gpt2Files encode_gpt2(const ExportedModel& model);

}  // namespace heed
