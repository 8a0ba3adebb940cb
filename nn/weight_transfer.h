// Weights of one model put into another whose attentions differ.
#pragma once

#include <string>
#include <vector>

#include "heed/nn/module.h"

namespace heed {

/// What a transfer of weights did with each tensor.
struct WeightTransfer {
  std::vector<std::string> copied;       ///< tensors of both, whose numbers the model now has
  std::vector<std::string> initialised;  ///< of an attention of the model; the file lacks them
  std::vector<std::string> unused;       ///< of an attention of the file; the model lacks them
};

/// Copies the tensors of a model.safetensors (`bytes`) into `model` where names, shapes and types agree. A
/// tensor of an attention that only one side has is left as it is. Fails (Fault::usage) where shapes or types
/// differ, and where a tensor outside of attentions is missing on either side: the error names them. Fails
/// (Fault::numeric) where a number to copy is NaN or infinite. Nothing is changed then. `name`: the file's
/// name in the error.
WeightTransfer transfer_weights(Module& model, const std::string& bytes, const std::string& name);

}  // namespace heed
