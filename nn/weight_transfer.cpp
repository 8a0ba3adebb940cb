// Copies weights between models whose attentions differ.
#include "heed/nn/weight_transfer.h"

#include <algorithm>
#include <set>

#include "heed/core/io/safetensors.h"
#include "heed/nn/attention.h"

namespace heed {

WeightTransfer transfer_weights(Module& model, const SafeTensors& file) {
  std::vector<std::string> attention_prefixes;
  visit_modules(model, [&](const std::string& path, Module& child) {
    if (dynamic_cast<Attention*>(&child) != nullptr) attention_prefixes.push_back(path + ".");
  });
  const auto is_of_attention = [&](const std::string& tensor) {
    return std::any_of(attention_prefixes.begin(), attention_prefixes.end(),
                       [&](const std::string& prefix) { return tensor.starts_with(prefix); });
  };
  WeightTransfer transfer;
  std::vector<std::string> conflicts;
  std::set<std::string> model_names;
  const std::vector<Named> all = tensors(model);
  for (const Named& named : all) {
    model_names.insert(named.name);
    const TensorEntry* entry = file.find(named.name);
    if (entry != nullptr && detail::has_type_and_shape_of(*entry, *named.tensor)) {
      transfer.copied.push_back(named.name);
    } else if (entry != nullptr) {
      conflicts.push_back(text(named.name, " is ", detail::type_and_shape(*entry), " there and ",
                               named.tensor->dtype(), " ", named.tensor->shape(), " here"));
    } else if (is_of_attention(named.name)) {
      transfer.initialised.push_back(named.name);
    } else {
      conflicts.push_back(text(named.name, " ", named.tensor->shape(), " is missing there"));
    }
  }
  for (const TensorEntry& entry : file.entries()) {
    if (model_names.contains(entry.name)) continue;
    if (is_of_attention(entry.name))
      transfer.unused.push_back(entry.name);
    else
      conflicts.push_back(text(entry.name, " ", detail::type_and_shape(entry), " is missing here"));
  }
  if (!conflicts.empty()) {
    constexpr size_t max_listed = 6;
    std::string list;
    for (size_t i = 0; i < std::min(max_listed, conflicts.size()); ++i)
      list += (i > 0 ? "; " : "") + conflicts[i];
    if (conflicts.size() > max_listed) list += text("; and ", conflicts.size() - max_listed, " more");
    fail(file.name(), ": the weights do not fit this model: ", list,
         ".\nOnly attentions may differ. Keep the sizes ",
         "that the weights were trained with, and take an attention whose projections have their shapes.");
  }
  for (const std::string& copied : transfer.copied) file.check_finite(file.at(copied));
  for (const Named& named : all) {
    if (const TensorEntry* entry = file.find(named.name)) detail::overwrite(*named.tensor, file, *entry);
  }
  return transfer;
}

}  // namespace heed
