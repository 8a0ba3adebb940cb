// Pads encoded sentence pairs into batches, in an order that depends only on (seed, epoch).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/data/tokenizers/special_ids.h"

namespace heed {

/// Token ids, one sequence a row, padded on the right to equal length.
struct Rows {
  int64_t rows = 0;              ///< sequences
  int64_t columns = 0;           ///< ids of a row, padding included
  std::vector<int32_t> ids;      ///< [rows, columns]
  std::vector<int32_t> lengths;  ///< [rows], before padding; 1 for an empty row, but 0 in target_out
};

/// The padded size of a batch.
struct BatchFrame {
  int64_t rows = 0;    ///< sentence pairs
  int64_t source = 0;  ///< columns of the source
  int64_t target = 0;  ///< columns of target_in and target_out
  /// Ids of target_out that are not padding; with few_shapes rounded up, as the size of tensors of them.
  int64_t padded_target_tokens = 0;
  friend bool operator==(const BatchFrame&, const BatchFrame&) = default;  ///< all four numbers are equal
};

/// Rounds n up to one of four numbers per power of two: by less than a quarter, from 4 on.
int64_t round_up_to_few(int64_t n);

/// A training batch of an encoder-decoder.
struct PairBatch {
  Rows source;                ///< start + x + end; without start where SpecialIds::starts_source is false
  Rows target_in;             ///< start + y
  Rows target_out;            ///< y + end; has the shape of target_in
  int64_t target_tokens = 0;  ///< ids in target_out that are not padding
  int64_t padded_target_tokens = 0;  ///< target_tokens, rounded up as in BatchFrame
};

/// A sentence pair as ids, without start and end.
struct EncodedPair {
  std::vector<int32_t> source;  ///< ids of the sentence to translate
  std::vector<int32_t> target;  ///< ids of its translation
};

/// How to batch pairs.
struct BatchOptions {
  int64_t tokens = 4096;  ///< maximum padded ids of target_out in a batch; a longer pair gets its own batch
  int64_t sentences = 0;  ///< above 0: this many pairs a batch instead
  bool buckets = true;    ///< batch pairs of similar length, to pad little
  int64_t pool = 65536;   ///< pairs that are shuffled, then sorted by length, together
  int64_t fixed_length = 0;  ///< above 0: pad every row to this length
  /// Pads columns and rows further, so that batches have few shapes: a GPU replays CUDA graphs of equal
  /// shapes. Does not change which pairs a batch holds.
  bool few_shapes = false;
  int64_t max_columns = 0;  ///< above 0: few_shapes pads no row beyond this
  uint64_t seed = 1;        ///< seed of the order of each epoch
  SpecialIds special = {};  ///< uses pad, start, end and starts_source
};

/// The plan of an epoch: the pairs of each batch.
using BatchPlan = std::vector<std::vector<int64_t>>;

/// Plans and builds batches. The position of a run in them is (epoch, position in the plan).
class PairBatches {
 public:
  /// Fault::usage for contradictory options or missing special ids, Fault::data for a pair longer than
  /// `fixed_length`.
  PairBatches(std::vector<EncodedPair> pairs, const BatchOptions& options = {});

  int64_t size() const { return static_cast<int64_t>(pairs_.size()); }  ///< number of pairs
  /// A pair by its number in the list given, from 0.
  const EncodedPair& pair(int64_t index) const { return pairs_[static_cast<size_t>(index)]; }
  const BatchOptions& options() const { return options_; }  ///< as given to the constructor

  /// A plan with every pair once, shuffled by (seed, epoch).
  BatchPlan epoch(int64_t number) const;
  /// A plan with every pair once, without randomness: sorted by length with `buckets`, else in the given
  /// order.
  BatchPlan in_order() const;
  /// The padded size of a batch of these pairs.
  BatchFrame frame(std::span<const int64_t> indices) const;
  /// A batch of these pairs, in this order.
  PairBatch make(std::span<const int64_t> indices) const;

 private:
  /// Fills batches with the pairs of an order, up to the limits of the options.
  BatchPlan cut(std::span<const int64_t> order) const;
  /// Sorts indices of pairs by the target's length, then the source's.
  void sort_by_length(std::span<int64_t> order) const;

  std::vector<EncodedPair> pairs_;
  BatchOptions options_;
};

}  // namespace heed
