// The attention heads of any model, found in a forward pass, and their names.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "heed/nn/attention.h"

namespace heed {

/// A head of a model: an attention and the number of the head in it.
struct ModelHead {
  std::string name{};              ///< "blocks.0.attention.3": the attention's name, and the head
  std::string layer{};             ///< "blocks.0.attention"
  const Module* module = nullptr;  ///< the attention
  int64_t head = 0;                ///< number of the head, from 0
  /// All modules of the model that has the head, for HeadAblation to know it by; null: unknown.
  std::shared_ptr<const std::set<const Module*>> model_modules{};
};

/// A forward pass of a model over an input of the caller's choice, which gives the context to every module.
using ForwardPass = std::function<void(const ForwardContext& context)>;

/// The heads of the attentions that a forward pass calls, in its order. Fails when none can be edited, and
/// for an attention that `model` does not list in fields().
std::vector<ModelHead> heads_of_model(Module& model, const ForwardPass& forward);

/// The heads in a list such as "blocks.0.attention.3,blocks.1.attention" of heads and layers; a layer stands
/// for all of its heads. A usage error that lists the heads of the model where a name is none of them.
std::vector<ModelHead> named_heads(const std::vector<ModelHead>& all, const std::string& list);

}  // namespace heed
