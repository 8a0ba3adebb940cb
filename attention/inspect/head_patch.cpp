// Replaces outputs of heads by recorded ones.
#include "heed/attention/inspect/head_patch.h"

#include "heed/attention/base/head_edits.h"

namespace heed {

HeadPatch::HeadPatch(const MapRecorder& recorded) {
  for (const MapRecorder::HeadCall& call : recorded.calls) outputs_[call.module].push_back(call.output);
  if (outputs_.empty())
    fail(
        "HeadPatch: the recorder kept no outputs of heads. Set its keep_heads before the forward pass, and "
        "call attentions that have heads without a cache.");
}

void HeadPatch::replace(const std::vector<ModelHead>& heads) {
  std::map<const Module*, std::vector<int64_t>> replaced;
  for (const ModelHead& head : heads) {
    const auto found = outputs_.find(head.module);
    if (found == outputs_.end())
      fail("HeadPatch: the attention of head '", head.name,
           "' was not recorded. Take heads of heads_of_model() of the recorded model.");
    if (found->second.size() > 1)
      fail("HeadPatch: the attention of head '", head.name, "' was recorded in ", found->second.size(),
           " calls. Record one forward pass that calls it once.");
    if (const int64_t count = found->second[0].extent(1); head.head < 0 || head.head >= count)
      fail("HeadPatch: there is no head ", head.head, "; heads of this attention are 0 to ", count - 1, ".");
    replaced[head.module].push_back(head.head);
  }
  replaced_ = std::move(replaced);
}

Tensor HeadPatch::edit_heads(const Module& module, const Tensor& heads, const AttentionInput&) {
  const auto found = replaced_.find(&module);
  if (found == replaced_.end()) return heads;
  const Tensor& recorded = outputs_.at(&module)[0];
  if (recorded.shape() != heads.shape())
    fail("HeadPatch: the heads of an attention give ", heads.shape(), ", and ", recorded.shape(),
         " was recorded. Run both passes on inputs of one shape.");
  return with_heads_replaced(heads, recorded, found->second);
}

}  // namespace heed
