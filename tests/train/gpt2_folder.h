// A GPT-2 in the form of Hugging Face's Transformers, written from a model of ours.
#pragma once

#include "heed/core/io/json.h"
#include "heed/nn/transformer.h"

namespace heed {

/// Settings of a small GPT-2: 2 blocks of width 16, 2 heads, 24 positions.
TransformerConfig small_gpt2(Tie tie = Tie::output);

/// config.json of that model.
Json gpt2_json(int64_t vocabulary);

/// The bytes of model.safetensors: c_attn holds query, key and value; matrices are [in, out]. `prefix`:
/// before each name but that of the head. An untied model has lm_head.weight; `twice`: a tied one, too.
std::string gpt2_file(DecoderOnly& model, const std::string& prefix = "", bool twice = false);

/// Writes config.json, model.safetensors, vocab.json and merges.txt of a model with random weights, whose
/// byte pairs are learned from verse; returns it.
DecoderOnly write_gpt2_folder(const Path& folder);

}  // namespace heed
