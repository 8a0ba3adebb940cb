// The tokenizer files of a Marian's folder: source.spm, target.spm, vocab.json, tokenizer_config.json.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/exported_model.h"
#include "heed/train/run/marian_huggingface.h"

namespace heed {

/// The tokenizers of source and target: pieces by source.spm and target.spm, ids by vocab.json. Fault::data
/// that names the file for what Heed cannot read: two vocabularies, or special tokens whose ids are not those
/// of `config`.
std::pair<std::unique_ptr<Tokenizer>, std::unique_ptr<Tokenizer>> read_marian_tokenizers(
    const Path& folder, const MarianConfig& config);

/// The four files of a model whose tokenizers are of the kind `marian`. Fault::usage where these have two
/// vocabularies.
std::vector<NamedBytes> marian_tokenizer_files(const ExportedModel& model);

/// Names of the files that read_marian_tokenizers() needs.
inline constexpr const char* marian_tokenizer_names[] = {"source.spm", "target.spm", "vocab.json"};

}  // namespace heed
