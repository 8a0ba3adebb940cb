// GPT-2 models of minGPT in JSON, as the program llm-viz keeps them: https://github.com/bbycroft/llm-viz.
#pragma once

#include <string>
#include <string_view>

#include "heed/train/run/imported_model.h"

namespace heed {

/// Reads an object with the member `config` (n_layer, n_head, n_embd, vocab_size, block_size) and an object
/// for each tensor of a minGPT: `shape`, `dtype` "torch.float32" and `data`, base64 of little-endian f32. The
/// file has no tokenizer. Fault::data that names `name` and the member for everything else.
ImportedModel read_mingpt(std::string_view bytes, const std::string& name);

}  // namespace heed
