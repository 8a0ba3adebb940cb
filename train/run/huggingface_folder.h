// Folders of Hugging Face's Transformers: a model with its settings and its tokenizer.
#pragma once

#include <vector>

#include "heed/core/error.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/exported_model.h"
#include "heed/train/run/imported_model.h"

namespace heed {

/// Reads config.json, whose model_type is gpt2, llama, bert or marian, model.safetensors, and the tokenizer:
/// of tokenizer.json or, where that is missing or the model is a GPT-2 that has both, of vocab.json and
/// merges.txt; a BERT's of tokenizer.json or vocab.txt, a Marian's of source.spm, target.spm and vocab.json.
/// Fault::file that names the files that are missing, Fault::data for what does not fit.
ImportedModel read_huggingface_folder(const Path& folder);

/// The files of a translator as a Marian, of a masked language model as a BERT, of a language model with
/// rotary positions as a LLaMA, of any other as a GPT-2: config.json, model.safetensors,
/// tokenizer_config.json, and tokenizer.json or the files that read_huggingface_folder() reads; vocab.json
/// and merges.txt too where words end as in GPT-2. With attention_code a GPT-2 or LLaMA has modeling_heed.py.
/// Fault::usage that names the first setting that the other side does not have.
std::vector<NamedBytes> huggingface_files(const ExportedModel& model);

}  // namespace heed
