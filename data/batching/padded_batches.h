// Encoded pairs to padded batches, in an order that depends on (seed, epoch) only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/tokenizer.h"

namespace heed {

/// Sequences of ids, one a row, padded on the right to equal length.
struct Rows {
  int64_t rows = 0, columns = 0;
  std::vector<int32_t> ids;      ///< [rows, columns]
  std::vector<int32_t> lengths;  ///< [rows], before padding; of an empty row 1, and 0 in target_out
};

/// How large a batch is with its padding.
struct BatchFrame {
  int64_t rows = 0, source = 0, target = 0;  ///< columns of each side
  int64_t wanted = 0;                        ///< room for ids of target_out that are not padding
  friend bool operator==(const BatchFrame&, const BatchFrame&) = default;
};

/// n rounded up to one of four numbers for each power of two, so by less than a quarter.
int64_t one_of_few(int64_t n);

/// What an encoder-decoder learns from at once.
struct PairBatch {
  Rows source;                ///< start + x + end
  Rows target_in;             ///< start + y
  Rows target_out;            ///< y + end, same shape as target_in
  int64_t target_tokens = 0;  ///< ids in target_out that are not padding
  int64_t wanted = 0;         ///< of the frame: at least as many
};

/// A pair as ids, without start and end.
struct EncodedPair {
  std::vector<int32_t> source, target;
};

/// How pairs are put together.
struct BatchOptions {
  int64_t tokens = 4096;  ///< padded ids of target_out a batch at most; a longer pair is alone in its batch
  int64_t sentences = 0;  ///< when above 0: this many pairs a batch instead
  bool buckets = true;    ///< pairs of like length together, so that little is padding
  int64_t pool = 65536;   ///< pairs that are shuffled together before they are sorted by length
  int64_t fixed_length = 0;  ///< when above 0: every row is padded to this length
  /// Padded further, by rows too, so that batches have few shapes: a device replays steps of the same shapes.
  /// What a batch holds does not depend on it.
  bool few_shapes = false;
  int64_t most_columns = 0;  ///< when above 0: few_shapes pads no row beyond this
  uint64_t seed = 1;
  SpecialIds special = {};  ///< pad, start and end are used
};

/// A plan of an epoch: which pairs each batch holds.
using BatchPlan = std::vector<std::vector<int64_t>>;

/// Plans and builds batches. The state of a run over them is (epoch, position in the plan).
class PairBatches {
 public:
  /// Fault::usage for options that contradict each other or special ids that are missing, Fault::data for a
  /// pair that does not fit into `fixed_length`.
  PairBatches(std::vector<EncodedPair> pairs, const BatchOptions& options = {});

  int64_t size() const { return static_cast<int64_t>(pairs_.size()); }
  const EncodedPair& pair(int64_t index) const { return pairs_[static_cast<size_t>(index)]; }
  const BatchOptions& options() const { return options_; }

  /// Every pair once, shuffled by (seed, epoch).
  BatchPlan epoch(int64_t number) const;
  /// Every pair once, without chance: sorted by length when `buckets`, else in the order they came.
  BatchPlan in_order() const;
  /// The size of a batch of the pairs with these indices.
  BatchFrame frame(std::span<const int64_t> indices) const;
  /// The pairs with these indices as one batch, in this order.
  PairBatch make(std::span<const int64_t> indices) const;

 private:
  BatchPlan cut(std::span<const int64_t> order) const;
  void sort_by_length(std::span<int64_t> order) const;

  std::vector<EncodedPair> pairs_;
  BatchOptions options_;
};

/// The share of padding among all ids of source and target_out of a plan, 0 .. 1.
double padding_share(const PairBatches& batches, const BatchPlan& plan);

}  // namespace heed
