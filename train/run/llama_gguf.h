// Language models of LLaMA's shape in GGUF files, read and written: settings, weights and tokenizer.
#pragma once

#include <string>

#include "heed/core/io/gguf.h"
#include "heed/train/run/exported_model.h"
#include "heed/train/run/imported_model.h"

namespace heed {

/// Converts a file with general.architecture = llama: RMS norms, gated feed-forward networks (SwiGLU), rotary
/// positions by neighbouring pairs (as files hold the rows of queries and keys), groups of heads, and byte
/// pairs whose tokenizer.ggml.pre is gpt-2 or smollm. Weights become f32. Fault::data that names the file and
/// the key, tensor or token for anything else.
ImportedModel llama_model(const GgufFile& file);

/// The bytes of a GGUF file with the model, its weights in f32, which llama_model() and llama.cpp read. Rows
/// of queries and keys are moved where `position` is rope. Fault::usage that names the first setting that
/// GGUF's llama does not have, with the legal value.
std::string encode_llama(const ExportedModel& model);

}  // namespace heed
