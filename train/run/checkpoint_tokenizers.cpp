// Finds tokenizers among the files of a checkpoint.
#include "heed/train/run/checkpoint_tokenizers.h"

namespace heed {

std::vector<NamedBytes> tokenizer_files(const Checkpoint& checkpoint) {
  std::vector<NamedBytes> out;
  for (const auto& [name, bytes] : checkpoint.files) {
    if (name.starts_with("tokenizer.")) out.push_back({name, bytes});
  }
  return out;
}

std::unique_ptr<Tokenizer> artifact_tokenizer(const std::vector<NamedBytes>& files, const std::string& role) {
  const std::string prefix = "tokenizer." + role + ".";
  for (const NamedBytes& file : files) {
    if (file.name.starts_with(prefix))
      return load_tokenizer(file.name.substr(prefix.size()), file.bytes, file.name);
  }
  return nullptr;
}

}  // namespace heed
