// The tokenizers that a checkpoint holds beside its weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/data/tokenizers/tokenizer.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// The files of a checkpoint's tokenizers, as Task::load() takes them: tokenizer.ROLE.KIND.
std::vector<NamedBytes> tokenizer_files(const Checkpoint& checkpoint);

/// The tokenizer in the file tokenizer.ROLE.KIND; null when there is none for this role.
std::unique_ptr<Tokenizer> artifact_tokenizer(const std::vector<NamedBytes>& files, const std::string& role);

}  // namespace heed
