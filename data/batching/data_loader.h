// DataLoader: batches of a Dataset, in an order that is a pure function of (seed, epoch).
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/data/batching/batch.h"
#include "heed/data/batching/dataset.h"

namespace heed {

/// A tensor of the examples whose first extent differs from example to example.
struct Padding {
  int64_t tensor = 0;  ///< which of an example's tensors
  double value = 0;    ///< fills rows up to the longest of the batch
};

/// How examples become batches.
struct DataLoaderOptions {
  int64_t batch_size = 32;  ///< examples a batch
  bool shuffle = false;     ///< another order each epoch; false: the order of the set
  uint64_t seed = 1;        ///< seed of the order
  bool drop_last = false;   ///< leaves out the last batch of an epoch where it is not full
  /// Tensors to pad on the right of their first axis, [T, ...] to [B, longest, ...]. For each of them, in
  /// this order, the lengths i32 [B] follow behind the example's own tensors.
  std::vector<Padding> pad = {};
  /// Above 0: examples of this many batches are sorted by length together, so that a batch needs little
  /// padding.
  int64_t length_buckets = 0;
  int64_t prefetch = 2;  ///< batches that a thread makes ahead; 0: no thread
};

/// A place in the batches: the next one is number `batch` of `epoch`, both counted from 0.
struct LoaderPosition {
  int64_t epoch = 0;  ///< counted from 0
  int64_t batch = 0;  ///< counted from 0 within the epoch
  /// Whether epoch and batch are equal.
  friend bool operator==(const LoaderPosition&, const LoaderPosition&) = default;
};

/// Stacks examples into batches: tensor i of a batch has a row for each example, [B, ...]. Batches lie on the
/// default device; Batch::weight is the number of examples.
///
///     for (const Batch& batch : loader) ...   // the rest of this epoch; the next loop takes the next epoch
///
/// What comes next is position(), which a checkpoint keeps: a loader that seeks there gives the same batches
/// as an uninterrupted one. For use by one thread at a time.
class DataLoader {
 public:
  /// The set must outlive the loader and keep its size. Fails for options out of range, for a set without
  /// examples, and where drop_last leaves nothing.
  DataLoader(const Dataset& dataset, const DataLoaderOptions& options = {});
  DataLoader(const Dataset&& dataset, const DataLoaderOptions& options = {}) = delete;
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  /// Examples of the set.
  int64_t size() const { return dataset_.size(); }
  /// Batches an epoch.
  int64_t batches() const { return batches_; }
  const DataLoaderOptions& options() const { return options_; }  ///< as given to the constructor

  /// The place of the batch that next() gives.
  LoaderPosition position() const { return position_; }
  /// Makes next() continue at this place. Fails for a place that no epoch has.
  void seek(LoaderPosition position);
  /// The batch at position(), which then moves to the next. Fails naming the examples whose tensors differ in
  /// number, type or shape; rethrows what Dataset::get() throws.
  Batch next();
  /// The batch at any place, made anew each time; position() stays.
  Batch at(LoaderPosition position) const;
  /// How many examples the batch at this place has.
  int64_t rows_at(LoaderPosition position) const;

  /// One line that names set and order, for comparing a run with what it resumes.
  std::string description() const;
  /// Dataset::identity() of the set. Drops prefetched batches first, so that one thread at a time uses the
  /// set.
  std::string identity();

  /// Iterates over the batches from position() to the end of its epoch.
  class Iterator {
   public:
    /// Takes the first batch of the loop from the loader.
    explicit Iterator(DataLoader& loader) : loader_(loader), epoch_(loader.position().epoch) {
      batch_ = loader_.next();
    }
    const Batch& operator*() const { return *batch_; }  ///< valid until the next ++
    /// Takes the next batch, unless the epoch has ended.
    Iterator& operator++() {
      batch_.reset();
      if (loader_.position().epoch == epoch_) batch_ = loader_.next();
      return *this;
    }
    /// True behind the last batch of the epoch.
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    DataLoader& loader_;
    int64_t epoch_;
    std::optional<Batch> batch_;
  };
  /// Starts at position(): a loop that was left early is continued.
  Iterator begin() { return Iterator(*this); }
  /// The end of the epoch in which begin() was called.
  std::default_sentinel_t end() const { return std::default_sentinel; }

 private:
  /// The examples of each batch of an epoch.
  struct Plan {
    int64_t epoch = -1;
    std::vector<std::vector<int64_t>> batches;
  };
  class PrefetchThread;

  void check_options() const;
  void check(LoaderPosition position) const;
  LoaderPosition after(LoaderPosition position) const;
  /// Indices of the examples of a batch. Plans the epoch first, unless `plan` already holds it.
  const std::vector<int64_t>& examples_at(LoaderPosition position, Plan& plan) const;
  /// Sorts each pool of `length_buckets` batches in the order by the lengths of its examples.
  void sort_by_length(std::vector<int64_t>& order) const;
  /// The batch of these examples, on the CPU.
  Batch make_batch(const std::vector<int64_t>& indices) const;

  const Dataset& dataset_;
  DataLoaderOptions options_;
  int64_t batches_ = 0;
  std::vector<int64_t> lengths_;  // lengths of all examples, where they are sorted by length
  LoaderPosition position_;
  mutable Plan plan_;  // plan of the last epoch that was asked for
  std::unique_ptr<PrefetchThread> prefetch_thread_;
};

}  // namespace heed
