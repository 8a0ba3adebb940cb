// GPT-2 models in the checkpoints of the program llm.c: https://github.com/karpathy/llm.c, train_gpt2.py.
#pragma once

#include <string>
#include <string_view>

#include "heed/train/run/exported_model.h"
#include "heed/train/run/imported_model.h"

namespace heed {

/// The first integer of an llm.c checkpoint of a GPT-2.
inline constexpr int32_t llm_c_magic = 20240326;

/// Reads version 3 (f32) or 5 (bf16): a header of 256 integers, then the tensors of a GPT-2 in a fixed order,
/// each for all layers. Rows that pad the table of embeddings are left out. The file has no tokenizer.
/// Fault::data that names `name` and the byte for everything else.
ImportedModel read_llm_c(std::string_view bytes, const std::string& name);

/// The bytes of a checkpoint of version 3, the table of embeddings padded with zeros to a multiple of 128
/// rows. Fault::usage that names the first setting that llm.c's GPT-2 does not have, with the legal value.
std::string encode_llm_c(const ExportedModel& model);

}  // namespace heed
