// Rows that a recurrent attention remembers, one more each step.
#pragma once

#include <vector>

#include "nn/attention.h"

namespace heed {

/// Rows [B, n, w] that grow without being copied each time, and keep their history. Rows that are there never
/// change, so what a tape has read of them stays as it was.
class GrowingRows {
 public:
  /// Makes room for `more` rows of w numbers, in the dtype and on the device of `like_this`.
  void reserve(int64_t batch, int64_t w, int64_t more, const Tensor& like_this);
  /// row [B, 1, w]. There must be room.
  void add(const Tensor& row);

  Tensor rows;  ///< [B, n, w]; may be replaced, as beam search does

 private:
  Tensor room_;
};

/// Weights of steps as one map [B, H, steps, keys]. Each row [B, H, 1, k] belongs to the k slots right before
/// its step, and the last step has `keys` - 1 before it.
Tensor map_of_growing(const std::vector<Tensor>& rows, int64_t keys);

}  // namespace heed
