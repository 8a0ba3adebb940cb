// Factors and attribution from what a recorder kept.
#include "heed/attention/inspect/head_calls.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/base/grouped_query.h"
#include "heed/autograd/ops.h"

namespace heed {
namespace {

/// The first sequence of x [B, Hk, T, d], with key-value heads repeated: [1, heads, T, d].
Tensor first_sequence(const Tensor& x, int64_t heads) {
  return contiguous(repeat_heads(contiguous(view::slice(x, 0, 0, 1)), heads));
}

/// The first `rows` rows and `columns` columns of each head of x [1, H, T, d].
std::vector<float> cut_to(const Tensor& x, int64_t rows, int64_t columns) {
  return contiguous(view::slice(view::slice(x, 2, 0, rows), 3, 0, columns)).to_host();
}

double max_absolute(const Tensor& x) {
  double maximum = 0;
  for (const float value : x.to_host()) maximum = std::max(maximum, std::abs(static_cast<double>(value)));
  return maximum;
}

}  // namespace

MapRecorder recorder_for(const MapParts& parts) {
  MapRecorder recorder;
  recorder.keep_heads = parts.factors || parts.attribution;
  return recorder;
}

void turn_gradients_off(std::optional<NoGrad>& no_grad, const MapParts& parts) {
  if (!parts.attribution) no_grad.emplace();
}

std::vector<int32_t> likeliest(const Tensor& logits) {
  const std::vector<float> scores = logits.detach().to_host();
  const int64_t classes = logits.extent(-1);
  std::vector<int32_t> out;
  for (auto row = scores.begin(); row < scores.end(); row += classes)
    out.push_back(static_cast<int32_t>(std::max_element(row, row + classes) - row));
  return out;
}

void explain_choice(const Tensor& logits, const MapParts& parts, std::vector<int32_t> chosen) {
  if (!parts.attribution) return;
  if (chosen.empty()) chosen = likeliest(logits);
  const auto count = static_cast<int64_t>(chosen.size());
  const Tensor targets = Tensor::of<int32_t>(chosen, Shape{count}).to(logits.device());
  backward(cross_entropy(logits, targets) * -static_cast<double>(count));
}

const MapRecorder::HeadCall* head_call(const MapRecorder& recorder, size_t index) {
  const Module* module = recorder.maps.at(index).module;
  const auto is_of_module = [module](const auto& recorded) { return recorded.module == module; };
  const auto num_maps = std::count_if(recorder.maps.begin(), recorder.maps.end(), is_of_module);
  if (num_maps != std::count_if(recorder.calls.begin(), recorder.calls.end(), is_of_module)) return nullptr;
  auto num_earlier_maps =
      std::count_if(recorder.maps.begin(), recorder.maps.begin() + static_cast<int64_t>(index), is_of_module);
  for (const MapRecorder::HeadCall& call : recorder.calls)
    if (call.module == module && num_earlier_maps-- == 0) return &call;
  return nullptr;
}

void add_factors(MapView& view, const MapRecorder::HeadCall& call) {
  if (!call.query_factors || call.query_factors.extent(1) != view.heads ||
      view.heads % call.key_factors.extent(1) != 0 || call.query_factors.extent(2) < view.queries ||
      call.key_factors.extent(2) < view.keys)
    return;
  const NoGrad no_grad;
  view.factor_width = call.query_factors.extent(3);
  view.factor_scale = call.scale;
  view.query_factors =
      cut_to(first_sequence(call.query_factors, view.heads), view.queries, view.factor_width);
  view.key_factors = cut_to(first_sequence(call.key_factors, view.heads), view.keys, view.factor_width);
}

void add_attribution(MapView& view, const MapRecorder::Map& map, const MapRecorder::HeadCall& call) {
  const Tensor grad = call.output_grad ? grad_of(call.output_grad) : Tensor();
  const Shape& shape = map.weights.shape();
  if (!grad || call.output.extent(1) != shape[1] || call.output.extent(2) != shape[2] ||
      call.values.extent(2) != shape[3] || call.values.extent(3) != call.output.extent(3) ||
      shape[1] % call.values.extent(1) != 0)
    return;
  const NoGrad no_grad;
  const Tensor weights = first_sequence(map.weights, shape[1]),
               values = first_sequence(call.values, shape[1]), output = first_sequence(call.output, shape[1]);
  const double max_error = max_absolute(matmul(weights, values) - output);
  if (!(max_error <= 1e-3 * max_absolute(output))) return;
  const Tensor weight_grads = matmul(first_sequence(grad, shape[1]), transpose(values, 2, 3));
  view.attribution = cut_to(weights * weight_grads, view.queries, view.keys);
}

void add_head_parts(MapView& view, const MapRecorder& recorder, size_t index) {
  const MapRecorder::HeadCall* call = head_call(recorder, index);
  if (call == nullptr) return;
  add_factors(view, *call);
  add_attribution(view, recorder.maps[index], *call);
}

}  // namespace heed
