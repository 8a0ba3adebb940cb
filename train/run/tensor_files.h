// The tensors of a model in one safetensors file or in several.
#pragma once

#include <string>
#include <vector>

#include "heed/core/io/safetensors.h"

namespace heed {

/// The name of the weights in a folder of Hugging Face's Transformers.
inline constexpr const char* weights_file = "model.safetensors";
/// The name of the list of files there, where several hold the weights.
inline constexpr const char* weights_index_file = "model.safetensors.index.json";

/// The tensors of a model in the files of Hugging Face's Transformers.
struct TensorFiles {
  TensorFiles() = default;  ///< no file
  /// All tensors in one file. Not explicit: a file is a model's tensors, too.
  TensorFiles(SafeTensors file);
  /// Opens FOLDER/model.safetensors or, where that is missing, the files in which
  /// FOLDER/model.safetensors.index.json says the tensors are. Fault::data where the index is damaged or does
  /// not agree with the files, Fault::file where one is missing.
  static TensorFiles open(const Path& folder);

  std::string name = {};                ///< name of the file or of the index, for errors
  std::vector<SafeTensors> files = {};  ///< all files; numbers of those that open() opens are on the disk
};

}  // namespace heed
