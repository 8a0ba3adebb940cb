// Replaces the outputs of heads whose maps are edited; the outputs of other heads keep their bits.
#include "heed/attention/base/head_edits.h"

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

constexpr const char* advice_on_outputs = " Edit the outputs of its heads instead (edit_heads()).";

/// Fails where the map times the values differs from the output `y`: then editing the map is meaningless.
void check_product(const Tensor& product, const Tensor& y) {
  const std::vector<double> of_map = contiguous(product.detach()).to_doubles(),
                            outputs = contiguous(y.detach()).to_doubles();
  double max_difference = 0, max_output = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    max_difference = std::max(max_difference, std::abs(of_map[i] - outputs[i]));
    max_output = std::max(max_output, std::abs(outputs[i]));
  }
  if (!(max_difference <= 1e-2 * max_output + 1e-5))
    fail("editing a map: this attention's map times its values is not its output; they differ by ",
         max_difference, ".", advice_on_outputs);
}

}  // namespace

Tensor with_heads_replaced(const Tensor& original, const Tensor& replacement,
                           const std::vector<int64_t>& chosen) {
  std::vector<Tensor> heads;
  for (int64_t head = 0; head < original.extent(1); ++head) {
    const bool is_chosen = std::find(chosen.begin(), chosen.end(), head) != chosen.end();
    heads.push_back(slice(is_chosen ? replacement : original, 1, head, head + 1));
  }
  return concat(heads, 1);
}

Tensor edited_heads(const Module& attention, const AttentionInput& input,
                    const std::function<Tensor(const AttentionInput&)>& attend,
                    const std::function<Tensor(const Tensor& map)>& product) {
  HeadEditor& editor = *input.context.editor;
  const std::vector<int64_t> chosen = editor.mapped_heads(attention);
  if (chosen.empty()) return editor.edit_heads(attention, attend(input), input);
  MapRecorder recorder;
  AttentionInput recorded_call = input;
  recorded_call.context.recorder = &recorder;
  Tensor y = attend(recorded_call);
  if (recorder.maps.size() != 1)
    fail("editing a map: this attention has ", recorder.maps.size(), " maps, and one is needed.",
         advice_on_outputs);
  const Tensor map = recorder.maps[0].weights;
  for (const int64_t head : chosen) {
    if (head < 0 || head >= map.extent(1))
      fail("editing a map: there is no head ", head, "; heads are 0 to ", map.extent(1) - 1, ".");
  }
  if (!input.context.training()) check_product(product(map), y);  // with dropout the products differ
  const Tensor edited = editor.edit_map(attention, map, input);
  if (edited.shape() != map.shape())
    fail("editing a map: it is ", map.shape(), ", and edit_map() gave ", edited.shape(), ".");
  const Tensor used = with_heads_replaced(map, edited.detach(), chosen);
  y = with_heads_replaced(y, product(used), chosen);
  if (input.context.recorder != nullptr) input.context.recorder->record(attention, used);
  return editor.edit_heads(attention, y, input);
}

}  // namespace heed
