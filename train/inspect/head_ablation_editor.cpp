// Finds the heads of a model, and replaces their maps or outputs.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/spec.h"
#include "heed/core/constant_table.h"
#include "heed/core/counted_work.h"
#include "heed/core/io/number_text.h"
#include "heed/nn/set_option.h"
#include "heed/train/inspect/head_ablation.h"
#include "heed/train/tasks/example_provider.h"

namespace heed {
namespace {

/// Names of replacements, in the order of HeadReplacement::Kind.
constexpr std::array<std::string_view, 5> replacement_names{"zero", "mean", "uniform", "identity", "band"};

/// Values in the dtype and on the device of another tensor.
Tensor tensor_like(const Tensor& other, std::span<const float> values, const Shape& shape) {
  return constant_table<float>(values, shape, other.device(), other.dtype());
}

/// Notes every attention that has heads to edit.
class HeadFinder final : public HeadEditor {
 public:
  Tensor edit_heads(const Module& module, const Tensor& heads, const AttentionInput&) override {
    if (std::find(modules.begin(), modules.end(), &module) == modules.end()) {
      modules.push_back(&module);
      counts.push_back(heads.extent(1));
    }
    return heads;
  }
  std::vector<const Module*> modules;
  std::vector<int64_t> counts;
};

/// Sums the outputs of heads over examples and positions.
class MeanCollector final : public HeadEditor {
 public:
  Tensor edit_heads(const Module& module, const Tensor& heads, const AttentionInput&) override {
    const Tensor total = sum(sum(heads.detach(), 0), 2);  // [1, H, 1, d]
    const std::vector<double> values = contiguous(total).to_doubles();
    std::vector<double>& sums = sums_[&module];
    sums.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
    rows_[&module] += static_cast<double>(heads.extent(0) * heads.extent(2));
    return heads;
  }
  MeanOutputs means() const {
    MeanOutputs out;
    for (const auto& [module, sums] : sums_)
      for (const double value : sums) out[module].push_back(static_cast<float>(value / rows_.at(module)));
    return out;
  }

 private:
  std::map<const Module*, std::vector<double>> sums_;
  std::map<const Module*, double> rows_;
};

/// Which keys each query sees, and where it stands among them; on the host.
class VisibleKeys {
 public:
  VisibleKeys(const Tensor& map, const AttentionInput& input)
      : queries_(map.extent(2)), keys_(map.extent(3)) {
    // Causal masks are those of self-attention, whose queries are the last ones. Of cross-attention with a
    // cache, which has counted this call's queries already, they are those answered so far.
    if (input.mask.is_causal())
      first_ = keys_ - queries_;
    else if (input.cache != nullptr)
      first_ = input.cache->queries - queries_;
    const Tensor mask = input.mask.dense(map, keys_ - queries_);
    if (!mask) return;
    shape_ = mask.shape();
    values_ = contiguous(mask).to_doubles();
  }
  /// The position of a query among the keys.
  int64_t position(int64_t query) const { return first_ + query; }
  bool sees(int64_t row, int64_t head, int64_t query, int64_t key) const {
    if (values_.empty()) return true;
    const auto at = [&](int64_t axis, int64_t index) { return shape_[axis] == 1 ? 0 : index; };
    const int64_t place =
        ((at(0, row) * shape_[1] + at(1, head)) * shape_[2] + at(2, query)) * shape_[3] + at(3, key);
    return values_[static_cast<size_t>(place)] > -std::numeric_limits<double>::infinity();
  }

 private:
  int64_t queries_, keys_, first_ = 0;
  Shape shape_;
  std::vector<double> values_;
};

/// Equal weights on the keys for which `wanted` holds and which are visible; zeros where there are none.
template <class Wanted>
void set_equal_weights(std::span<float> row, const VisibleKeys& keys, int64_t b, int64_t head, int64_t query,
                       double total, const Wanted& wanted) {
  double count = 0;
  const auto chosen = [&](size_t key) {
    return wanted(static_cast<int64_t>(key)) && keys.sees(b, head, query, static_cast<int64_t>(key));
  };
  for (size_t key = 0; key < row.size(); ++key) count += chosen(key) ? 1 : 0;
  for (size_t key = 0; key < row.size(); ++key)
    row[key] = chosen(key) ? static_cast<float>(total / count) : 0.0F;
}

/// Sets the weights outside of the band |i - j| <= width to zero, and scales the others to the sum that the
/// row had; equal weights within the band where they sum to nothing.
void cut_to_band(std::span<float> row, const VisibleKeys& keys, int64_t b, int64_t head, int64_t query,
                 int64_t width) {
  const auto inside = [&](int64_t key) { return std::abs(key - keys.position(query)) <= width; };
  double row_sum = 0, band_sum = 0;
  for (size_t key = 0; key < row.size(); ++key) {
    row_sum += row[key];
    if (inside(static_cast<int64_t>(key))) band_sum += row[key];
  }
  constexpr double nothing = 1e-12;
  if (std::abs(band_sum) <= nothing) return set_equal_weights(row, keys, b, head, query, row_sum, inside);
  for (size_t key = 0; key < row.size(); ++key)
    row[key] = inside(static_cast<int64_t>(key)) ? static_cast<float>(row[key] * row_sum / band_sum) : 0.0F;
}

}  // namespace

std::vector<ModelHead> heads_of_model(const Task& task, Module& model) {
  const NoGrad no_grad;
  HeadFinder finder;
  const std::vector<int64_t> first{0};
  constexpr int64_t few_tokens = 64;  // enough to pass through every attention
  task.loss(model, example_provider(task).test_batch(first, few_tokens).batch, {.editor = &finder});
  if (finder.modules.empty()) fail("the attentions of this model have no heads that can be edited.");
  std::vector<ModelHead> out;
  for (size_t i = 0; i < finder.modules.size(); ++i) {
    const std::string layer = place_of(name_of(model, finder.modules[i])).name();
    for (int64_t head = 0; head < finder.counts[i]; ++head)
      out.push_back({text(layer, ".", head), layer, finder.modules[i], head});
  }
  return out;
}

std::vector<ModelHead> named_heads(const std::vector<ModelHead>& all, const std::string& list) {
  std::vector<ModelHead> out;
  std::set<std::string> taken, layers;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
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
    fail("--heads: there is no head '", name, "'. There are: ", known,
         "; a layer's name means all its heads.");
  }
  return out;
}

HeadReplacement HeadReplacement::parse(const std::string& words) {
  const Spec spec = parse_spec(words);
  const auto found = std::find(replacement_names.begin(), replacement_names.end(), spec.name);
  if (found == replacement_names.end()) {
    const std::vector<std::string> known(replacement_names.begin(), replacement_names.end());
    fail("--by '", words, "' is unknown.", suggestion(spec.name, known));
  }
  HeadReplacement out{.kind = static_cast<Kind>(found - replacement_names.begin())};
  for (const auto& [key, value] : spec.options) {
    const std::optional<int64_t> width = parsed_integer(value);
    if (out.kind != Kind::band || key != "w" || !width || *width < 0 || *width >= 1'000'000)
      fail("--by '", words, "': only a band has an option, its width: band:w=3 for |i - j| <= 3.");
    out.width = *width;
  }
  return out;
}

std::string HeadReplacement::name() const {
  return text(replacement_names[static_cast<size_t>(kind)], kind == Kind::band ? text(":w=", width) : "");
}

MeanOutputs mean_outputs(const Task& task, Module& model, int64_t examples, int64_t max_tokens) {
  const NoGrad no_grad;
  MeanCollector collector;
  constexpr int64_t rows = 64;
  const auto batches = batches_of_equal_lengths(task, examples, max_tokens, rows);
  CountedWork work(static_cast<double>(batches.size()));
  for (const auto& numbers : batches) {
    task.loss(model, example_provider(task).test_batch(numbers, max_tokens).batch, {.editor = &collector});
    work.add();
  }
  return collector.means();
}

void HeadAblation::set(const std::vector<ModelHead>& off) {
  off_.clear();
  for (const ModelHead& head : off) off_[head.module].insert(head.head);
}

std::vector<int64_t> HeadAblation::off_heads(const Module& module) const {
  const auto found = off_.find(&module);
  if (found == off_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

std::vector<int64_t> HeadAblation::mapped_heads(const Module& module) const {
  const bool by_output = by_.kind == HeadReplacement::Kind::zero || by_.kind == HeadReplacement::Kind::mean;
  return by_output ? std::vector<int64_t>{} : off_heads(module);
}

Tensor HeadAblation::edit_map(const Module& module, const Tensor& map, const AttentionInput& input) {
  const VisibleKeys visible(map, input);
  std::vector<float> weights = map.to_host();
  const int64_t heads = map.extent(1), queries = map.extent(2), keys = map.extent(3);
  for (int64_t b = 0; b < map.extent(0); ++b) {
    for (const int64_t head : off_heads(module)) {
      for (int64_t query = 0; query < queries; ++query) {
        const auto begin = static_cast<size_t>(((b * heads + head) * queries + query) * keys);
        const std::span<float> row = std::span(weights).subspan(begin, static_cast<size_t>(keys));
        if (by_.kind == HeadReplacement::Kind::band) {
          cut_to_band(row, visible, b, head, query, by_.width);
        } else if (by_.kind == HeadReplacement::Kind::uniform) {
          set_equal_weights(row, visible, b, head, query, 1, [](int64_t) { return true; });
        } else {
          int64_t own = std::min(visible.position(query), keys - 1);
          while (own > 0 && !visible.sees(b, head, query, own)) --own;  // past the end of a shorter sentence
          set_equal_weights(row, visible, b, head, query, 1, [&](int64_t key) { return key == own; });
        }
      }
    }
  }
  return tensor_like(map, weights, map.shape());
}

Tensor HeadAblation::edit_heads(const Module& module, const Tensor& heads, const AttentionInput&) {
  const bool mean = by_.kind == HeadReplacement::Kind::mean;
  if (!mean && by_.kind != HeadReplacement::Kind::zero) return heads;
  const std::vector<int64_t> off = off_heads(module);
  if (off.empty()) return heads;
  const int64_t count = heads.extent(1), width = heads.extent(3);
  std::vector<float> factor(static_cast<size_t>(count), 1), added(static_cast<size_t>(count * width), 0);
  for (const int64_t head : off) {
    factor[static_cast<size_t>(head)] = 0;
    if (!mean) continue;
    const std::vector<float>& means = means_->at(&module);
    std::copy_n(means.begin() + head * width, width, added.begin() + head * width);
  }
  const Tensor y = heads * tensor_like(heads, factor, Shape{1, count, 1, 1});
  return mean ? y + tensor_like(heads, added, Shape{1, count, 1, width}) : y;
}

}  // namespace heed
