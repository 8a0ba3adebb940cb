// Plans batches of sentence pairs and pads them.
#include "heed/data/batching/padded_batches.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "heed/core/error.h"
#include "heed/data/batching/shuffle.h"

namespace heed {
namespace {

// Random streams of the shuffles: one for the pairs of an epoch, one for its batches.
uint64_t pair_stream(int64_t epoch) { return static_cast<uint64_t>(epoch) * 2; }
uint64_t batch_stream(int64_t epoch) { return static_cast<uint64_t>(epoch) * 2 + 1; }

/// Columns of a row: the source gets end and mostly start, the target one of them.
int64_t source_columns(const EncodedPair& pair, const SpecialIds& special) {
  return static_cast<int64_t>(pair.source.size()) + special.around_source();
}
int64_t target_columns(const EncodedPair& pair) { return static_cast<int64_t>(pair.target.size()) + 1; }

/// Rows [rows, columns] full of padding, without lengths, for add_row().
Rows all_padding(int64_t rows, int64_t columns, int32_t pad) {
  Rows out{.rows = rows, .columns = columns, .ids = {}, .lengths = {}};
  out.ids.assign(static_cast<size_t>(rows * columns), pad);
  out.lengths.reserve(static_cast<size_t>(rows));
  return out;
}

constexpr int32_t no_id = -1;

/// Fills the first row without a length: `start` (unless no_id), `ids`, `end` (unless no_id).
void add_row(Rows& rows, int32_t start, std::span<const int32_t> ids, int32_t end) {
  const auto row_begin = rows.ids.begin() + static_cast<int64_t>(rows.lengths.size()) * rows.columns;
  auto next = row_begin;
  if (start != no_id) *next++ = start;
  next = std::copy(ids.begin(), ids.end(), next);
  if (end != no_id) *next++ = end;
  rows.lengths.push_back(static_cast<int32_t>(next - row_begin));
}

}  // namespace

PairBatches::PairBatches(std::vector<EncodedPair> pairs, const BatchOptions& options)
    : pairs_(std::move(pairs)), options_(options) {
  const SpecialIds& special = options_.special;
  if (special.pad < 0 || special.start < 0 || special.end < 0) {
    fail("batches: pad, start and end need ids; they are ", special.pad, ", ", special.start, ", ",
         special.end, ". A character tokenizer has none: take a word or a sentencepiece tokenizer.");
  }
  if ((options_.tokens > 0) == (options_.sentences > 0)) {
    fail("batches: tokens = ", options_.tokens, " and sentences = ", options_.sentences,
         "; exactly one of them must be above 0.");
  }
  if (options_.buckets && options_.pool < 1)
    fail("batches: pool = ", options_.pool, "; it must be at least 1.");
  if (options_.buckets && options_.fixed_length > 0) {
    fail("batches: rows of the fixed length ", options_.fixed_length,
         " need no buckets; choose one of the two.");
  }
  if (options_.fixed_length <= 0) return;
  for (size_t i = 0; i < pairs_.size(); ++i) {
    const int64_t source = source_columns(pairs_[i], special), target = target_columns(pairs_[i]);
    if (std::max(source, target) <= options_.fixed_length) continue;
    fail(Fault::data, "batches: pair ", i, " needs ", source, " source and ", target,
         " target columns; the fixed length is ", options_.fixed_length,
         ". Raise it, or leave out long pairs.");
  }
}

void PairBatches::sort_by_length(std::span<int64_t> order) const {
  struct Key {
    uint64_t lengths;
    int64_t index;
  };
  std::vector<Key> keys;
  keys.reserve(order.size());
  for (const int64_t index : order) {
    const EncodedPair& p = pair(index);
    const auto target = static_cast<uint64_t>(p.target.size());
    const auto source = static_cast<uint64_t>(p.source.size());
    // Sources ascend under one target length and descend under the next, so neighbours differ little.
    const uint64_t low_half = target % 2 == 0 ? source : ~source & 0xFFFFFFFFu;
    keys.push_back({.lengths = (target << 32) | low_half, .index = index});
  }
  // Stable: pairs of equal lengths keep their random order.
  std::stable_sort(keys.begin(), keys.end(),
                   [](const Key& left, const Key& right) { return left.lengths < right.lengths; });
  for (size_t i = 0; i < order.size(); ++i) order[i] = keys[i].index;
}

BatchPlan PairBatches::cut(std::span<const int64_t> order) const {
  BatchPlan plan;
  std::vector<int64_t> batch;
  int64_t source = 0, target = 0;  // columns of the batch
  for (const int64_t index : order) {
    const int64_t new_source =
        std::max({source, source_columns(pair(index), options_.special), options_.fixed_length});
    const int64_t new_target = std::max({target, target_columns(pair(index)), options_.fixed_length});
    const auto rows = static_cast<int64_t>(batch.size()) + 1;
    // The limit on source ids keeps batches of long sources with short targets small.
    const bool fits = options_.sentences > 0
                          ? rows <= options_.sentences
                          : rows * new_target <= options_.tokens && rows * new_source <= 2 * options_.tokens;
    if (!fits && !batch.empty()) {
      plan.push_back(std::move(batch));
      batch.clear();
      source = source_columns(pair(index), options_.special);
      target = target_columns(pair(index));
    } else {
      source = new_source;
      target = new_target;
    }
    batch.push_back(index);
  }
  if (!batch.empty()) plan.push_back(std::move(batch));
  return plan;
}

BatchPlan PairBatches::epoch(int64_t number) const {
  if (number < 0) fail("batches: epoch ", number, "; epochs count from 0.");
  std::vector<int64_t> order = shuffled(size(), options_.seed, pair_stream(number));
  if (!options_.buckets) return cut(order);
  BatchPlan plan;
  const auto pool_size = static_cast<size_t>(options_.pool);
  for (size_t begin = 0; begin < order.size(); begin += pool_size) {
    const auto pool = std::span(order).subspan(begin, std::min(pool_size, order.size() - begin));
    sort_by_length(pool);
    for (auto& batch : cut(pool)) plan.push_back(std::move(batch));
  }
  shuffle(std::span(plan), options_.seed, batch_stream(number));
  return plan;
}

BatchPlan PairBatches::in_order() const {
  std::vector<int64_t> order(pairs_.size());
  std::iota(order.begin(), order.end(), 0);
  if (options_.buckets) sort_by_length(order);
  return cut(order);
}

int64_t round_up_to_few(int64_t n) {
  if (n <= 4) return 4;
  const auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n - 1)) / 4);
  return (n + step - 1) / step * step;
}

/// The least number that round_up_to_few() rounds up to the value it gives for `n`; at least 1.
static int64_t min_with_equal_rounding(int64_t n) {
  while (n > 1 && round_up_to_few(n - 1) == round_up_to_few(n)) --n;
  return n;
}

BatchFrame PairBatches::frame(std::span<const int64_t> indices) const {
  BatchFrame out{.rows = static_cast<int64_t>(indices.size()),
                 .source = options_.fixed_length,
                 .target = options_.fixed_length};
  for (const int64_t index : indices) {
    if (index < 0 || index >= size()) fail("batches: no pair ", index, "; there are ", size(), ".");
    out.source = std::max(out.source, source_columns(pair(index), options_.special));
    out.target = std::max(out.target, target_columns(pair(index)));
    out.padded_target_tokens += target_columns(pair(index));
  }
  if (!options_.few_shapes) return out;
  const auto padded_columns = [&](int64_t columns) {
    if (options_.fixed_length > 0) return columns;
    const int64_t rounded = round_up_to_few(columns);
    return options_.max_columns > 0 ? std::max(columns, std::min(rounded, options_.max_columns)) : rounded;
  };
  const int64_t min_source = std::max(options_.fixed_length, min_with_equal_rounding(out.source)),
                min_target = std::max(options_.fixed_length, min_with_equal_rounding(out.target));
  out.source = padded_columns(out.source);
  out.target = padded_columns(out.target);
  if (options_.sentences > 0) {
    out.rows = options_.sentences;
    // In buckets, pairs have similar lengths: the bound of all rows being full wastes little.
    out.padded_target_tokens =
        options_.buckets ? out.rows * out.target : round_up_to_few(out.padded_target_tokens);
    return out;
  }
  // The maximum number of rows that cut() gives any batch that is padded to these columns.
  out.rows = std::max(out.rows, std::min(options_.tokens / min_target, 2 * options_.tokens / min_source));
  out.padded_target_tokens =
      std::max(out.padded_target_tokens, std::min(options_.tokens, out.rows * out.target));
  return out;
}

PairBatch PairBatches::make(std::span<const int64_t> indices) const {
  if (indices.empty()) fail("batches: a batch needs at least one pair.");
  const BatchFrame size = frame(indices);
  const SpecialIds& special = options_.special;
  PairBatch batch{.source = all_padding(size.rows, size.source, special.pad),
                  .target_in = all_padding(size.rows, size.target, special.pad),
                  .target_out = all_padding(size.rows, size.target, special.pad),
                  .target_tokens = 0,
                  .padded_target_tokens = size.padded_target_tokens};
  for (const int64_t index : indices) {
    const EncodedPair& p = pair(index);
    add_row(batch.source, special.starts_source ? special.start : no_id, p.source, special.end);
    add_row(batch.target_in, special.start, p.target, -1);
    add_row(batch.target_out, -1, p.target, special.end);
    batch.target_tokens += target_columns(p);
  }
  const auto rows = static_cast<size_t>(size.rows);
  batch.source.lengths.resize(rows, 1);
  batch.target_in.lengths.resize(rows, 1);
  batch.target_out.lengths.resize(rows, 0);
  return batch;
}

}  // namespace heed
