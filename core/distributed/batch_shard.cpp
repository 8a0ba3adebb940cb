// The rows in hand. A variable of this file: kernels are compiled once for each set of instructions, and each
// would have its own copy of one in the header.
#include "heed/core/distributed/batch_shard.h"

namespace heed {
namespace {

thread_local BatchRows in_hand;

}  // namespace

SharedRows::SharedRows(BatchRows rows) : outer_(in_hand) { in_hand = rows; }
SharedRows::~SharedRows() { in_hand = outer_; }

uint64_t skipped_draws(int64_t count) {
  if (in_hand.count == 0 || count % in_hand.count != 0) return 0;
  return static_cast<uint64_t>(count / in_hand.count * in_hand.first);
}

}  // namespace heed
