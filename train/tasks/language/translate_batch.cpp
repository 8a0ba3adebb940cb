// Makes tensors of sentence pairs, with the tables of their packings on a device.
#include "heed/train/tasks/language/translate_batch.h"

#include <algorithm>
#include <numeric>

#include "heed/core/ceil_div.h"
#include "heed/nn/packing.h"

namespace heed {
namespace {

Tensor list(const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>(values, Shape{static_cast<int64_t>(values.size())});
}

Tensor rectangle(const Rows& rows) { return Tensor::of<int32_t>(rows.ids, Shape{rows.rows, rows.columns}); }

/// The places b T + t of all target tokens.
std::vector<int32_t> places_of_tokens(const Rows& target) {
  std::vector<int32_t> places;
  for (int64_t b = 0; b < target.rows; ++b) {
    for (int32_t t = 0; t < target.lengths[static_cast<size_t>(b)]; ++t)
      places.push_back(static_cast<int32_t>(b * target.columns) + t);
  }
  return places;
}

Packing packing_of(const Rows& side, int64_t rows) {
  return Packing::of(Tensor::of<int32_t>(side.lengths, Shape{side.rows}, Device::cpu), side.columns, rows);
}

}  // namespace

int64_t tokens_of(const Rows& side) {
  return std::accumulate(side.lengths.begin(), side.lengths.end(), int64_t{0});
}

int64_t source_row_step(int64_t padded_rows) { return ceil_div(padded_rows, int64_t{8}); }

Batch translation_batch(const PairBatch& pairs, bool carries_packing, int64_t min_source_tokens) {
  const Rows &source = pairs.source, &target = pairs.target_out;
  std::vector<int32_t> targets, places = places_of_tokens(target);
  const auto num_targets = static_cast<int64_t>(places.size());
  int64_t rows = std::max(num_targets, pairs.padded_target_tokens);
  Packing packing;
  if (carries_packing) {
    rows = std::min(std::max(rows, int64_t{1}), target.rows * target.columns);
    packing = packing_of(target, rows);
    const int32_t* all = packing.places.places.data<int32_t>();
    places.assign(all, all + rows);
  }
  places.resize(static_cast<size_t>(rows), 0);
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t place = places[static_cast<size_t>(n)], b = place / target.columns;
    const bool is_token =
        carries_packing ? place % target.columns < target.lengths[static_cast<size_t>(b)] : n < num_targets;
    targets.push_back(is_token ? target.ids[static_cast<size_t>(place)] : -1);
  }
  Batch batch;
  batch.tensors = {rectangle(source), list(source.lengths), rectangle(pairs.target_in), list(targets),
                   list(places)};
  if (carries_packing) {
    const int64_t padded = source.rows * source.columns, tokens = tokens_of(source),
                  packed = packed_rows(std::max(tokens, min_source_tokens), padded, source_row_step(padded));
    batch.tensors.push_back(packing_of(source, packed).table().to(default_device));
    batch.tensors.push_back(packing.table().to(default_device));
  }
  batch.weight = static_cast<double>(num_targets);
  batch.tokens = num_targets;
  return batch;
}

ForwardContext with_packing(const ForwardContext& context, const Batch& batch) {
  ForwardContext out = context;
  if (batch.tensors.size() > 5) {
    out.packing_table = batch[5];
    out.target_packing_table = batch[6];
  }
  return out;
}

RealTargets real_targets(const Batch& batch) {
  const std::vector<double> targets = batch[3].to_doubles(), places = batch[4].to_doubles();
  const double columns = static_cast<double>(batch[2].extent(1));
  std::vector<int32_t> rows, real;
  RealTargets out{.rows = {}, .targets = {}, .of_sentences = {}};
  out.of_sentences.resize(static_cast<size_t>(batch[2].extent(0)));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0) continue;
    rows.push_back(static_cast<int32_t>(i));
    real.push_back(static_cast<int32_t>(targets[i]));
    ++out.of_sentences.at(static_cast<size_t>(places[i] / columns));
  }
  out.rows = list(rows);
  out.targets = list(real);
  return out;
}

}  // namespace heed
