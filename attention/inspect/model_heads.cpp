// Finds the heads of a model by the calls of an editor, and heads by their names.
#include "heed/attention/inspect/model_heads.h"

#include <set>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/ascii.h"
#include "heed/core/settings_in_errors.h"

namespace heed {
namespace {

/// Lists every attention that has heads to edit. Edits nothing.
class HeadFinder final : public HeadEditor {
 public:
  Tensor edit_heads(const Module& module, const Tensor& heads, const AttentionInput&) override {
    if (std::find(modules.begin(), modules.end(), &module) == modules.end()) {
      modules.push_back(&module);
      counts.push_back(heads.extent(1));
    }
    return heads;
  }
  std::vector<const Module*> modules;  ///< in the order of the forward pass
  std::vector<int64_t> counts;         ///< number of heads of each
};

}  // namespace

std::vector<ModelHead> heads_of_model(Module& model, const ForwardPass& forward) {
  const NoGrad no_grad;
  HeadFinder finder;
  forward({.editor = &finder});
  if (finder.modules.empty())
    fail(
        "the attentions of this model have no heads that can be edited. The forward pass must give its "
        "context to every attention.");
  std::set<const Module*> modules;
  visit_modules(model, [&](const std::string&, Module& child) { modules.insert(&child); });
  const auto model_modules = std::make_shared<const std::set<const Module*>>(std::move(modules));
  std::vector<ModelHead> out;
  for (size_t i = 0; i < finder.modules.size(); ++i) {
    const std::string layer = name_of(model, finder.modules[i]);
    if (layer.empty())
      fail("the forward pass calls an attention of ", finder.counts[i],
           " heads that is not part of the model. List it in fields().");
    for (int64_t head = 0; head < finder.counts[i]; ++head)
      out.push_back({.name = text(layer, ".", head),
                     .layer = layer,
                     .module = finder.modules[i],
                     .head = head,
                     .model_modules = model_modules});
  }
  return out;
}

std::vector<ModelHead> named_heads(const std::vector<ModelHead>& all, const std::string& list) {
  std::vector<ModelHead> out;
  std::set<std::string> taken, layers;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string name(without_blanks(std::string_view(list).substr(begin, end - begin)));
    begin = end + 1;
    bool found = false;
    for (const ModelHead& head : all) {
      layers.insert(head.layer);
      if (head.name != name && head.layer != name) continue;
      found = true;
      if (taken.insert(head.name).second) out.push_back(head);
    }
    if (found) continue;
    const std::string known = picture::joined(layers, ", ", [&](const std::string& layer) {
      const auto count =
          std::count_if(all.begin(), all.end(), [&](const ModelHead& head) { return head.layer == layer; });
      return text(layer, ".0 to ", layer, ".", count - 1);
    });
    fail(advice("--heads", "named_heads"), ": there is no head '", name, "'. There are: ", known,
         "; a layer's name means all its heads.");
  }
  return out;
}

}  // namespace heed
