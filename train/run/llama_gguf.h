// Reads a language model of LLaMA's shape from a GGUF file: its settings, weights and tokenizer.
#pragma once

#include "heed/core/io/gguf.h"
#include "heed/train/run/imported_model.h"

namespace heed {

/// Converts a file with general.architecture = llama: RMS norms, gated feed-forward networks (SwiGLU), rotary
/// positions by neighbouring pairs (as files hold the rows of queries and keys), groups of heads, and byte
/// pairs whose tokenizer.ggml.pre is gpt-2 or smollm. Weights become f32. Fault::data that names the file and
/// the key, tensor or token for anything else.
ImportedModel llama_model(const GgufFile& file);

}  // namespace heed
