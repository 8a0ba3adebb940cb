// GPT-2 models in the checkpoints of the program nanoGPT: https://github.com/karpathy/nanoGPT, train.py.
#pragma once

#include <string>
#include <string_view>

#include "heed/core/error.h"
#include "heed/train/run/exported_model.h"
#include "heed/train/run/imported_model.h"

namespace heed {

/// Reads the members `model` and `model_args` of a ckpt.pt; names of tensors may begin with "_orig_mod.", as
/// of a compiled model. The state of the optimizer is skipped. `path` names the file in errors; a meta.pkl
/// beside it, as nanoGPT makes it for texts of characters, gives the tokenizer. Fault::data that names the
/// file and the place for everything else. Nothing of the file is run.
ImportedModel read_nanogpt(std::string_view bytes, const Path& path);

/// The bytes of a ckpt.pt with `model` and `model_args`, in f32. Fault::usage that names the first setting
/// that nanoGPT does not have, with the legal value.
std::string encode_nanogpt(const ExportedModel& model);

}  // namespace heed
