// GrowingRows: the cache of a recurrent attention, which grows by one row per step.
#pragma once

#include <vector>

#include "heed/nn/attention.h"

namespace heed {

/// Rows [B, n, w] that grow without copying the earlier ones and pass on gradients. Existing rows never
/// change, so tensors recorded for the backward pass stay valid.
class GrowingRows {
 public:
  /// Reserves space for `more` rows of w numbers, in the dtype and on the device of `like_this`.
  void reserve(int64_t batch, int64_t w, int64_t more, const Tensor& like_this);
  /// Appends row [B, 1, w]. Space must be reserved.
  void add(const Tensor& row);

  Tensor rows;  ///< [B, n, w]; may be replaced, as by beam search

 private:
  Tensor room_;
};

/// Joins the weights of steps into one map [B, H, steps, keys]. Row i, [B, H, 1, k], holds the weights of the
/// k slots right before step i; the last step has `keys` - 1 slots before it.
Tensor map_of_growing(const std::vector<Tensor>& rows, int64_t keys);

}  // namespace heed
