// Dataset: examples by number; sets made of tensors, and parts of other sets.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

/// The tensors of one example, each without a batch axis, on the CPU: an image [28, 28] and its class [], or
/// token ids [T].
using Example = std::vector<Tensor>;

/// A set of examples. Derive from it to read your own data. A DataLoader calls get() from a thread of its
/// own, unless its options say prefetch = 0. Several loaders may share a set, as for training and validation:
/// get() and length() are still called one after the other, for a set and its copies, since loaders call
/// read() and read_length(), which lock. A set that wraps another one calls these two of it as well.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = default;             ///< the copy shares the lock of read() and read_length()
  Dataset& operator=(const Dataset&) = default;  ///< the copy shares the lock of read() and read_length()
  virtual ~Dataset() = default;
  /// The number of examples.
  virtual int64_t size() const = 0;
  /// Example number 0 <= index < size(), equal at every call. All examples have equally many tensors, of the
  /// same types.
  virtual Example get(int64_t index) const = 0;
  /// The length that length buckets sort by: first extent of the first tensor, 1 for a single number.
  /// Override it where that is known without making the example.
  virtual int64_t length(int64_t index) const;
  /// A text in UTF-8 that tells these examples from others: fit() keeps it with a run, and resumes the run
  /// only on the examples that it was trained on. Here: SHA-256 of the size and of 64 examples spread evenly
  /// over the set, so that a change in the others goes unnoticed. Override it where a name and version, or a
  /// hash of the file, says more, and where get() draws at random.
  virtual std::string identity() const;

  Example read(int64_t index) const;         ///< get() under the lock: one thread at a time
  int64_t read_length(int64_t index) const;  ///< length() under the lock: one thread at a time

 private:
  // Recursive: get() of a set may read() another of its own examples.
  std::shared_ptr<std::recursive_mutex> mutex_ = std::make_shared<std::recursive_mutex>();
};

/// Examples that lie in memory: row i of each tensor belongs to example i.
class TensorDataset final : public Dataset {
 public:
  /// tensors [N, ...], all with the same N; they are copied to the CPU where they are elsewhere. Fails for no
  /// tensors and for extents that differ.
  explicit TensorDataset(std::vector<Tensor> tensors);
  int64_t size() const override { return size_; }
  Example get(int64_t index) const override;
  std::string identity() const override;  ///< SHA-256 of all tensors

 private:
  std::vector<Tensor> tensors_;
  int64_t size_ = 0;
};

/// Some examples of another set, in an order of their own. The other set must outlive it.
class Subset final : public Dataset {
 public:
  /// Fails for an index that `all` does not have.
  Subset(const Dataset& all, std::vector<int64_t> indices);
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  Example get(int64_t index) const override { return all_.read(index_in_all(index)); }
  int64_t length(int64_t index) const override { return all_.read_length(index_in_all(index)); }
  std::string identity() const override;  ///< SHA-256 of the other set's identity and of the indices

 private:
  int64_t index_in_all(int64_t index) const;

  const Dataset& all_;
  std::vector<int64_t> indices_;
};

/// Splits a set in two, shuffled by the seed: the first part has round(share * size) examples. Fails for a
/// share outside of 0 to 1. The set must outlive both parts.
std::pair<Subset, Subset> random_split(const Dataset& all, double share, uint64_t seed = 1);

}  // namespace heed
