// Edits maps or outputs of heads, and averages outputs.
#include "heed/attention/inspect/head_replacement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "heed/attention/spec.h"
#include "heed/core/constant_table.h"
#include "heed/core/io/number_text.h"
#include "heed/core/settings_in_errors.h"
#include "heed/nn/set_option.h"

namespace heed {
namespace {

/// Names of replacements, in the order of HeadReplacement::Kind.
constexpr std::array<std::string_view, 5> replacement_names{"zero", "mean", "uniform", "identity", "band"};

constexpr int64_t max_band = 999'999;  // limit of band:w

/// A tensor of these values, in the dtype and on the device of another tensor.
Tensor tensor_like(const Tensor& other, std::span<const float> values, const Shape& shape) {
  return constant_table<float>(values, shape, other.device(), other.dtype());
}

/// The keys that each query sees, and its own position among them; on the host.
class VisibleKeys {
 public:
  VisibleKeys(const Tensor& map, const AttentionInput& input)
      : queries_(map.extent(2)), keys_(map.extent(3)) {
    // A causal mask is that of self-attention, whose queries are the last positions of the keys. In
    // cross-attention with a cache, earlier calls had earlier queries; the cache counts those of this call
    // too.
    if (input.mask.is_causal())
      first_position_ = keys_ - queries_;
    else if (input.cache != nullptr)
      first_position_ = input.cache->queries - queries_;
    const Tensor mask = input.mask.dense(map, keys_ - queries_);
    if (!mask) return;
    mask_shape_ = mask.shape();
    mask_ = contiguous(mask).to_doubles();
  }
  /// The position of a query among the keys.
  int64_t position(int64_t query) const { return first_position_ + query; }
  /// Whether a query of batch row `row` sees a key.
  bool sees(int64_t row, int64_t head, int64_t query, int64_t key) const {
    if (mask_.empty()) return true;
    const auto broadcast = [&](int64_t axis, int64_t index) { return mask_shape_[axis] == 1 ? 0 : index; };
    int64_t offset = broadcast(0, row);
    offset = offset * mask_shape_[1] + broadcast(1, head);
    offset = offset * mask_shape_[2] + broadcast(2, query);
    offset = offset * mask_shape_[3] + broadcast(3, key);
    return mask_[static_cast<size_t>(offset)] > -std::numeric_limits<double>::infinity();
  }

 private:
  int64_t queries_, keys_;
  int64_t first_position_ = 0;  // position of query 0 among the keys
  Shape mask_shape_;
  std::vector<double> mask_;  // additive bias of mask_shape_; empty: all keys are visible
};

/// The row of a map: the weights of one query of one head.
struct MapRow {
  std::span<float> weights;
  int64_t batch_row, head, query;
};

/// Sets equal weights of this sum on the visible keys for which `is_wanted` holds, and zeros on all others.
template <class IsWanted>
void set_equal_weights(const MapRow& row, const VisibleKeys& keys, double sum, const IsWanted& is_wanted) {
  const auto has_weight = [&](size_t index) {
    const auto key = static_cast<int64_t>(index);
    return is_wanted(key) && keys.sees(row.batch_row, row.head, row.query, key);
  };
  double count = 0;
  for (size_t key = 0; key < row.weights.size(); ++key) count += has_weight(key) ? 1 : 0;
  for (size_t key = 0; key < row.weights.size(); ++key)
    row.weights[key] = has_weight(key) ? static_cast<float>(sum / count) : 0.0F;
}

/// Sets the weights outside of the band |i - j| <= width to zero, and scales the others to the sum that the
/// row had. Where these sum to zero, the visible keys of the band get equal weights.
void cut_to_band(const MapRow& row, const VisibleKeys& keys, int64_t width) {
  const auto is_inside = [&](int64_t key) { return std::abs(key - keys.position(row.query)) <= width; };
  double row_sum = 0, band_sum = 0;
  for (size_t key = 0; key < row.weights.size(); ++key) {
    row_sum += row.weights[key];
    if (is_inside(static_cast<int64_t>(key))) band_sum += row.weights[key];
  }
  constexpr double rounding_error = 1e-12;
  if (std::abs(band_sum) <= rounding_error) return set_equal_weights(row, keys, row_sum, is_inside);
  for (size_t key = 0; key < row.weights.size(); ++key) {
    float& weight = row.weights[key];
    weight = is_inside(static_cast<int64_t>(key)) ? static_cast<float>(weight * row_sum / band_sum) : 0.0F;
  }
}

/// Sets all weight on the query's own position: on the last visible key where that is behind the end of a
/// shorter sequence.
void set_identity(const MapRow& row, const VisibleKeys& keys) {
  int64_t own_key = std::min(keys.position(row.query), static_cast<int64_t>(row.weights.size()) - 1);
  while (own_key > 0 && !keys.sees(row.batch_row, row.head, row.query, own_key)) --own_key;
  set_equal_weights(row, keys, 1, [&](int64_t key) { return key == own_key; });
}

}  // namespace

Tensor MeanOutputCollector::edit_heads(const Module& module, const Tensor& heads, const AttentionInput&) {
  const Tensor batch_sums = sum(sum(heads.detach(), 0), 2);  // [1, H, 1, d]
  const std::vector<double> addends = contiguous(batch_sums).to_doubles();
  std::vector<double>& sums = sums_[&module];
  sums.resize(addends.size());
  for (size_t i = 0; i < addends.size(); ++i) sums[i] += addends[i];
  rows_[&module] += static_cast<double>(heads.extent(0) * heads.extent(2));
  return heads;
}

MeanOutputs MeanOutputCollector::means() const {
  MeanOutputs out;
  for (const auto& [module, sums] : sums_)
    for (const double value : sums) out[module].push_back(static_cast<float>(value / rows_.at(module)));
  return out;
}

HeadReplacement HeadReplacement::parse(const std::string& spec) {
  const Spec parsed = parse_spec(spec);
  const auto found = std::find(replacement_names.begin(), replacement_names.end(), parsed.name);
  if (found == replacement_names.end()) {
    const std::vector<std::string> known(replacement_names.begin(), replacement_names.end());
    fail(advice("--by", "HeadReplacement"), " '", spec, "' is unknown.", suggestion(parsed.name, known));
  }
  HeadReplacement out{.kind = static_cast<Kind>(found - replacement_names.begin())};
  for (const auto& [key, value] : parsed.options) {
    const std::optional<int64_t> width = parsed_integer(value);
    if (out.kind != Kind::band || key != "w")
      fail(advice("--by", "HeadReplacement"), " '", spec,
           "': only a band has an option, its width: band:w=3 for |i - j| <= 3.");
    if (!width || *width < 0 || *width > max_band)
      fail(advice("--by", "HeadReplacement"), " '", spec, "': w = ", shown(value), ". It must be 0 to ",
           max_band, ": band:w=3 keeps |i - j| <= 3.");
    out.width = *width;
  }
  return out;
}

std::string HeadReplacement::name() const {
  return text(replacement_names[static_cast<size_t>(kind)], kind == Kind::band ? text(":w=", width) : "");
}

void HeadAblation::replace(const std::vector<ModelHead>& heads) {
  replaced_.clear();
  model_modules_.clear();
  first_name_ = heads.empty() ? "" : heads[0].name;
  const bool are_known =
      std::ranges::all_of(heads, [](const auto& head) { return head.model_modules != nullptr; });
  for (const ModelHead& head : heads) {
    if (are_known) model_modules_.insert(head.model_modules->begin(), head.model_modules->end());
    if (head.module == nullptr)
      fail("HeadAblation: head ", head.head, " has no attention. Take heads of heads_of_model().");
    replaced_[head.module].insert(head.head);
  }
}

void HeadAblation::check_model(const Module& module) {
  if (model_modules_.empty()) return;
  if (!model_modules_.contains(&module))
    fail("HeadAblation: this pass calls an attention outside of the model that the head '", first_name_,
         "' is of, so that is not replaced. Take heads of heads_of_model() of the model that runs.");
  if (replaced_.contains(&module)) model_modules_.clear();  // the model is the right one
}

std::vector<int64_t> HeadAblation::replaced_heads(const Module& module) const {
  const auto found = replaced_.find(&module);
  if (found == replaced_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

std::vector<int64_t> HeadAblation::mapped_heads(const Module& module) const {
  const bool edits_outputs =
      by_.kind == HeadReplacement::Kind::zero || by_.kind == HeadReplacement::Kind::mean;
  return edits_outputs ? std::vector<int64_t>{} : replaced_heads(module);
}

Tensor HeadAblation::edit_map(const Module& module, const Tensor& map, const AttentionInput& input) {
  const VisibleKeys visible(map, input);
  std::vector<float> weights = map.to_host();
  const int64_t heads = map.extent(1), queries = map.extent(2), keys = map.extent(3);
  for (int64_t batch_row = 0; batch_row < map.extent(0); ++batch_row) {
    for (const int64_t head : replaced_heads(module)) {
      for (int64_t query = 0; query < queries; ++query) {
        const auto begin = static_cast<size_t>(((batch_row * heads + head) * queries + query) * keys);
        const MapRow row{.weights = std::span(weights).subspan(begin, static_cast<size_t>(keys)),
                         .batch_row = batch_row,
                         .head = head,
                         .query = query};
        if (by_.kind == HeadReplacement::Kind::band)
          cut_to_band(row, visible, by_.width);
        else if (by_.kind == HeadReplacement::Kind::uniform)
          set_equal_weights(row, visible, 1, [](int64_t) { return true; });
        else
          set_identity(row, visible);
      }
    }
  }
  return tensor_like(map, weights, map.shape());
}

std::vector<float> HeadAblation::mean_output(const Module& module, const Tensor& heads) const {
  if (means_ == nullptr) {
    MeanOutputCollector of_call;
    of_call.edit_heads(module, heads, {});
    return of_call.means()[&module];
  }
  const auto found = means_->find(&module);
  if (found == means_->end())
    fail(
        "HeadAblation: there is no mean output of an attention whose heads are replaced. Give the means of a "
        "forward pass that calls it.");
  return found->second;
}

Tensor HeadAblation::edit_heads(const Module& module, const Tensor& heads, const AttentionInput&) {
  check_model(module);
  const bool by_mean = by_.kind == HeadReplacement::Kind::mean;
  if (!by_mean && by_.kind != HeadReplacement::Kind::zero) return heads;
  const std::vector<int64_t> replaced = replaced_heads(module);
  if (replaced.empty()) return heads;
  const int64_t count = heads.extent(1), width = heads.extent(3);
  if (replaced.front() < 0 || replaced.back() >= count)
    fail("HeadAblation: there is no head ", replaced.front() < 0 ? replaced.front() : replaced.back(),
         "; heads of this attention are 0 to ", count - 1, ".");
  const std::vector<float> means = by_mean ? mean_output(module, heads) : std::vector<float>();
  std::vector<float> factors(static_cast<size_t>(count), 1);          // 0 for a replaced head
  std::vector<float> outputs(static_cast<size_t>(count * width), 0);  // means of replaced heads
  for (const int64_t head : replaced) {
    factors[static_cast<size_t>(head)] = 0;
    if (!by_mean) continue;
    std::copy_n(means.begin() + head * width, width, outputs.begin() + head * width);
  }
  const Tensor kept = heads * tensor_like(heads, factors, Shape{1, count, 1, 1});
  return by_mean ? kept + tensor_like(heads, outputs, Shape{1, count, 1, width}) : kept;
}

}  // namespace heed
