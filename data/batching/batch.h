// Batch: the tensors of one forward pass, and their weight in the loss.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/tensor.h"

namespace heed {

/// The tensors of one forward pass.
struct Batch {
  std::vector<Tensor> tensors;  ///< in the order of the task, or of the examples of a Dataset
  double weight = 0;            ///< number of items that the loss averages over: target tokens or examples
  int64_t tokens = 0;           ///< real tokens, for tokens per second; 0: not sequences, so rows are counted
  double whole_weight = 0;      ///< in a shard: the weight of the whole batch; 0: this is the whole batch
  BatchRows rows = {};          ///< in a shard: its rows in the whole batch

  /// Tensor number i. Fails where there is none.
  const Tensor& operator[](size_t i) const {
    if (i >= tensors.size()) fail("batch: no tensor ", i, "; it has ", tensors.size(), ", counted from 0.");
    return tensors[i];
  }
};

}  // namespace heed
