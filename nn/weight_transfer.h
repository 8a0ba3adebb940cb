// Copies the weights of one model into another, whose attention layers may differ.
#pragma once

#include <string>
#include <vector>

#include "heed/nn/module.h"

namespace heed {

/// The names of the tensors that a transfer of weights copied and left out.
struct WeightTransfer {
  std::vector<std::string> copied;       ///< tensors copied from the file to the model
  std::vector<std::string> initialised;  ///< tensors of the model's attentions that the file lacks
  std::vector<std::string> unused;       ///< tensors of the file's attentions that the model lacks
};

/// Copies the tensors of a model.safetensors into `model` where names, shapes and types agree. A
/// tensor of an attention that only one side has is left as it is. Fails (Fault::usage) where shapes or types
/// differ, and where a tensor outside of attentions is missing on either side: the error names them. Fails
/// (Fault::numeric) where a number to copy is NaN or infinite. Nothing is changed then.
WeightTransfer transfer_weights(Module& model, const SafeTensors& file);

}  // namespace heed
