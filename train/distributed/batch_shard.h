// The part of a batch that one of several processes computes.
#pragma once

#include "heed/core/distributed/batch_shard.h"

namespace heed {

/// The shard of a batch's rows that one of several processes computes.
struct BatchShard {
  int64_t part = 0;   ///< number of this shard, from 0
  int64_t parts = 1;  ///< number of shards
  /// The rows of this shard; shards differ by one row at most.
  BatchRows of(int64_t rows) const {
    const int64_t first = rows * part / parts;
    return {first, rows * (part + 1) / parts - first};
  }
};

}  // namespace heed
