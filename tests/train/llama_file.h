// A LLaMA as a GGUF file, written from a model of ours.
#pragma once

#include "heed/nn/transformer.h"
#include "heed/tests/core/io/gguf_bytes.h"

namespace heed {

/// Settings of a small LLaMA: 2 blocks of width 16, 4 heads over 2 of keys, 24 positions.
TransformerConfig small_llama(Tie tie = Tie::output);

/// Tokens of its tokenizer: <|endoftext|>, the bytes of small letters, blank and line end, and two merges.
std::vector<std::string> llama_tokens();

/// Metadata of that model and its tokenizer.
GgufBytes llama_metadata();

/// Adds its tensors in f32.
void add_llama_tensors(GgufBytes& file, DecoderOnly& model);

/// The bytes of a file with random weights.
std::string llama_file(Tie tie = Tie::output);

}  // namespace heed
